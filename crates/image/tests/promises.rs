//! What must hold for any bytes: the same that a fuzzer tries.

mod kit;

use kit::Tar;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use testkit::fuzz;

/// Pieces of names with a meaning.
const PARTS: &[&str] = &[
    "..",
    ".",
    "",
    "a",
    "b",
    "out",
    "absolute",
    "kept",
    ".wh.",
    ".wh.kept",
    ".wh..",
    ".wh..wh..opq",
    ".wh.a",
    "outside",
    "\u{1b}",
    "name-with-some-length",
];

/// Sizes that a header can claim.
const SIZES: &[u64] =
    &[1, 512, u32::MAX as u64, 1 << 40, i64::MAX as u64, u64::MAX - 511, u64::MAX];

fn name() -> impl Strategy<Value = String> {
    vec(select(PARTS), 0..6).prop_map(|parts| parts.join("/"))
}

/// A tar of hostile entries.
fn tar() -> impl Strategy<Value = Vec<u8>> {
    let kind = select(b"0011222555346xgLKS\0".to_vec());
    // Mostly true, and then as large as can be said.
    let size = prop_oneof![8 => Just(None), 1 => select(SIZES).prop_map(Some)];
    let entry = (kind, name(), name(), any::<u32>(), vec(any::<u8>(), 0..40), size);
    vec(entry, 0..12).prop_map(|entries| {
        let mut tar = Tar::default();
        for (kind, name, target, mode, content, size) in entries {
            if let Some(size) = size {
                tar.block(kind, name.as_bytes(), target.as_bytes(), mode & 0o7777, size);
                continue;
            }
            let content = if matches!(kind, b'0' | 0 | b'x' | b'g' | b'L' | b'K') {
                content
            } else {
                Vec::new()
            };
            tar.push(kind, name.as_bytes(), target.as_bytes(), mode & 0o7777, &content);
        }
        tar.bytes()
    })
}

#[test]
fn any_layer_stays_in_its_folder() {
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1500) });
    runner.run(&tar(), |bytes| fuzz::layer(&bytes)).unwrap();
    let damage = (tar(), vec((any::<Index>(), any::<u8>()), 0..4), any::<Index>());
    runner
        .run(&damage, |(mut bytes, changes, end)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(end.index(bytes.len()) + 1);
            fuzz::layer(&bytes)
        })
        .unwrap();
}
