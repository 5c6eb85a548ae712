//! What must hold for any bytes that may be a layer of an image.

use image::layer::{Used, write_plain};
use image::{Limits, Source};
use proptest::prelude::{prop_assert, prop_assert_eq};

use super::Kept;

/// Limits that a fuzzer reaches.
const LIMITS: Limits = Limits {
    entries: 64,
    file_bytes: 4096,
    total_bytes: 64 << 10,
    depth: 8,
    path_bytes: 256,
    ..Limits::DEFAULT
};

/// A layer, and an archive: whatever it holds, nothing beside the folder it is unpacked into is made, changed or taken away;
/// limits hold; and what is refused is refused for a reason, with no disk to blame.
pub fn layer(bytes: &[u8]) -> Kept {
    let Ok(around) = tempfile::tempdir() else { return Ok(()) };
    let (inside, outside) = (around.path().join("inside"), around.path().join("outside"));
    let made = std::fs::create_dir(&inside)
        .and_then(|()| std::fs::create_dir(&outside))
        .and_then(|()| std::fs::write(outside.join("kept"), "kept"))
        // A layer below that tries to lead the next one astray.
        .and_then(|()| std::os::unix::fs::symlink("../outside", inside.join("out")))
        .and_then(|()| std::os::unix::fs::symlink(&outside, inside.join("absolute")));
    prop_assert!(made.is_ok());
    let mut used = Used::default();
    let written = write_plain(bytes, &inside, &LIMITS, &mut used);
    if let Err(error) = &written {
        prop_assert!(error.code().is_some(), "no disk can fail here: {error}: {error:?}");
        prop_assert!(!error.to_string().is_empty());
    } else {
        prop_assert!(used.entries <= LIMITS.entries && used.bytes <= LIMITS.total_bytes);
    }
    let kept = std::fs::read_to_string(outside.join("kept")).unwrap_or_default();
    prop_assert_eq!(kept, "kept");
    let count = |path: &std::path::Path| std::fs::read_dir(path).map(Iterator::count).ok();
    prop_assert_eq!((count(&outside), count(around.path())), (Some(1), Some(2)));
    let archive = outside.join("archive.tar");
    prop_assert!(std::fs::write(&archive, bytes).is_ok());
    let _ = Source::open(&archive, &LIMITS);
    Ok(())
}
