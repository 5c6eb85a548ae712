//! Faults of one entry: its headers, its attributes, its extra fields, its descriptor.

use package::refusal::RefusalCode as Code;

use super::{Hostile, refused};
use crate::archives::zip::{DESCRIBED_AFTER, Header, Item, extra, sizes};

pub(super) fn archives() -> Vec<Hostile> {
    [mismatches(), methods(), attributes(), extras(), descriptors()].concat()
}

/// What is changed, in words and in a header.
type Change = (&'static str, fn(&mut Header));

const CONTENT: &[u8] = b"content content content content content";

fn file() -> Item {
    Item::deflated("file.txt", CONTENT)
}

fn mismatches() -> Vec<Hostile> {
    let changes: [Change; 14] = [
        ("another name of the same length", |header| header.name = b"evil.txt".to_vec()),
        ("a longer name", |header| header.name.push(b'x')),
        ("a shorter name", |header| header.name.truncate(7)),
        ("a name in other case", |header| header.name = b"FILE.txt".to_vec()),
        ("no name", |header| header.name.clear()),
        ("another method", |header| header.method = 0),
        ("another version", |header| header.needed = 10),
        ("another time", |header| header.time ^= 1),
        ("another day", |header| header.date ^= 1),
        ("another checksum", |header| header.crc ^= 1),
        ("another size", |header| header.size += 1),
        ("another compressed size", |header| header.compressed -= 1),
        ("no sizes, and no descriptor announced", |header| {
            (header.crc, header.compressed, header.size) = (0, 0, 0);
        }),
        ("encryption in one header only", |header| header.flags |= 1),
    ];
    let mut found = changes
        .map(|(name, change)| {
            let item = file().with(|item| change(&mut item.local));
            refused(Code::HeaderMismatch, format!("its own header: {name}"), item)
        })
        .to_vec();
    let described = file().described(b"PK\x07\x08").with(|item| item.local.size = 7);
    found.push(refused(
        Code::HeaderMismatch,
        "a size before its descriptor, a wrong one",
        described,
    ));
    let utf8 = Item::stored("ä", b"x").with(|item| item.local.flags = 0);
    found.push(refused(Code::HeaderMismatch, "UTF-8 in one header only", utf8));
    let mut no_mark: Vec<u8> = file().into();
    let at = no_mark.windows(8).position(|name| name == b"file.txt").expect("the name is there");
    no_mark[at - 30 + 2] = b'Q';
    found.push(refused(Code::HeaderMismatch, "an entry that begins with something else", no_mark));
    found
}

fn methods() -> Vec<Hostile> {
    let mut found = Vec::new();
    for flags in [1, 1 | 1 << 6, 1 << 13, 1 | DESCRIBED_AFTER] {
        let item = file().both(|header| header.flags |= flags);
        found.push(refused(Code::Encrypted, format!("encrypted, flags {flags:#x}"), item));
    }
    let item = file().both(|header| header.method = 99);
    found.push(refused(Code::Encrypted, "encrypted by AES", item));
    for method in [1, 5, 6, 9, 12, 14, 93, 95, 98, 0xffff] {
        let item = file().both(|header| header.method = method);
        found.push(refused(Code::UnknownMethod, format!("method {method}"), item));
    }
    for needed in [21, 45, 63, 0xff] {
        let item = file().both(|header| header.needed = needed);
        found.push(refused(Code::UnknownMethod, format!("version {needed}"), item));
    }
    for bit in [4, 5, 7, 8, 9, 10, 12, 14, 15] {
        let item = file().both(|header| header.flags |= 1 << bit);
        found.push(refused(Code::UnknownFlags, format!("flag {bit}"), item));
    }
    for system in [1, 2, 4, 5, 7, 13, 16, 20, 255] {
        let item = file().with(|item| item.made_by = system << 8 | 0x14);
        found.push(refused(Code::UnknownSystem, format!("system {system}"), item));
    }
    let comment = file().with(|item| item.comment = b"a word".to_vec());
    found.push(refused(Code::EntryComment, "a comment of an entry", comment));
    found
}

fn attributes() -> Vec<Hostile> {
    let mut found = Vec::new();
    let target = || Item::stored("file.txt", b"../../etc/passwd");
    for (name, made_by) in [("Unix", 3), ("FAT", 0), ("NTFS", 10), ("macOS", 19)] {
        let item = target().mode(0o120_777).with(|item| item.made_by = made_by << 8 | 0x14);
        found.push(refused(Code::Link, format!("a link made on {name}"), item));
    }
    let folder = Item::folder("folder/").mode(0o120_777);
    found.push(refused(Code::Link, "a link named as a folder", folder));
    for (name, mode) in [
        ("a character device", 0o020_666),
        ("a block device", 0o060_660),
        ("a pipe", 0o010_644),
        ("a socket", 0o140_755),
        ("a file of no known type", 0o160_644),
        ("a file of all types", 0o170_644),
    ] {
        found.push(refused(Code::SpecialFile, name, file().mode(mode)));
    }
    for (name, bit) in [("a volume label", 0x08), ("a device by a bit of DOS", 0x40)] {
        let item = file().with(|item| item.external |= bit);
        found.push(refused(Code::SpecialFile, name, item));
    }
    for (name, mode) in [
        ("setuid", 0o104_755),
        ("setgid", 0o102_755),
        ("sticky", 0o101_755),
        ("setuid of a file without a type", 0o004_755),
    ] {
        found.push(refused(Code::Setuid, name, file().mode(mode)));
    }
    let sticky = Item::folder("folder/").mode(0o041_777);
    found.push(refused(Code::Setuid, "a sticky folder", sticky));
    let changes = [
        ("a folder by its name, a file by its mode", Item::folder("folder/").mode(0o100_644)),
        ("a file by its name, a folder by its mode", file().mode(0o040_755)),
        ("a file by its name, a folder by DOS", file().with(|item| item.external |= 0x10)),
    ];
    found.extend(changes.map(|(name, item)| refused(Code::KindMismatch, name, item)));
    let folder = |content: &[u8]| Item::stored("folder/", content).mode(0o040_755);
    let claims = folder(b"").both(|header| header.size = 1);
    let checksum = folder(b"").both(|header| header.crc = 1);
    found.extend([
        refused(Code::FolderContent, "a folder with content", folder(b"content")),
        refused(Code::FolderContent, "a folder that claims a byte", claims),
        refused(Code::FolderContent, "a folder with a checksum", checksum),
    ]);
    let compressed = Item::deflated("folder/", b"content").mode(0o040_755);
    found.push(refused(Code::FolderContent, "a folder with compressed content", compressed));
    let hidden = Item::by_hand("folder/", b"hi".to_vec(), 0, 0).mode(0o040_755);
    found.push(refused(Code::FolderContent, "a folder that hides two bytes", hidden));
    found
}

fn extras() -> Vec<Hostile> {
    let second_name = |name: &[u8]| {
        let crc = crc32fast::hash(b"file.txt").to_le_bytes();
        extra(0x7075, &[&[1][..], &crc, name].concat())
    };
    let fields = [
        ("damaged, too short for its head", vec![1, 2, 3]),
        ("damaged, longer than its room", vec![0x55, 0x54, 9, 0, 1]),
        ("a good one, then a damaged one", [&extra(0x5455, &[0; 5])[..], &[0]].concat()),
        ("another name", second_name(b"evil.txt")),
        ("a name with a NUL", second_name(b"file.txt\0")),
        ("a name of another version", extra(0x7075, b"\x02\0\0\0\0file.txt")),
        ("an empty name", extra(0x7075, b"")),
        ("another comment", extra(0x6375, b"\x01\0\0\0\0comment")),
        ("encryption", extra(0x9901, b"\x02\0AE\x03\x08\0")),
        ("strong encryption", extra(0x0017, &[0; 8])),
        ("access rights", extra(0x4453, &[0; 8])),
        ("a link on Unix", extra(0x000d, &[0; 20])),
        ("links and devices on Unix", extra(0x756e, &[0; 20])),
        ("nobody's", extra(0xbeef, b"")),
    ];
    let in_directory = fields.clone().map(|(name, field)| {
        let item = file().with(|item| item.central.extra = field);
        refused(Code::ExtraField, format!("an extra field in the directory: {name}"), item)
    });
    let in_entry = fields.map(|(name, field)| {
        let item = file().with(|item| item.local.extra = field);
        refused(Code::ExtraField, format!("an extra field in the entry: {name}"), item)
    });
    [in_directory, in_entry].concat()
}

fn descriptors() -> Vec<Hostile> {
    let marked = || file().described(b"PK\x07\x08");
    let header = file().central;
    let wrong = |change: fn(&mut Header)| {
        let mut header = header.clone();
        change(&mut header);
        let after = [&b"PK\x07\x08"[..], &sizes(&header)].concat();
        marked().with(|item| item.after = after)
    };
    let crc = header.crc.to_le_bytes();
    let long = |size: u32| u64::from(size).to_le_bytes();
    let large = [&b"PK\x07\x08"[..], &crc, &long(header.compressed), &long(header.size)].concat();
    let stored = Item::stored("file.txt", CONTENT).described(b"PK\x07\x08");
    let cases = [
        ("is missing", marked().with(|item| item.after.clear())),
        ("has another checksum", wrong(|header| header.crc ^= 1)),
        ("has another size", wrong(|header| header.size += 1)),
        ("has another compressed size", wrong(|header| header.compressed += 1)),
        ("has another mark", file().described(b"PK\x07\x09")),
        ("is cut off", marked().with(|item| item.after.truncate(10))),
        ("is one of zip64", marked().with(|item| item.after = large)),
        ("tells the size of stored data", stored),
    ];
    let archive = |(name, item): (&str, Item)| {
        refused(Code::BadDescriptor, format!("a descriptor {name}"), item)
    };
    cases.map(archive).to_vec()
}
