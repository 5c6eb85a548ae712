//! Whether the files of a version are what they were when it was installed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use package::digest::Hasher;

use crate::pinned::Sha256;
use crate::record::{ACQUIRED, ACQUIRED_FILES, FileRecord, Record};

/// Every file of the package that is not what it was, or is gone.
pub fn changed_files(root: &Path, record: &Record) -> Vec<String> {
    let is_changed = |file: &&FileRecord| {
        let found = hashed(&root.join(&file.path));
        !found.is_ok_and(|(size, sha256)| (size, sha256) == (file.size, file.sha256))
    };
    record.files.iter().filter(is_changed).map(|file| file.path.clone()).collect()
}

/// The same, and every file that was acquired for it.
pub fn changed(root: &Path, record: &Record) -> Vec<String> {
    let mut changed = changed_files(root, record);
    if record.acquired.is_some() {
        changed.extend(changed_among_acquired(root));
    }
    changed
}

fn changed_among_acquired(root: &Path) -> Vec<String> {
    let text = fs::read(root.join(ACQUIRED_FILES)).unwrap_or_default();
    let Ok(known) = serde_json::from_slice::<Vec<FileRecord>>(&text) else {
        return vec![ACQUIRED_FILES.to_owned()];
    };
    let Ok(found) = listed(&root.join(ACQUIRED)) else { return vec![ACQUIRED.to_owned()] };
    let told = |file: &FileRecord| (file.path.clone(), file.sha256);
    let known: BTreeSet<_> = known.iter().map(told).collect();
    let found: BTreeSet<_> = found.iter().map(told).collect();
    let differs = known.symmetric_difference(&found);
    let differs: BTreeSet<_> = differs.map(|(path, _)| format!("{ACQUIRED}/{path}")).collect();
    differs.into_iter().collect()
}

/// Every file below a folder with its digest, in the order of their paths. Links lead to one of them or nowhere.
pub(crate) fn listed(folder: &Path) -> io::Result<Vec<FileRecord>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let (path, kind) = (inside.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let (size, sha256) = hashed(&entry.path())?;
                found.push(FileRecord { path: path.to_string_lossy().into_owned(), size, sha256 });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// How many bytes a file has, and which. It may be larger than memory.
fn hashed(path: &Path) -> io::Result<(u64, Sha256)> {
    let (mut file, mut hasher) = (fs::File::open(path)?, Hasher::default());
    let (mut buffer, mut size) = (vec![0; 256 << 10], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((size, Sha256(hasher.finish()))),
            count => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}
