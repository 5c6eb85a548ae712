//! Faults of content: too much of it, too little, or something else than was said.

use package::limits::Limits;
use package::refusal::RefusalCode as Code;

use super::{Hostile, refused};
use crate::archives::deflate::{self, blocks, deflate, noise, repeated, stored_block};
use crate::archives::zip::{Item, Zip};

const MIB: usize = 1 << 20;

pub(super) fn archives() -> Vec<Hostile> {
    [counts(), bombs(), damages(), sizes()].concat()
}

fn counts() -> Vec<Hostile> {
    let many = |count: usize| Zip::of((0..count).map(|n| Item::stored(&format!("{n:05}"), b"")));
    let limit = Limits::DEFAULT.entries;
    let folders = Zip::of((0..=limit).map(|n| Item::folder(&format!("{n:05}/"))));
    vec![
        refused(Code::TooManyEntries, "one file too many", many(limit + 1)),
        refused(Code::TooManyEntries, "one folder too many", folders),
        refused(Code::TooManyEntries, "as many files as can be counted", many(0xfffe)),
    ]
}

fn bombs() -> Vec<Hostile> {
    let file_limit = usize::try_from(Limits::DEFAULT.file_bytes).expect("a file fits into memory");
    let run = blocks(&vec![0; MIB]);
    let zeros = |mib: usize| repeated(&run, mib);
    // A hundredfold: what shrinks no better is no bomb.
    let thick = blocks(&noise(16 * 1024).repeat(64));
    let large = |name: &str, size: usize| {
        Item::by_hand(name, repeated(&thick, size.div_ceil(MIB)), size, 0x1234_5678)
    };
    let five = Zip::of((0..5).map(|n| large(&format!("{n}.bin"), 60 * MIB)));
    let zeros_each = |count: usize| {
        Zip::of((0..count).map(|n| Item::by_hand(&format!("{n}"), zeros(1), MIB, 0)))
    };
    let many = zeros_each(257);
    let claims = |size: usize| {
        Item::stored("x", b"tiny").both(|header| {
            header.method = 8;
            header.size = u32::try_from(size).expect("a claim fits into its field");
        })
    };
    vec![
        refused(Code::FileTooLarge, "a file of a byte too many", large("x", file_limit + 1)),
        refused(Code::FileTooLarge, "a file that claims nearly 4 GiB", claims(0xffff_fffe)),
        refused(
            Code::FileTooLarge,
            "zeros beyond the limit",
            Item::by_hand("x", zeros(65), 65 * MIB, 0),
        ),
        refused(Code::TotalTooLarge, "five files that are too much together", five),
        refused(Code::TotalTooLarge, "many files of a MiB", many),
        refused(Code::Bomb, "two MiB of zeros", Item::by_hand("x", zeros(2), 2 * MIB, 0)),
        refused(Code::Bomb, "64 MiB of zeros", Item::by_hand("x", zeros(64), 64 * MIB, 0)),
        refused(Code::Bomb, "a byte more than may come of nothing", claims(MIB + 1)),
        refused(Code::Bomb, "17 files of a MiB of zeros each", zeros_each(17)),
        refused(Code::Bomb, "256 files of a MiB of zeros each", zeros_each(256)),
        refused(
            Code::BadDeflate,
            "4 GiB that claim to be ten bytes",
            Item::by_hand("x", zeros(4096), 10, 0),
        ),
        refused(
            Code::BadDeflate,
            "4 GiB that claim to be a MiB",
            Item::by_hand("x", zeros(4096), MIB, 0),
        ),
        refused(
            Code::SizeMismatch,
            "1 GiB that claim to be a MiB",
            Item::by_hand("x", zeros(1024), MIB, 0),
        ),
        refused(
            Code::SizeMismatch,
            "three MiB that claim to be ten bytes",
            Item::by_hand("x", zeros(3), 10, 0),
        ),
        refused(
            Code::SizeMismatch,
            "two MiB that claim to be one",
            Item::by_hand("x", zeros(2), MIB, 0),
        ),
    ]
}

fn damages() -> Vec<Hostile> {
    let content = noise(4_000).repeat(3);
    let whole = deflate(&content);
    let crc = crc32fast::hash(&content);
    let with = |data: Vec<u8>| Item::by_hand("x.bin", data, content.len(), crc);
    let mut flipped = whole.clone();
    flipped[0] |= 0b110;
    let mut bad_length = stored_block(b"content");
    bad_length[3] ^= 1;
    let padded = [&whole[..], &b"\0".repeat(100_000)].concat();
    let cases = [
        ("its first block is of no known kind", with(flipped)),
        ("it ends too early", with(whole[..whole.len() - 1].to_vec())),
        ("it ends in the middle", with(whole[..whole.len() / 2].to_vec())),
        ("a byte follows its end", with([&whole[..], b"x"].concat())),
        ("another stream follows its end", with([&whole[..], &deflate(b"hidden")].concat())),
        ("much follows its end", with(padded)),
        ("it is empty", Item::by_hand("x", Vec::new(), 0, 0)),
        ("it never ends", Item::by_hand("x", deflate::NOTHING.repeat(5), 0, 0)),
        ("it looks back before its beginning", Item::by_hand("x", vec![0x03, 0x02, 0x00], 3, 0)),
        ("a stored block contradicts itself", Item::by_hand("x", bad_length, 7, 0)),
        (
            "it has the header of zlib",
            Item::by_hand("x", [b"\x78\x9c", &whole[..]].concat(), content.len(), crc),
        ),
    ];
    let mut found = cases
        .map(|(name, item)| refused(Code::BadDeflate, format!("compressed data: {name}"), item))
        .to_vec();
    let checksums = [
        ("stored", Item::stored("x", b"content")),
        ("compressed", Item::deflated("x", &content)),
        ("empty", Item::stored("x", b"")),
        ("described after", Item::deflated("x", &content)),
    ];
    found.extend(checksums.map(|(name, item)| {
        let item = item.both(|header| header.crc ^= 1);
        let item = if name == "described after" { item.described(b"PK\x07\x08") } else { item };
        refused(Code::CrcMismatch, format!("another checksum: {name}"), item)
    }));
    let swapped = Item::stored("x", b"content").with(|item| item.data = b"CONTENT".to_vec());
    found.push(refused(Code::CrcMismatch, "another content of the same size", swapped));
    found
}

fn sizes() -> Vec<Hostile> {
    let content = noise(1_000).repeat(5);
    let of_size = |size: usize| {
        let item = Item::deflated("x", &content);
        item.both(|header| header.size = u32::try_from(size).expect("a size fits into its field"))
    };
    let stored = Item::stored("x", b"content").both(|header| header.size = 6);
    vec![
        refused(Code::SizeMismatch, "a byte less than it says", of_size(content.len() + 1)),
        refused(Code::SizeMismatch, "a byte more than it says", of_size(content.len() - 1)),
        refused(Code::SizeMismatch, "something where it says nothing", of_size(0)),
        refused(
            Code::SizeMismatch,
            "nothing where it says something",
            Item::by_hand("x", deflate::END.to_vec(), 1, 0),
        ),
        refused(Code::SizeMismatch, "stored, and of two sizes", stored),
    ]
}
