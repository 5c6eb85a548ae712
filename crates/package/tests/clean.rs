//! Clean archives: each is accepted, with the right names, contents and digests.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::extract::{Durability, extract};
use package::limits::Limits;
use package::refusal::RefusalCode;
use testkit::archives::clean::hundredfold;
use testkit::archives::zip::{Item, Zip};
use testkit::archives::{Clean, clean};

#[test]
fn there_are_more_than_a_hundred() {
    let archives = clean();
    let names: BTreeSet<_> = archives.iter().map(|archive| &archive.name).collect();
    let bytes: BTreeSet<_> = archives.iter().map(|archive| Digest::of(&archive.bytes)).collect();
    assert!(archives.len() > 100, "{}", archives.len());
    assert_eq!(names.len(), archives.len());
    assert!(bytes.len() > 100, "{}", bytes.len());
}

#[test]
fn each_is_accepted_with_its_files() {
    let mut wrong = Vec::new();
    for archive in clean() {
        if let Err(error) = check(&archive) {
            wrong.push(format!("{}: {error}", archive.name));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn check(archive: &Clean) -> Result<(), String> {
    let opened = Archive::from_bytes(archive.bytes.clone(), Trailer::Refused, &Limits::DEFAULT)
        .map_err(|error| error.to_string())?;
    let listing = opened.listing().map_err(|error| error.to_string())?;
    assert_eq!(opened.entries().len(), archive.files.len(), "{}", archive.name);
    assert_eq!(listing.files().len(), archive.files.len(), "{}", archive.name);
    for ((file, entry), digest) in archive.files.iter().zip(opened.entries()).zip(listing.files()) {
        assert_eq!(
            (&file.path, file.executable, file.content.len() as u64),
            (&entry.path, entry.executable, entry.size),
            "{}",
            archive.name
        );
        assert!(opened.read(entry).map_err(|error| error.to_string())? == file.content);
        assert_eq!((&digest.path, digest.size), (&entry.path, entry.size));
        assert_eq!(digest.sha256, Digest::of(&file.content), "{}", archive.name);
        assert_eq!(opened.get(&file.path), Some(entry));
    }
    assert_eq!(opened.digest().unwrap(), Digest::of(&archive.bytes));
    Ok(())
}

#[test]
fn each_is_extracted_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    // Thousands of empty files say nothing that a hundred do not.
    for archive in clean().into_iter().filter(|archive| archive.files.len() < 1_000) {
        let target = folder.path().join("target");
        let path = folder.path().join("archive.zip");
        fs::write(&path, &archive.bytes).unwrap();
        let file = fs::File::open(&path).unwrap();
        let opened = Archive::open(file, Trailer::Refused, &Limits::DEFAULT).unwrap();
        let staged = extract(&opened, &target).unwrap();
        assert!(!target.exists());
        let listing = staged.promote(Durability::Left).unwrap();
        assert_eq!(listing, opened.listing().unwrap());
        for file in &archive.files {
            let path = target.join(&file.path);
            assert!(fs::read(&path).unwrap() == file.content, "{}", archive.name);
            assert_eq!(mode(&path) & 0o100 != 0, file.executable, "{}", archive.name);
        }
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_file_of_exactly_the_most_bytes_is_accepted() {
    let size = Limits::DEFAULT.file_bytes;
    let (item, file) = hundredfold(usize::try_from(size).unwrap());
    let archive = Archive::from_bytes(Zip::of([item]).bytes(), Trailer::Refused, &Limits::DEFAULT);
    let listing = archive.unwrap().listing().unwrap();
    assert_eq!(listing.total(), size);
    assert_eq!(listing.files()[0].sha256, Digest::of(&file.unwrap().content));
}

#[test]
fn other_limits_hold_to_the_byte_as_well() {
    let limits =
        Limits { entries: 3, file_bytes: 100, total_bytes: 250, ratio: 10, ratio_free_bytes: 20 };
    let code = |items: Vec<Item>| {
        let archive = Archive::from_bytes(Zip::of(items).bytes(), Trailer::Refused, &limits);
        archive.and_then(|archive| archive.listing()).err().and_then(|error| error.code())
    };
    let of = |name: &str, len: usize| Item::stored(name, &vec![b'x'; len]);
    assert_eq!(code(vec![of("a", 100), of("b", 100), of("c", 50)]), None);
    assert_eq!(code(vec![of("a", 101)]), Some(RefusalCode::FileTooLarge));
    assert_eq!(
        code(vec![of("a", 100), of("b", 100), of("c", 51)]),
        Some(RefusalCode::TotalTooLarge)
    );
    assert_eq!(
        code(vec![of("a", 1), of("b", 1), of("c", 1), of("d", 1)]),
        Some(RefusalCode::TooManyEntries)
    );
    let squeezed = |len: usize| Item::deflated("a", &vec![b'x'; len]);
    let most = 10 * squeezed(60).data.len();
    assert_eq!(10 * squeezed(most + 1).data.len(), most);
    assert_eq!(code(vec![squeezed(most)]), None);
    assert_eq!(code(vec![squeezed(most + 1)]), Some(RefusalCode::Bomb));
    assert_eq!(code(vec![squeezed(20)]), None);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode()
}
