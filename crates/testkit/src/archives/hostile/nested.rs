//! Archives inside an archive: bombs, and boxes in boxes.

use flate2::Compression;
use package::refusal::RefusalCode as Code;

use super::{Hostile, refused};
use crate::archives::deflate::{NOTHING, blocks, deflate_with, noise, repeated, stored_block};
use crate::archives::zip::{Item, Place, Zip, extra};

const MIB: usize = 1 << 20;

pub(super) fn archives() -> Vec<Hostile> {
    [bombs(), slow(), boxes()].concat()
}

fn zeros(mib: usize) -> Vec<u8> {
    repeated(&blocks(&vec![0; MIB]), mib)
}

/// A zip archive that unfolds into so much.
fn bomb(mib: usize) -> Zip {
    Zip::of([Item::by_hand("zeros", zeros(mib), mib * MIB, 0)])
}

/// A gzip file.
fn gzip(content: &[u8]) -> Vec<u8> {
    gzip_of(&deflate_with(content, Compression::new(9)), content, content.len())
}

fn gzip_of(data: &[u8], content: &[u8], size: usize) -> Vec<u8> {
    let crc = crc32fast::hash(content).to_le_bytes();
    let size = u32::try_from(size).expect("a size fits into its field").to_le_bytes();
    [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", data, &crc, &size].concat()
}

fn bombs() -> Vec<Hostile> {
    let whole = bomb(50).bytes();
    let lying = Zip::of([Item::by_hand("zeros", zeros(50), 10, 0)]).bytes();
    let thick = Zip::of((0..300).map(|n| Item::by_hand(&format!("{n}"), zeros(1), MIB, 0)));
    let many = Zip::of((0..5_000).map(|n| Item::stored(&format!("{n}"), b""))).bytes();
    let shared = all_lead_to(&Item::by_hand("zeros", zeros(1), MIB, 0), 100);
    let far = bomb(50).with(|zip| {
        zip.items[0].central.extra = extra(1, &[0; 8]);
        zip.items[0].central.size = 10;
        zip.items[0].offset = Some(u32::MAX);
    });
    let unmeasured = bomb(50).with(|zip| {
        let size = 46 + 5_u64;
        let offset = (30 + 5 + zeros(50).len()) as u64;
        zip.late = records64(1, size, offset);
        zip.end.directory_size = Some(u32::MAX);
        zip.end.directory_offset = Some(u32::MAX);
    });
    let cases = [
        ("a zip", "x.zip", whole.clone()),
        ("a zip by its first bytes only", "x.dat", whole.clone()),
        ("a zip that claims to be small", "x.zip", lying),
        ("a zip of many files", "x.zip", thick.bytes()),
        ("a zip of more files than allowed", "x.zip", many),
        ("a zip whose lines share an entry", "x.zip", shared.bytes()),
        ("a zip behind a program", "x.jar", [&noise(500)[..], &whole].concat()),
        ("a zip with bytes after it", "x.zip", [&whole[..], b"after the end"].concat()),
        (
            "a zip with a comment of a wrong length",
            "x.zip",
            bomb(50)
                .with(|zip| {
                    zip.comment = b"comment".to_vec();
                    zip.end.comment_len = Some(3);
                })
                .bytes(),
        ),
        ("a zip whose entry is found by zip64", "x.zip", far.bytes()),
        ("a zip whose directory is found by zip64", "x.zip", unmeasured.bytes()),
        ("a gzip file", "x.gz", gzip_of(&zeros(50), &vec![0; 50 * MIB], 50 * MIB)),
        ("a gzip file that claims to be small", "x.dat", gzip_of(&zeros(50), b"", 5)),
        ("gzip files one after the other", "x.gz", gzip(&vec![0; MIB]).repeat(50)),
    ];
    let mut found = cases
        .map(|(name, path, inner)| {
            let item = Item::stored(path, &inner);
            refused(Code::NestedBomb, format!("a bomb inside: {name}"), item)
        })
        .to_vec();
    let crc = crc32fast::hash(&whole);
    // The first byte comes alone, and long before the others.
    let (first, rest) = whole.split_at(1);
    let rest = deflate_with(rest, Compression::new(1));
    let late = [stored_block(first), NOTHING.repeat(20_000), rest].concat();
    let late = Item::by_hand("x.dat", late, whole.len(), crc);
    found.push(refused(
        Code::NestedBomb,
        "a bomb inside: a zip whose first byte comes alone",
        late,
    ));
    found.push(refused(
        Code::NestedBomb,
        "a bomb inside: a compressed zip",
        Item::deflated("x.zip", &whole),
    ));
    found
}

/// Little that takes long: every line of an inner directory leads to the same long run of nothing.
fn slow() -> Vec<Hostile> {
    let run = [&NOTHING.repeat(400_000)[..], b"\x03\0"].concat();
    let inner = all_lead_to(&Item::by_hand("", run, 0, 0), 4_096);
    // More lines than the end record counts.
    let uncounted = inner.clone().with(|zip| zip.end.entries = Some(1));
    [("thousands of times the same nothing", inner), ("uncounted, the same nothing", uncounted)]
        .map(|(name, zip)| {
            let bytes = zip.bytes();
            let item = Item::by_hand(
                "x.zip",
                deflate_with(&bytes, Compression::new(6)),
                bytes.len(),
                crc32fast::hash(&bytes),
            );
            // A hundredfold at most, or the outer ratio would refuse it first.
            refused(Code::NestedBomb, format!("a bomb of time inside: {name}"), padded(item))
        })
        .to_vec()
}

/// A zip archive of one entry, to which every line of the directory leads.
fn all_lead_to(entry: &Item, lines: usize) -> Zip {
    let only_listed =
        Item { data: Vec::new(), place: Place::Directory, offset: Some(0), ..entry.clone() };
    let others = std::iter::repeat_n(only_listed, lines - 1);
    Zip::of(std::iter::once(entry.clone()).chain(others))
}

/// The same data with nothing before it, often enough to shrink less than a bomb does.
fn padded(item: Item) -> Item {
    let wanted = item.central.size as usize / 150;
    let missing = wanted.saturating_sub(item.data.len()).div_ceil(NOTHING.len());
    let data = [&NOTHING.repeat(missing)[..], &item.data].concat();
    let len = u32::try_from(data.len()).expect("an archive of a test is small");
    item.with(|item| item.data = data).both(|header| header.compressed = len)
}

fn boxes() -> Vec<Hostile> {
    let small = || Zip::of([Item::stored("a", b"content")]).bytes();
    let in_zip = |inner: &[u8]| Zip::of([Item::stored("inner", inner)]).bytes();
    let in_deflated = Zip::of([Item::deflated("inner.zip", &small().repeat(2))]).bytes();
    let whole = small();
    let (first, rest) = whole.split_at(1);
    let halves = [gzip(first), gzip(rest)].concat();
    let cases = [
        ("a zip in a zip", in_zip(&small())),
        ("a compressed zip in a zip", in_deflated),
        ("a gzip file in a zip", in_zip(&gzip(b"content"))),
        ("an xz file in a zip", in_zip(b"\xfd7zXZ\0 and so on")),
        ("a zstd file in a zip", in_zip(b"\x28\xb5\x2f\xfd and so on")),
        ("a bzip2 file in a zip", in_zip(b"BZh91AY&SY and so on")),
        ("a 7z file in a zip", in_zip(b"7z\xbc\xaf\x27\x1c and so on")),
        ("a rar file in a zip", in_zip(b"Rar!\x1a\x07\0 and so on")),
        ("a zip in a gzip file", gzip(&small())),
        ("a gzip file in a gzip file", gzip(&gzip(b"content"))),
        ("a zip in two gzip files", halves),
    ];
    let archive = |(name, inner): (&str, Vec<u8>)| {
        refused(
            Code::NestedArchive,
            format!("boxes in boxes: {name}"),
            Item::stored("x.dat", &inner),
        )
    };
    cases.map(archive).to_vec()
}

/// The records of zip64 that say where a directory is.
fn records64(entries: u64, size: u64, offset: u64) -> Vec<u8> {
    let at = offset + size;
    let mut out = b"PK\x06\x06".to_vec();
    out.extend(44_u64.to_le_bytes());
    out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for field in [entries, entries, size, offset] {
        out.extend(field.to_le_bytes());
    }
    out.extend(b"PK\x06\x07\0\0\0\0");
    out.extend(at.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out
}
