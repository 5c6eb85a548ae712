//! The scripts of a skill, which is what can be called of it.
//!
//! A script is a file in `scripts/`, under its own name: it is started with the texts of `args` and given `stdin`. Neither
//! side effects nor permissions are known of it but what the companion beside it claims.

use sha2::{Digest, Sha256};

use crate::dialect::Dialect;
use crate::folder::{Folder, Script};
use crate::json::parse;
use crate::model::{Action, Entry, Implementation, Invocation, Json, OutputFormat, Package};

/// The folder with the scripts of a skill.
pub const FOLDER: &str = "scripts";
/// The most scripts of one skill.
const MOST: usize = 256;
/// The longest name of a script.
const LONGEST: usize = 64;

/// What each script takes.
const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "args": {"type": "array", "items": {"type": "string"}, "maxItems": 256, "description": "Arguments, one text each."},
    "stdin": {"type": "string", "description": "What the script reads from its standard input."}
  },
  "additionalProperties": false
}"#;

/// Adds the scripts around a skill to what can be called of it.
pub fn apply(folder: &dyn Folder, package: &mut Package) {
    if package.dialect != Dialect::Skill {
        return;
    }
    let mut scripts = folder.scripts();
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    if package.version.is_none() && !scripts.is_empty() {
        package.version = Some(version(folder, package, &scripts));
    }
    for script in scripts.into_iter().filter(|script| is_name(&script.name)).take(MOST) {
        let Some(argv) = command(&script) else { continue };
        package.implementations.push(Implementation {
            id: script.name.clone(),
            language: None,
            runtime: None,
            platforms: Vec::new(),
            entry: Entry::Argv { argv, cwd: None, runtime: None },
            timeout_ms: None,
            requirements: None,
        });
        package.actions.push(action(script.name));
    }
}

/// The version of a skill that names none, made of what is in it.
fn version(folder: &dyn Folder, package: &Package, scripts: &[Script]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(&package.raw_sha256);
    for script in scripts {
        let bytes = folder.read(&format!("{FOLDER}/{}", script.name)).unwrap_or_default();
        hasher.update(format!("\n{} {}\n", script.name, bytes.len()));
        hasher.update(&bytes);
    }
    let digest = hasher.finalize();
    let hex: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("0.0.0+{hex}")
}

fn action(name: String) -> Action {
    let input = parse(INPUT).root.map(|schema| Json::of(&schema, INPUT));
    Action {
        input,
        output_format: Some(OutputFormat::Text),
        ..Action::new(name, Invocation::Script)
    }
}

/// Whether a file may be called by its name: it is no part of another one.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
}

/// What a script is started by; none where nothing says so.
fn command(script: &Script) -> Option<Vec<String>> {
    let path = format!("{FOLDER}/{}", script.name);
    let program = match script.name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("py") => "python3",
        Some("js" | "mjs" | "cjs") => "node",
        Some("sh") => "sh",
        Some("bash") => "bash",
        _ if script.is_executable => return Some(vec![format!("./{path}")]),
        _ => return None,
    };
    Some(vec![program.to_owned(), path])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Options, read};
    use crate::folder::FolderError;

    struct Scripts(Vec<(&'static str, bool)>);

    impl Folder for Scripts {
        fn read(&self, _path: &str) -> Result<Vec<u8>, FolderError> {
            Err(FolderError::Missing)
        }

        fn test_files(&self) -> Vec<String> {
            Vec::new()
        }

        fn scripts(&self) -> Vec<Script> {
            let script = |(name, is_executable): &(&str, bool)| Script {
                name: (*name).to_owned(),
                is_executable: *is_executable,
            };
            self.0.iter().map(script).collect()
        }
    }

    #[test]
    fn a_script_is_called_by_its_name_and_started_by_its_kind() {
        let text = b"---\nname: word-tools\ndescription: Counts.\n---\nWords.\n";
        let (_, mut packages) = read(text, &Options::default()).unwrap();
        let scripts = [
            ("run", true),
            ("count.py", false),
            ("data.txt", false),
            ("_shared.py", false),
            (".hidden.sh", true),
            ("a b.sh", true),
            ("go.sh", false),
            ("x.mjs", true),
        ];
        apply(&Scripts(scripts.to_vec()), &mut packages[0]);
        let started: Vec<_> = packages[0]
            .implementations
            .iter()
            .map(|one| match &one.entry {
                Entry::Argv { argv, .. } => argv.join(" "),
                _ => String::new(),
            })
            .collect();
        let expected =
            ["python3 scripts/count.py", "sh scripts/go.sh", "./scripts/run", "node scripts/x.mjs"];
        assert_eq!(started, expected);
        let names: Vec<_> = packages[0].actions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["count.py", "go.sh", "run", "x.mjs"]);
    }
}
