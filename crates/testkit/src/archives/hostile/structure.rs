//! Faults of the whole: end records, directories, and what belongs to nobody.

use package::refusal::RefusalCode as Code;

use super::{Hostile, refused};
use crate::archives::zip::{Item, Place, Zip, extra};

pub(super) fn archives() -> Vec<Hostile> {
    [ends(), around(), disks_and_zip64(), directories(), places()].concat()
}

/// What is changed, in words and in an archive.
type Change = (&'static str, fn(&mut Zip));

/// An honest archive of two files.
fn honest() -> Zip {
    Zip::of([Item::stored("a", b"first"), Item::deflated("b/c", &b"second ".repeat(50))])
}

fn ends() -> Vec<Hostile> {
    let whole = honest().bytes();
    let no_archive = [
        ("nothing at all", Vec::new()),
        ("a text", b"this is no archive, and long enough to hold an end record".to_vec()),
        ("an end record without its last byte", Zip::default().bytes()[..21].to_vec()),
        ("an archive without its last byte", whole[..whole.len() - 1].to_vec()),
        ("an archive without its end record", whole[..whole.len() - 22].to_vec()),
        (
            "a comment longer than the file",
            honest().with(|zip| zip.end.comment_len = Some(9)).into(),
        ),
        ("more after the end than any comment", [&whole[..], &vec![b' '; 70_000]].concat()),
        ("a compressed tape", b"\x1f\x8b\x08\0\0\0\0\0\0\x03 and so on, for a while".to_vec()),
    ];
    let comments = [
        ("a word", b"hello".to_vec()),
        ("a commit id in upper case", b"ABCDEF0123".repeat(4)),
        ("a digit less than a commit id", b"0".repeat(39)),
        ("nearly a commit id", [&b"0".repeat(39)[..], b"g"].concat()),
        ("as much as there is room for", vec![b' '; 0xffff]),
    ];
    let end_again = whole[whole.len() - 22..].to_vec();
    let empty_end = Zip::default().bytes();
    let twice = [
        ("the same end record twice", honest().with(|zip| zip.late.clone_from(&end_again))),
        ("an empty archive's end record before its own", honest().with(|zip| zip.late = empty_end)),
        ("an end record as the comment of another", honest().with(|zip| zip.comment = end_again)),
    ];
    let mut found = Vec::new();
    found.extend(no_archive.map(|(name, bytes)| refused(Code::NotAnArchive, name, bytes)));
    found.extend(comments.map(|(name, comment)| {
        let archive = honest().with(|zip| zip.comment = comment);
        refused(Code::ArchiveComment, format!("a comment: {name}"), archive)
    }));
    found.extend(twice.map(|(name, zip)| refused(Code::TwoEndRecords, name, zip)));
    found.push(refused(Code::TwoEndRecords, "the same archive twice", whole.repeat(2)));
    found
}

fn around() -> Vec<Hostile> {
    let whole = honest().bytes();
    let other = Zip::of([Item::stored("quite another file", b"with other content")]).bytes();
    let trailing =
        [("a byte", b"x".to_vec()), ("a line break", b"\n".to_vec()), ("zeros", vec![0; 30_000])];
    let mut found = trailing
        .map(|(name, bytes)| {
            let archive = honest().with(|zip| zip.trailing = bytes);
            refused(Code::TrailingData, format!("after the end: {name}"), archive)
        })
        .to_vec();
    let after_comment = honest().with(|zip| {
        zip.comment = b"0123456789".repeat(4);
        zip.trailing = b"x".to_vec();
    });
    found.push(refused(Code::TrailingData, "a byte after a commit id", after_comment));
    let script = b"#!/bin/sh\nexec unzip \"$0\"\n".to_vec();
    let counted = honest().with(|zip| zip.items[0].before.clone_from(&script));
    let unlisted = honest().with(|zip| zip.items[0].place = Place::Entries);
    let nothing = Zip::default().with(|zip| zip.gap.clone_from(&script));
    found.extend([
        refused(Code::PrefixData, "a program before", honest().with(|zip| zip.prefix = script)),
        refused(Code::PrefixData, "a program before, counted by the offsets", counted),
        refused(Code::PrefixData, "bytes before a directory of nothing", nothing),
        refused(Code::PrefixData, "a first entry the directory does not list", unlisted),
        refused(Code::PrefixData, "another archive before", [&other[..], &whole].concat()),
    ]);
    found
}

fn disks_and_zip64() -> Vec<Hostile> {
    let disks: [Change; 4] = [
        ("this is the second disk", |zip| zip.end.disk = 1),
        ("the directory begins on the second disk", |zip| zip.end.directory_disk = 1),
        ("only one of two entries is here", |zip| zip.end.entries_here = Some(1)),
        ("an entry lies on the second disk", |zip| zip.items[1].disk = 1),
    ];
    let large: [Change; 9] = [
        ("a locator before the end record", |zip| zip.late = records64()),
        ("too many entries to count", |zip| zip.end.entries = Some(0xffff)),
        ("a directory too large to measure", |zip| zip.end.directory_size = Some(u32::MAX)),
        ("a directory too far away", |zip| zip.end.directory_offset = Some(u32::MAX)),
        ("an entry too far away", |zip| zip.items[1].offset = Some(u32::MAX)),
        ("a size too large", |zip| zip.items[1].central.size = u32::MAX),
        ("a compressed size too large", |zip| zip.items[1].central.compressed = u32::MAX),
        ("an extra field in the directory", |zip| {
            zip.items[1].central.extra = extra(1, &[0; 16]);
        }),
        ("an extra field in an entry's own header", |zip| {
            zip.items[1].local.extra = extra(1, &[0; 16]);
        }),
    ];
    let disks =
        disks.map(|(name, change)| refused(Code::SeveralDisks, name, honest().with(change)));
    let large = large.map(|(name, change)| {
        refused(Code::Zip64, format!("zip64: {name}"), honest().with(change))
    });
    [&disks[..], &large].concat()
}

/// The two records of zip64 that stand before the end record.
fn records64() -> Vec<u8> {
    let end = [&b"PK\x06\x06"[..], &44_u64.to_le_bytes(), &[45, 0, 45, 0], &[0; 40]].concat();
    let locator = [&b"PK\x06\x07"[..], &[0; 12], &1_u32.to_le_bytes()].concat();
    [end, locator].concat()
}

fn directories() -> Vec<Hostile> {
    let changes: [Change; 7] = [
        ("it has more lines than are counted", |zip| zip.end.entries = Some(1)),
        ("it has fewer lines than are counted", |zip| zip.end.entries = Some(3)),
        ("it begins a byte later", |zip| zip.end.directory_offset = Some(136)),
        ("it begins after the file", |zip| zip.end.directory_offset = Some(1 << 30)),
        ("it is larger than the file", |zip| zip.end.directory_size = Some(1 << 30)),
        ("it counts the bytes after it", |zip| {
            zip.late = b"four".to_vec();
            zip.end.directory_size = Some(46 * 2 + 4 + 4);
        }),
        ("there are lines, and none is counted", |zip| zip.end.entries = Some(0)),
    ];
    let mut found: Vec<_> = changes
        .into_iter()
        .map(|(name, change)| {
            refused(Code::BadDirectory, format!("a directory: {name}"), honest().with(change))
        })
        .collect();
    let whole = honest().bytes();
    let at = whole.windows(4).rposition(|mark| mark == b"PK\x01\x02").expect("there is a line");
    for (name, place, byte) in [
        ("its second line begins with something else", at, b'Q'),
        ("the name of its last line is longer than it", at + 28, 0xff),
        ("the extra field of its last line is longer than it", at + 31, 0xff),
        ("the comment of its last line is longer than it", at + 33, 0xff),
    ] {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        found.push(refused(Code::BadDirectory, format!("a directory: {name}"), bytes));
    }
    found
}

fn places() -> Vec<Hostile> {
    let three =
        || Zip::of(["a", "b", "c"].map(|name| Item::stored(name, name.repeat(100).as_bytes())));
    let gaps: [Change; 6] = [
        ("bytes between two entries", |zip| zip.items[1].before = b"hidden".to_vec()),
        ("bytes before the directory", |zip| zip.gap = b"hidden".to_vec()),
        ("an entry that is not listed", |zip| zip.items[1].place = Place::Entries),
        ("an entry inside the directory", |zip| zip.items[2].offset = Some(400)),
        ("an entry after the file", |zip| zip.items[2].offset = Some(1 << 30)),
        ("a last entry that is not listed", |zip| zip.items[2].place = Place::Entries),
    ];
    let overlaps: [Change; 6] = [
        ("two lines for one entry", |zip| zip.items[1].offset = Some(0)),
        ("an entry inside another", |zip| zip.items[1].offset = Some(31)),
        ("data that reaches into the next entry", |zip| longer(&mut zip.items[0], 1)),
        ("data that reaches into the directory", |zip| longer(&mut zip.items[2], 1)),
        ("data that reaches beyond the file", |zip| longer(&mut zip.items[2], 10_000_000)),
        ("an extra field that reaches into the next entry", |zip| {
            zip.items[1].local.extra = extra(0x5455, &[0; 200]);
            let next = 131 + 131;
            zip.items[2].offset = Some(next);
        }),
    ];
    let mut found = Vec::new();
    found.extend(gaps.map(|(name, change)| refused(Code::Gap, name, three().with(change))));
    found.extend(overlaps.map(|(name, change)| refused(Code::Overlap, name, three().with(change))));
    found.extend(orders(&three()));
    found.push(refused(Code::Overlap, "many entries that share one run of data", shared()));
    found.extend(beyond());
    found
}

/// The same entries, in the directory in another order than in the file.
fn orders(three: &Zip) -> Vec<Hostile> {
    [[1, 0, 2], [0, 2, 1], [2, 1, 0]]
        .map(|order: [u32; 3]| {
            let mut zip = three.clone();
            // An entry is a header of 30 bytes, a name of one and a hundred bytes of data.
            for (item, place) in zip.items.iter_mut().zip(order) {
                let name = vec![b'a' + u8::try_from(place).expect("there are three")];
                item.central.crc = crc32fast::hash(&name.repeat(100));
                item.central.name = name;
                item.offset = Some(place * 131);
            }
            refused(Code::Overlap, format!("a directory in the order {order:?}"), zip)
        })
        .to_vec()
}

fn longer(item: &mut Item, by: u32) {
    for header in [&mut item.local, &mut item.central] {
        header.compressed += by;
        header.size += by;
    }
}

/// Every entry's data begins with a block that skips the header of the next, and ends with the
/// data of the last: few bytes, many large files.
fn shared() -> Zip {
    let kernel = crate::archives::deflate::deflate(&vec![0; 200_000]);
    let mut zip = Zip::default();
    let mut rest: u32 = 30 + 2 + u32::try_from(kernel.len()).expect("zeros become few bytes");
    let mut items = vec![Item::by_hand("10", kernel, 200_000, 0)];
    for index in (0..10).rev() {
        // A stored block of the length of the next header.
        let item = Item::by_hand(&format!("0{index}"), vec![0, 32, 0, 223, 255], 200_000, 0);
        let reach = 5 + rest;
        items.push(item.both(|header| header.compressed = reach));
        rest += 30 + 2 + 5;
    }
    items.reverse();
    zip.items = items;
    zip
}

/// Claims that lead the reader beyond the end of the file, one step at a time.
fn beyond() -> Vec<Hostile> {
    let far = 0x7fff_0000;
    let chain = |change: fn(&mut Item)| {
        let mut items = ["a", "b", "c"].map(|name| Item::deflated(name, b"content"));
        items[0] = items[0].clone().both(|header| header.compressed = far);
        change(&mut items[0]);
        let reach = 31 + u32::from(u16::try_from(items[0].local.extra.len()).unwrap_or(0)) + far;
        let after = u32::try_from(items[0].after.len()).unwrap_or(0);
        items[1].offset = Some(reach + after);
        items[2].offset = Some(reach + after + 38);
        Zip::of(items)
    };
    let described: fn(&mut Item) = |item| *item = item.clone().described(b"PK\x07\x08");
    let long_extra = || {
        // The own header claims an extra field longer than the file.
        let mut bytes = chain(|_| {}).bytes();
        bytes[28..30].copy_from_slice(&u16::MAX.to_le_bytes());
        let second = bytes.windows(4).rposition(|mark| mark == b"PK\x01\x02").unwrap_or(0) - 47;
        let offset = (31 + far + u32::from(u16::MAX)).to_le_bytes();
        bytes[second + 42..second + 46].copy_from_slice(&offset);
        bytes
    };
    vec![
        refused(Code::Overlap, "entries one after the other beyond the file", chain(|_| {})),
        refused(Code::Overlap, "a descriptor beyond the file", chain(described)),
        refused(Code::Overlap, "an extra field beyond the file", long_extra()),
    ]
}
