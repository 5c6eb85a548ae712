//! A program as people name it, and the files it cannot do without.
//!
//! The system's own programs are in every room. A runtime that lives elsewhere (a
//! virtual environment, a version manager, a toolchain in the home folder) is recognised by its layout, and only its
//! programs and libraries are granted, never the folder around them. Of any other program the one file is granted.
//! Which runtimes count depends on whose [`Word`] the path is: a package could name any folder that looks like one.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::confinement::Confinement;
use crate::script::first_line;

/// Folders whose programs are in every room.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/nix/store", "/gnu/store"];

/// A kind of runtime: what the folder above `bin` holds when it is one, and what of it is needed to run it.
struct Kind {
    sign: &'static str,
    parts: &'static [&'static str],
}

const KINDS: [Kind; 9] = [
    Kind { sign: "pyvenv.cfg", parts: &["bin", "lib", "lib64", "include", "pyvenv.cfg"] },
    PYTHON,
    Kind { sign: "lib/node_modules", parts: &["bin", "lib", "include"] },
    NODE,
    Kind {
        sign: "libexec/pyenv",
        parts: &["bin", "shims", "lib", "libexec", "versions", "version", "plugins"],
    },
    Kind { sign: "lib/ruby", parts: &["bin", "sbin", "lib", "libexec", "include"] },
    // Java.
    Kind { sign: "lib/modules", parts: &["bin", "lib", "include", "conf"] },
    Kind { sign: "lib/rustlib", parts: &["bin", "lib", "libexec"] },
    // Go.
    Kind { sign: "pkg/tool", parts: &["bin", "lib", "pkg", "src"] },
];

/// A Python that was installed, whatever its version: it has the standard library.
const PYTHON: Kind = Kind {
    sign: "lib/python3*/os.py",
    parts: &["bin", "sbin", "lib", "lib64", "libexec", "include"],
};

/// A Node that was installed.
const NODE: Kind = Kind { sign: "include/node/node.h", parts: &["bin", "lib", "include"] };

/// What a package may name by a path: an interpreter with its own library, and nothing that a person works in.
const INSTALLATIONS: [Kind; 2] = [PYTHON, NODE];

/// Whose word a program's path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The owner typed it: a runtime it leads to is granted.
    Owner,
    /// A package has it: only a runtime that the owner's search path leads to is granted, or the installation of an
    /// interpreter. Of anything else, the one file.
    Package,
}

/// How many links and interpreters are followed.
const MOST_HOPS: usize = 16;

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its path, through no symbolic link but perhaps the last.
    pub path: PathBuf,
    /// Files and folders it needs to read beside the system's.
    pub needs: Vec<PathBuf>,
    /// Links on the way to it that are not below what it needs.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Folders where it looks for programs it starts, outside the system's.
    pub search: Vec<PathBuf>,
}

impl Program {
    /// Grants what the program needs, and lets it find the programs beside it.
    pub fn allow(&self, confinement: &mut Confinement) {
        confinement.readable.extend(self.needs.iter().cloned());
        confinement.links.extend(self.links.iter().cloned());
        if self.search.is_empty() {
            return;
        }
        let path = confinement.environment.iter_mut().find(|(name, _)| name == "PATH");
        if let Some((_, value)) = path {
            let mut folders: Vec<PathBuf> = self.search.clone();
            folders.extend(std::env::split_paths(value));
            if let Ok(joined) = std::env::join_paths(folders) {
                *value = joined;
            }
        }
    }
}

/// Why a program was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindError {
    /// There is none of that name.
    Missing(OsString),
    /// There is one, and it cannot be executed.
    NotExecutable(PathBuf),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "there is no program `{}`", name.display()),
            Self::NotExecutable(path) => {
                write!(f, "`{}` is not a program that can be executed", path.display())
            }
        }
    }
}

impl std::error::Error for FindError {}

/// Finds a program: by its path from a folder, or by its name in a list of folders (as `PATH` has it, and
/// as the owner's word).
pub fn find(name: &OsStr, search: &OsStr, folder: &Path, word: Word) -> Result<Program, FindError> {
    let mut program =
        Program { path: PathBuf::new(), needs: Vec::new(), links: Vec::new(), search: Vec::new() };
    program.path = follow(name, Places { search, folder }, word, &mut program, MOST_HOPS)?;
    program.needs.sort();
    program.needs.dedup();
    program.links.retain(|(path, _)| !program.needs.iter().any(|need| path.starts_with(need)));
    Ok(program)
}

/// Whether there is such a program.
pub fn is_there(name: &OsStr, search: &OsStr, folder: &Path) -> bool {
    look_up(name, search, folder).is_some_and(|path| is_executable(&path))
}

/// Where programs are looked for.
#[derive(Clone, Copy)]
struct Places<'p> {
    search: &'p OsStr,
    folder: &'p Path,
}

/// Looks one program up and notes what it and its interpreter need.
fn follow(
    name: &OsStr,
    places: Places<'_>,
    word: Word,
    program: &mut Program,
    hops: usize,
) -> Result<PathBuf, FindError> {
    let Places { search, folder } = places;
    // What is found by its name is what the owner's search path leads to.
    let word = if is_path(name) { word } else { Word::Owner };
    let missing = || FindError::Missing(name.to_owned());
    let typed = look_up(name, search, folder).ok_or_else(missing)?;
    let parent = typed.parent().and_then(|parent| parent.canonicalize().ok());
    let path = parent.ok_or_else(missing)?.join(typed.file_name().ok_or_else(missing)?);
    let mut at = path.clone();
    let mut on_the_way = Vec::new();
    for _ in 0..hops {
        on_the_way.push(at.clone());
        let Ok(target) = std::fs::read_link(&at) else { break };
        let next = at.parent().unwrap_or(Path::new("/")).join(target);
        let parent = next.parent().and_then(|parent| parent.canonicalize().ok());
        at = parent.ok_or_else(missing)?.join(next.file_name().ok_or_else(missing)?);
    }
    // What is not a program grants nothing: a script could name any folder as its interpreter.
    if !is_executable(&at) {
        return Err(FindError::NotExecutable(path));
    }
    for path in &on_the_way {
        note(path, search, word, program);
    }
    if let Some(interpreter) = interpreter(&at)
        && hops > 0
    {
        // A script whose interpreter is missing says so itself when it is run.
        let _ = follow(&interpreter, places, word, program, hops / 2);
    }
    Ok(path)
}

fn look_up(name: &OsStr, search: &OsStr, folder: &Path) -> Option<PathBuf> {
    if is_path(name) {
        let path = folder.join(name);
        return path.exists().then_some(path);
    }
    searched(search).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_path(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

/// The folders of a search path.
fn searched(search: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(search).filter(|folder| folder.is_absolute())
}

/// Notes what one file on the way needs.
fn note(path: &Path, search: &OsStr, word: Word, program: &mut Program) {
    if is_system(path) {
        return;
    }
    let is_searched = || {
        let mut folders = searched(search).filter_map(|folder| folder.canonicalize().ok());
        folders.any(|folder| path.parent() == Some(&*folder))
    };
    let kinds: &[Kind] = match word {
        Word::Package if !is_searched() => &INSTALLATIONS,
        Word::Owner | Word::Package => &KINDS,
    };
    let parts = runtime_parts(path, kinds);
    if !parts.is_empty() {
        let folder = path.parent().map(Path::to_owned);
        program.search.extend(folder.filter(|folder| !program.search.contains(folder)));
        program.needs.extend(parts);
    } else if let Ok(target) = std::fs::read_link(path) {
        program.links.push((path.to_owned(), target));
    } else {
        program.needs.push(path.to_owned());
    }
}

/// Whether a path is among the system's own programs.
pub fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// What is needed of the runtime a program belongs to, where it is one of these kinds; nothing if it is none.
fn runtime_parts(path: &Path, kinds: &[Kind]) -> Vec<PathBuf> {
    let Some(bin) = path.parent() else { return Vec::new() };
    let is_bin = bin.file_name().is_some_and(|name| name == "bin" || name == "shims");
    let Some(prefix) = bin.parent().filter(|prefix| is_bin && *prefix != Path::new("/")) else {
        return Vec::new();
    };
    // A part that is a link to somewhere else is not a part.
    let Ok(prefix) = prefix.canonicalize() else { return Vec::new() };
    let known = kinds.iter().filter(|kind| has_sign(&prefix, kind.sign));
    let parts = known.flat_map(|kind| kind.parts);
    let parts = parts.filter_map(|part| prefix.join(part).canonicalize().ok());
    parts.filter(|part| part.starts_with(&prefix) || is_system(part)).collect()
}

/// Whether a folder holds a path in which one name may end with anything.
fn has_sign(prefix: &Path, sign: &str) -> bool {
    let Some((before, after)) = sign.split_once('*') else { return prefix.join(sign).exists() };
    let (folder, start) = before.rsplit_once('/').unwrap_or((".", before));
    let entries = std::fs::read_dir(prefix.join(folder)).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .any(|entry| entry.path().join(after.trim_start_matches('/')).exists())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The program that a script names in its first line.
fn interpreter(path: &Path) -> Option<OsString> {
    let line = first_line(path)?;
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name().is_some_and(|name| name == "env") {
        let name = words.next().filter(|word| *word != "-S").or_else(|| words.next())?;
        let is_name = !name.starts_with('-') && !name.contains(['=', '/']);
        return is_name.then(|| name.into());
    }
    Some(first.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_of_the_system_needs_nothing() {
        let found =
            find("sh".as_ref(), "/usr/bin:/bin".as_ref(), Path::new("/"), Word::Package).unwrap();
        assert!(is_system(&found.path));
        assert_eq!((found.needs.len(), found.links.len()), (0, 0));
    }

    #[test]
    fn a_program_elsewhere_is_granted_alone_and_not_the_folder_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        write(&home.join("bin/tool"), "#!/bin/sh\n");
        write(&home.join("secret"), "");
        let search = home.join("bin");
        let found =
            find("tool".as_ref(), search.as_os_str(), Path::new("/"), Word::Package).unwrap();
        assert_eq!(found.path, home.join("bin/tool"));
        assert_eq!(found.needs, [home.join("bin/tool")]);
        let by_path = find("./bin/tool".as_ref(), "".as_ref(), &home, Word::Package).unwrap();
        assert_eq!(by_path, found);
    }

    #[test]
    fn a_virtual_environment_is_granted_by_its_parts_through_links_and_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let venv = home.join("venv");
        write(&venv.join("pyvenv.cfg"), "");
        write(&venv.join("lib/python3.11/site.py"), "");
        write(&venv.join("private/key"), "");
        symlink("/usr/bin/env", venv.join("bin-python")).unwrap();
        write(&venv.join("bin/python"), "");
        write(&venv.join("bin/black"), &format!("#!{}\n", venv.join("bin/python").display()));
        std::fs::create_dir(home.join("links")).unwrap();
        symlink(venv.join("bin/black"), home.join("links/black")).unwrap();
        let search = home.join("links");
        let found =
            find("black".as_ref(), search.as_os_str(), Path::new("/"), Word::Package).unwrap();
        assert_eq!(found.path, home.join("links/black"));
        assert_eq!(found.needs, [venv.join("bin"), venv.join("lib"), venv.join("pyvenv.cfg")]);
        assert_eq!(found.links, [(home.join("links/black"), venv.join("bin/black"))]);
        assert_eq!(found.search, [venv.join("bin")]);
        let mut confinement = Confinement::default();
        found.allow(&mut confinement);
        let path = confinement.environment.iter().find(|(name, _)| name == "PATH").unwrap();
        assert!(path.1.to_string_lossy().starts_with(&*venv.join("bin").to_string_lossy()));
    }

    #[test]
    fn a_script_grants_itself_nothing_by_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        write(&home.join("secret/key"), "");
        for line in [
            format!("#!/usr/bin/env -S -u {} sh", home.join("secret").display()),
            format!("#!/usr/bin/env {} sh", home.join("secret").display()),
            format!("#!{}", home.join("secret").display()),
        ] {
            write(&home.join("script"), &line);
            let found = find("./script".as_ref(), "/usr/bin".as_ref(), &home, Word::Owner).unwrap();
            assert_eq!(found.needs, [home.join("script")], "{line}");
        }
    }

    #[test]
    fn a_link_in_a_runtime_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        write(&home.join("secret/key"), "");
        write(&home.join("venv/pyvenv.cfg"), "");
        write(&home.join("venv/bin/tool"), "");
        symlink(home.join("secret"), home.join("venv/include")).unwrap();
        let found = find("./venv/bin/tool".as_ref(), "".as_ref(), &home, Word::Owner).unwrap();
        assert_eq!(found.needs, [home.join("venv/bin"), home.join("venv/pyvenv.cfg")]);
    }

    #[test]
    fn a_package_opens_no_project_by_a_path_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let project = home.join("project");
        write(&project.join("pyvenv.cfg"), "");
        write(&project.join("bin/cat"), "");
        write(&project.join("lib/python3.11/site-packages/own.py"), "");
        write(&project.join("src/app.py"), "");
        write(&project.join("conf/db.ini"), "");
        let by_path = |word| {
            let path = project.join("bin/cat");
            find(path.as_os_str(), "/usr/bin".as_ref(), Path::new("/"), word).unwrap().needs
        };
        assert_eq!(by_path(Word::Package), [project.join("bin/cat")]);
        let parts = [project.join("bin"), project.join("lib"), project.join("pyvenv.cfg")];
        assert_eq!(by_path(Word::Owner), parts, "neither its sources nor its settings");
        // Nor by the first line of a script, nor by a link.
        let script = home.join("package/script");
        write(&script, &format!("#!{}\n", project.join("bin/cat").display()));
        let found = find(script.as_os_str(), "".as_ref(), &home, Word::Package).unwrap();
        assert_eq!(found.needs, [script, project.join("bin/cat")]);
        write(&home.join("package/pyvenv.cfg"), "");
        write(&home.join("package/bin/other"), "");
        symlink(project.join("bin/cat"), home.join("package/bin/link")).unwrap();
        let found = find("./package/bin/link".as_ref(), "".as_ref(), &home, Word::Package).unwrap();
        assert_eq!(found.needs, [project.join("bin/cat")]);
        // What the owner's search path leads to is theirs.
        let search = project.join("bin");
        let found = find("cat".as_ref(), search.as_os_str(), &home, Word::Package).unwrap();
        assert_eq!(found.needs, parts);
        let path = project.join("bin/cat");
        let found = find(path.as_os_str(), search.as_os_str(), &home, Word::Package).unwrap();
        assert_eq!(found.needs, parts);
    }

    #[test]
    fn a_package_may_name_an_interpreter_that_was_installed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let python = home.join("share/python-3.12");
        write(&python.join("bin/python3.12"), "");
        write(&python.join("lib/python3.12/os.py"), "");
        write(&python.join("src/secret"), "");
        // As a virtual environment in the package's own folder has it.
        write(&home.join("package/.venv/pyvenv.cfg"), "");
        write(&home.join("package/.venv/bin/pip"), "");
        symlink(python.join("bin/python3.12"), home.join("package/.venv/bin/python")).unwrap();
        let name = "./package/.venv/bin/python";
        let found = find(name.as_ref(), "".as_ref(), &home, Word::Package).unwrap();
        assert_eq!(found.needs, [python.join("bin"), python.join("lib")]);
    }

    #[test]
    fn what_is_missing_or_no_program_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("text"), "hello").unwrap();
        let missing =
            find("no-such-program".as_ref(), "/usr/bin".as_ref(), folder.path(), Word::Owner);
        assert!(matches!(missing, Err(FindError::Missing(_))));
        let text = find("./text".as_ref(), "".as_ref(), folder.path(), Word::Owner);
        let path = folder.path().canonicalize().unwrap().join("text");
        assert_eq!(text, Err(FindError::NotExecutable(path)), "as it is, not as it was written");
    }
}
