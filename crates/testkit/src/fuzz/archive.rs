//! What must hold for any bytes that may be an archive.

use manifest::path::check_path;
use package::archive::{Archive, Trailer};
use package::digest::{Digest, FileDigest, Listing};
use package::limits::Limits;
use package::refusal::ReadError;
use package::write::{Packed, Writer};
use proptest::prelude::{prop_assert, prop_assert_eq};

use super::Kept;

/// An archive: whatever is accepted reads the same twice, holds to the limits, and can be written
/// again; whatever is not is refused, and no disk is blamed for it.
pub fn archive(bytes: &[u8]) -> Kept {
    let plain = judged(bytes, Trailer::Refused);
    let signed = judged(bytes, Trailer::Mcpb);
    if let Ok((archive, listing)) = &plain {
        prop_assert_eq!(archive.trailer_len(), 0);
        prop_assert_eq!(signed.as_ref().ok().map(|(_, signed)| signed), Some(listing));
        check_accepted(archive, listing, bytes)?;
    }
    if let Ok((archive, listing)) = &signed {
        let len = bytes.len() - usize::try_from(archive.trailer_len()).unwrap_or(usize::MAX);
        prop_assert!(
            plain.is_ok() == (len == bytes.len()),
            "what follows is a signature or nothing"
        );
        check_accepted(archive, listing, bytes)?;
    }
    for error in [plain.err(), signed.err()].into_iter().flatten() {
        prop_assert!(error.code().is_some(), "no disk can fail here: {error}");
        prop_assert!(!error.to_string().is_empty());
    }
    Ok(())
}

fn judged(bytes: &[u8], trailer: Trailer) -> Result<(Archive, Listing), ReadError> {
    let archive = Archive::from_bytes(bytes.to_vec(), trailer, &Limits::DEFAULT)?;
    let listing = archive.listing()?;
    Ok((archive, listing))
}

fn check_accepted(archive: &Archive, listing: &Listing, bytes: &[u8]) -> Kept {
    let again = archive.listing();
    prop_assert_eq!(again.as_ref().ok(), Some(listing), "read twice");
    prop_assert_eq!(archive.digest().ok(), Some(Digest::of(bytes)));
    prop_assert!(listing.total() <= Limits::DEFAULT.total_bytes);
    prop_assert!(archive.entries().len() <= Limits::DEFAULT.entries);
    for entry in archive.entries() {
        prop_assert_eq!(check_path(&entry.path), Ok(()), "{}", entry.path);
        prop_assert!(entry.size <= Limits::DEFAULT.file_bytes);
        prop_assert_eq!(archive.get(&entry.path), Some(entry));
        let read = archive.read(entry);
        let content = read.as_ref().ok();
        let sha256 = content.map(|content| Digest::of(content));
        let size = content.map(|content| content.len() as u64);
        prop_assert_eq!(size, Some(entry.size));
        let file =
            sha256.map(|sha256| FileDigest { path: entry.path.clone(), size: entry.size, sha256 });
        prop_assert_eq!(listing.get(&entry.path), file.as_ref());
    }
    check_written_again(archive, listing)
}

/// The same files in an archive of our own are accepted too, and are the same files.
fn check_written_again(archive: &Archive, listing: &Listing) -> Kept {
    let mut copy = Vec::new();
    let mut writer = Writer::new(&mut copy);
    for entry in archive.entries() {
        let packed = Packed::copy(archive, entry).expect("memory can be read");
        writer.add(&packed).expect("memory can be written");
    }
    let written = writer.finish().expect("memory can be written");
    prop_assert_eq!(written.sha256, Digest::of(&copy));
    let (again, same) = match judged(&copy, Trailer::Refused) {
        Ok(judged) => judged,
        Err(error) => return Err(proptest::test_runner::TestCaseError::fail(error.to_string())),
    };
    prop_assert_eq!(&same, listing);
    let facts = |archive: &Archive| -> Vec<_> {
        archive.entries().iter().map(|entry| (entry.path.clone(), entry.executable)).collect()
    };
    prop_assert_eq!(facts(&again), facts(archive));
    Ok(())
}
