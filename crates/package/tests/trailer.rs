//! What may follow an archive: the signature of an MCPB file, and nothing that is another archive.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use package::archive::{Archive, Trailer};
use package::limits::Limits;
use package::refusal::RefusalCode;
use testkit::archives::zip::{Item, Zip};

/// An archive of one file of this name.
fn archive(name: &str) -> Zip {
    Zip::of([Item::stored(name, b"content")])
}

fn signed(archive: &[u8], signature: &[u8]) -> Vec<u8> {
    let len = u32::try_from(signature.len()).unwrap().to_le_bytes();
    [archive, b"MCPB_SIG_V1", &len, signature, b"MCPB_SIG_END"].concat()
}

fn names(bytes: &[u8], trailer: Trailer) -> Result<Vec<String>, Option<RefusalCode>> {
    let archive = Archive::from_bytes(bytes.to_vec(), trailer, &Limits::DEFAULT)
        .map_err(|error| error.code())?;
    Ok(archive.entries().iter().map(|entry| entry.path.clone()).collect())
}

#[test]
fn a_signature_is_cut_off_only_where_one_may_be() {
    let bytes = signed(&archive("shown").bytes(), &[7; 2_000]);
    assert_eq!(names(&bytes, Trailer::Mcpb), Ok(vec!["shown".to_owned()]));
    assert_eq!(names(&bytes, Trailer::Refused), Err(Some(RefusalCode::TrailingData)));
}

#[test]
fn a_signature_that_is_counted_as_the_comment_is_cut_off_too() {
    let frame = 11 + 4 + 12;
    let counted = archive("shown").with(|zip| zip.end.comment_len = Some(2_000 + frame));
    let bytes = signed(&counted.bytes(), &[7; 2_000]);
    assert_eq!(names(&bytes, Trailer::Mcpb), Ok(vec!["shown".to_owned()]));
    let wrong = archive("shown").with(|zip| zip.end.comment_len = Some(2_000));
    assert!(names(&signed(&wrong.bytes(), &[7; 2_000]), Trailer::Mcpb).is_err());
}

/// Readers that look for the end record from the end on would find the one in the signature.
#[test]
fn a_signature_that_holds_another_archive_is_refused() {
    let shown = archive("shown").bytes();
    let hidden = archive("hidden").with(|zip| {
        // Its comment reaches to the end of the file, and its offsets count from the beginning.
        zip.end.comment_len = Some(12);
    });
    let at = u32::try_from(shown.len() + 11 + 4).unwrap();
    let directory = at + 30 + 6 + 7;
    let hidden = hidden.with(|zip| {
        zip.items[0].offset = Some(at);
        zip.end.directory_offset = Some(directory);
    });
    let bytes = signed(&shown, &hidden.bytes());
    assert_eq!(names(&bytes, Trailer::Mcpb), Err(Some(RefusalCode::TwoEndRecords)));
    assert!(names(&bytes, Trailer::Refused).is_err());
}

#[test]
fn two_signatures_are_one_too_many_only_if_they_hide_something() {
    let once = signed(&archive("shown").bytes(), b"first");
    let twice = signed(&once, b"second");
    // The outer one alone fits, and what is before it is no archive.
    assert_eq!(names(&twice, Trailer::Mcpb), Err(Some(RefusalCode::TrailingData)));
}
