//! Packages on the disk: archives, bundles, manifests of any dialect, the `tools/` folder of a Jumith hub.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use manifest::dialect::{Dialect, Form, recognise};
use manifest::document::{MAX_BUNDLE, MAX_CATALOG, MAX_MANIFEST, size_limit};
use manifest::json::{Places, parse};
use package::archive::{Archive, Trailer};
use package::contents::{Contents, MANIFEST_NAMES, With};
use package::gather::gather;
use package::limits::Limits;
use package::pack::{Allowed, Packing, Secrets, leaks, pack};
use serde_json::Value;

use super::{Item, packed, servers};

/// Archives by the end of their name.
const ARCHIVES: [&str; 4] = ["mcpkg", "mcpb", "dxt", "zip"];
/// Those that may carry a signature after the archive.
const WITH_TRAILER: [&str; 2] = ["mcpb", "dxt"];
/// The largest archive.
const MAX_ARCHIVE: u64 = 256 << 20;
/// The largest dump of a registry.
pub const MAX_DUMP: u64 = 128 << 20;
/// How deep below a folder packages are looked for.
const DEPTH: usize = 16;
/// Folders that never hold packages of one's own.
const SKIPPED: [&str; 5] = ["node_modules", "target", "__pycache__", "venv", "site-packages"];
/// Where a Jumith hub keeps the files of a tool, beside its manifest.
const HUB_FILES: &str = "files";

/// What is at a path. It is handed over piece by piece, so that no more than one package is in memory.
pub fn read(path: &Path, take: &mut dyn FnMut(Item)) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        read_folder(path, 0, take)
    } else {
        read_file(path, take);
        Ok(())
    }
}

fn read_folder(folder: &Path, depth: usize, take: &mut dyn FnMut(Item)) -> io::Result<()> {
    if let Some(manifest) = hub_manifest(folder) {
        take(of_hub(folder, &manifest));
        return Ok(());
    }
    if let Some(dialect) = own_manifest(folder) {
        take(of_folder(folder, dialect));
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Links are not followed: they could lead anywhere.
        entries.push((entry.path(), entry.file_type()?));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, kind) in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() && depth < DEPTH {
            if let Err(error) = read_folder(&path, depth + 1, take) {
                take(Item::refused(path.display().to_string(), error.to_string()));
            }
        } else if kind.is_file() && (has_kind(&path, &ARCHIVES) || has_kind(&path, &["json"])) {
            read_found(&path, take);
        }
    }
    Ok(())
}

/// A file that was found: JSON that is nothing of ours is passed over.
fn read_found(path: &Path, take: &mut dyn FnMut(Item)) {
    let mut items = Vec::new();
    read_file(path, &mut |item| items.push(item));
    let is_json = has_kind(path, &["json"]);
    let is_nothing =
        |item: &Item| item.package == Err(super::NoPackage::Refused(UNKNOWN.to_owned()));
    items.into_iter().filter(|item| !(is_json && is_nothing(item))).for_each(take);
}

const UNKNOWN: &str = "it is neither a package nor a manifest of any dialect";

fn read_file(path: &Path, take: &mut dyn FnMut(Item)) {
    let from = path.display().to_string();
    if has_kind(path, &ARCHIVES) {
        take(match archive(path) {
            Ok(bytes) => Item { id: stem(path), ..Item::made(from, bytes) },
            Err(why) => Item::refused(from, why),
        });
        return;
    }
    let bytes = match bounded(path, MAX_DUMP) {
        Ok(bytes) => bytes,
        Err(why) => return take(Item::refused(from, why)),
    };
    of_document(&from, stem(path), bytes, take);
}

/// A document by itself: a manifest, a bundle, a catalog, a dump.
pub fn of_document(from: &str, id: Option<String>, bytes: Vec<u8>, take: &mut dyn FnMut(Item)) {
    if bytes.len() > MAX_CATALOG {
        // No manifest and no catalog is as large; what looks like a bundle is judged where it is published.
        if size_limit(&bytes) == MAX_BUNDLE {
            return take(Item::made(from, bytes));
        }
        return of_dump(from, &bytes, take);
    }
    // What is wrong with its JSON is of use to those who mean it to be JSON.
    let is_json = has_kind(Path::new(from), &["json"]);
    let unread = |why: String| Item::refused(from, if is_json { why } else { UNKNOWN.to_owned() });
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return take(unread("it is not UTF-8".to_owned()));
    };
    let parsed = parse(text);
    if let Some(fault) = parsed.faults.first() {
        let line = Places::new(text).of(fault.span).line;
        return take(unread(format!("line {line}: {}", fault.message)));
    }
    let recognised = parsed.root.as_ref().and_then(recognise);
    match recognised {
        Some((Some(Dialect::Jumith), Form::Bundle)) if bytes.len() <= MAX_BUNDLE => {
            take(Item::made(from, bytes));
        }
        Some((Some(Dialect::ServerJson), Form::Manifest)) => {
            let made = serde_json::from_slice(&bytes).map_err(|error| error.to_string());
            take(match made.and_then(|server: Value| servers::of_server(&server)) {
                Ok(package) => Item::made(from, package),
                Err(why) => Item::refused(from, why),
            });
        }
        Some((Some(Dialect::Capability), Form::Catalog)) => of_catalog(from, &bytes, take),
        Some((Some(dialect), Form::Manifest)) if bytes.len() <= MAX_MANIFEST => {
            take(match packed(vec![(dialect.file_name(), &bytes)]) {
                Ok(package) => Item { id, ..Item::made(from, package) },
                Err(why) => Item::refused(from, why),
            });
        }
        _ => of_dump(from, &bytes, take),
    }
}

/// A list of servers, each of which is judged by itself.
fn of_dump(from: &str, bytes: &[u8], take: &mut dyn FnMut(Item)) {
    let dump = serde_json::from_slice(bytes).ok();
    match dump.and_then(|dump: Value| servers::of_dump(&dump, from)) {
        Some(items) => items.into_iter().for_each(take),
        None => take(Item::refused(from, UNKNOWN)),
    }
}

/// Each entry of a catalog is a package of its own.
fn of_catalog(from: &str, bytes: &[u8], take: &mut dyn FnMut(Item)) {
    let catalog: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let entries = catalog["capabilities"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, entry) in entries.iter().enumerate() {
        let from = format!("{from}#{at} {}", entry["id"].as_str().unwrap_or("?"));
        let text = format!("{entry:#}\n");
        take(match packed(vec![(Dialect::Capability.file_name(), text.as_bytes())]) {
            Ok(package) => Item::made(from, package),
            Err(why) => Item::refused(from, why),
        });
    }
}

/// The manifest of a tool as a Jumith hub keeps it: beside a folder `files`.
fn hub_manifest(folder: &Path) -> Option<PathBuf> {
    let manifest = folder.join("manifest.json");
    let is_hub = is_plain(&folder.join(HUB_FILES), fs::FileType::is_dir)
        && is_plain(&manifest, fs::FileType::is_file)
        && document_of(&manifest).is_some_and(|(dialect, _)| dialect == Some(Dialect::Jumith));
    is_hub.then_some(manifest)
}

/// A tool of a hub: its files, and its manifest beside them.
fn of_hub(folder: &Path, manifest: &Path) -> Item {
    let from = folder.display().to_string();
    let made = || -> Result<Vec<u8>, String> {
        let content = bounded(manifest, MAX_MANIFEST as u64)?;
        let files =
            gather(&folder.join(HUB_FILES), &Limits::DEFAULT).map_err(|error| error.to_string())?;
        if let Some(taken) = MANIFEST_NAMES.iter().find(|name| files.size(name).is_some()) {
            return Err(format!("`{HUB_FILES}/{taken}` stands where its manifest must"));
        }
        pack_all(&With { contents: &files, path: Dialect::Jumith.file_name(), content: &content })
    };
    match made() {
        Ok(bytes) => Item::made(from, bytes),
        Err(why) => Item::refused(from, why),
    }
}

/// The dialect of the one manifest of a folder that is a package as a whole.
fn own_manifest(folder: &Path) -> Option<Dialect> {
    let mut found = MANIFEST_NAMES
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| is_plain(path, fs::FileType::is_file))
        .filter_map(|path| match document_of(&path) {
            Some((dialect, Form::Manifest)) => dialect,
            _ => None,
        });
    match (found.next(), found.next()) {
        (Some(dialect), None) => Some(dialect),
        _ => None,
    }
}

fn of_folder(folder: &Path, dialect: Dialect) -> Item {
    let from = folder.display().to_string();
    let made = gather(folder, &Limits::DEFAULT).map_err(|error| error.to_string());
    match made.and_then(|files| pack_all(&files)) {
        Ok(bytes) => {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            let id = name.filter(|_| dialect == Dialect::Agentcli);
            Item { id, ..Item::made(from, bytes) }
        }
        Err(why) => Item::refused(from, why),
    }
}

/// All files as a package; what looks like a secret is refused.
fn pack_all(contents: &dyn Contents) -> Result<Vec<u8>, String> {
    check_no_secrets(contents)?;
    let mut bytes = Vec::new();
    let packing = Packing { contents, secrets: Secrets::NotLookedFor };
    pack(&packing, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Refuses files that look like secrets: in a registry everybody could read them.
fn check_no_secrets(contents: &dyn Contents) -> Result<(), String> {
    let allowed = Allowed::new(&[]).map_err(|pattern| format!("`{pattern}` is no pattern"))?;
    let packing = Packing { contents, secrets: Secrets::RefusedBut(&allowed) };
    let found = leaks(&packing).map_err(|error| error.to_string())?;
    let told: Vec<_> = found.iter().take(4).map(|leak| format!("`{}`", leak.path)).collect();
    match found.len() {
        0 => Ok(()),
        1 => Err(format!("{} holds a secret", told[0])),
        number => {
            let more = if number > told.len() { " and others" } else { "" };
            Err(format!("{number} files hold secrets: {}{more}", told.join(", ")))
        }
    }
}

/// An archive, without the signature that MCP bundles have after it.
fn archive(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = bounded(path, MAX_ARCHIVE)?;
    if has_kind(path, &WITH_TRAILER) {
        let opened = Archive::from_bytes(bytes.clone(), Trailer::Mcpb, &Limits::DEFAULT);
        let trailer = opened.map_err(|error| error.to_string())?.trailer_len();
        let end = bytes.len().saturating_sub(usize::try_from(trailer).unwrap_or(usize::MAX));
        bytes.truncate(end);
    }
    let opened = Archive::from_bytes(bytes.clone(), Trailer::Refused, &Limits::DEFAULT);
    // What is no archive the registry refuses, and says why.
    if let Ok(opened) = opened {
        check_no_secrets(&opened)?;
    }
    Ok(bytes)
}

/// The dialect and the form of a small document.
fn document_of(path: &Path) -> Option<(Option<Dialect>, Form)> {
    let bytes = bounded(path, MAX_MANIFEST as u64).ok()?;
    let parsed = parse(std::str::from_utf8(&bytes).ok()?);
    recognise(&parsed.root?)
}

fn bounded(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    Ok(bytes)
}

fn is_plain(path: &Path, is: fn(&fs::FileType) -> bool) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| is(&metadata.file_type()))
}

fn has_kind(path: &Path, kinds: &[&str]) -> bool {
    path.extension().is_some_and(|kind| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

/// What a tools.json is called that has no folder of its own.
fn stem(path: &Path) -> Option<String> {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::NoPackage;
    use super::*;

    #[test]
    fn a_fault_is_told_where_json_is_meant() {
        for (from, bytes, told) in [
            ("README.md", &b"# Title"[..], UNKNOWN),
            ("ls", b"\x7fELF\xff", UNKNOWN),
            ("x.txt", b"{}", UNKNOWN),
            ("x.json", b"{}", UNKNOWN),
            ("x.json", b"\xff", "it is not UTF-8"),
            ("x.JSON", b"{\n  \"a\": #\n}", "line 2: expected a value, found `#`"),
        ] {
            let mut items = Vec::new();
            of_document(from, None, bytes.to_vec(), &mut |item| items.push(item));
            let refused = Err(NoPackage::Refused(told.to_owned()));
            assert_eq!(items, [Item::new(from, refused)], "{from}");
        }
    }
}
