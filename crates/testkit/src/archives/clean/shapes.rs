//! The shapes that tools give to an archive: folders, descriptors, extra fields, makers, modes.

use super::{Clean, Made, accepted, accepted_as, but, deflated, folder, stored};
use crate::archives::zip::{Item, Zip, extra};

pub(super) fn archives() -> Vec<Clean> {
    [folders(), descriptors(), extras(), makers(), modes(), ends(), nested()].concat()
}

const TEXT: &[u8] = b"some text, some text, some text, some text";

fn folders() -> Vec<Clean> {
    let old = |path: &str| but(folder(path), |item| item.with(|item| item.external = 0x10));
    let bare = |path: &str| but(folder(path), |item| item.with(|item| item.external = 0));
    // What Python writes for a folder that is written like a file.
    let compressed = |path: &str| {
        let item = Item::deflated(path, b"").mode(0o040_775);
        (item, None)
    };
    vec![
        accepted("no files at all", []),
        accepted("a folder alone", [folder("a/")]),
        accepted("folders in folders", [folder("a/"), folder("a/b/"), folder("a/b/c/")]),
        accepted("a folder before its file", [folder("a/"), stored("a/b", TEXT)]),
        accepted("a folder after its file", [stored("a/b", TEXT), folder("a/")]),
        accepted("a folder that only its file implies", [stored("a/b/c", TEXT)]),
        accepted("files out of order", [stored("c", TEXT), stored("a", TEXT), stored("b", TEXT)]),
        accepted("a folder as DOS marks it", [old("a/"), stored("a/b", TEXT)]),
        accepted("a folder only by its name", [bare("a/"), stored("a/b", TEXT)]),
        accepted("a compressed folder", [compressed("a/"), deflated("a/b", TEXT)]),
    ]
}

fn descriptors() -> Vec<Clean> {
    const MARK: &[u8] = b"PK\x07\x08";
    let described = |made: Made, mark: &[u8]| but(made, |item| item.described(mark));
    let told_twice = |made: Made| {
        but(made, |item| {
            let local = item.local.clone();
            item.described(MARK).with(|item| {
                item.local = local;
                item.local.flags = item.central.flags;
            })
        })
    };
    let all =
        |mark: &'static [u8]| ["a", "b/c", "b/d"].map(|path| described(deflated(path, TEXT), mark));
    vec![
        accepted("described after", all(MARK)),
        accepted("described after, without a mark", all(b"")),
        accepted("described before and after", [told_twice(deflated("a", TEXT))]),
        accepted("an empty file described after", [described(stored("a", b""), MARK)]),
        accepted("a compressed empty file described after", [described(deflated("a", b""), MARK)]),
        accepted("a folder described after", [described(folder("a/"), MARK)]),
        accepted(
            "one described after, one before",
            [described(deflated("a", TEXT), MARK), stored("b", TEXT), deflated("c", TEXT)],
        ),
    ]
}

fn extras() -> Vec<Clean> {
    let with = |local: Vec<u8>, central: Vec<u8>| {
        but(deflated("file.txt", TEXT), |item| {
            item.with(|item| (item.local.extra, item.central.extra) = (local, central))
        })
    };
    let times = extra(0x5455, &[3, 0, 0, 0, 0x60, 0, 0, 0, 0x60]);
    let time = extra(0x5455, &[1, 0, 0, 0, 0x60]);
    let owner = extra(0x7875, &[1, 4, 0xe8, 3, 0, 0, 4, 0xe8, 3, 0, 0]);
    let name = [&[1][..], &crc32fast::hash(b"file.txt").to_le_bytes(), b"file.txt"].concat();
    let name = extra(0x7075, &name);
    let ntfs = extra(0x000a, &[&[0; 4][..], &[1, 0, 24, 0], &[7; 24]].concat());
    let all = [&times[..], &owner, &name, &ntfs].concat();
    vec![
        accepted("times", [with(times.clone(), time.clone())]),
        accepted("times in the entry only", [with(times.clone(), Vec::new())]),
        accepted("times in the directory only", [with(Vec::new(), time.clone())]),
        accepted(
            "times and owner",
            [with([times, owner.clone()].concat(), [time, owner].concat())],
        ),
        accepted("old times and owner", [with(extra(0x5855, &[0; 12]), extra(0x5855, &[0; 8]))]),
        accepted("an old owner", [with(extra(0x7855, &[0; 4]), extra(0x7855, &[]))]),
        accepted("the same name once more", [with(name.clone(), name)]),
        accepted("times on NTFS", [with(Vec::new(), ntfs)]),
        accepted("all of them", [with(all.clone(), all)]),
        accepted("an empty field", [with(extra(0x5455, &[]), extra(0x5455, &[]))]),
    ]
}

fn makers() -> Vec<Clean> {
    let systems = [
        ("FAT", 0),
        ("Unix", 3),
        ("NTFS", 10),
        ("NTFS, the other", 11),
        ("VFAT", 14),
        ("macOS", 19),
    ];
    let mut found: Vec<_> = systems
        .iter()
        .map(|(name, system)| {
            let made_by = |made| {
                but(made, |item| {
                    item.with(|item| {
                        item.made_by = system << 8 | 0x3f;
                        item.external &= 0xffff;
                    })
                })
            };
            let made = [folder("a/"), stored("a/b", TEXT), deflated("c", TEXT)].map(made_by);
            accepted(format!("made on {name}"), made)
        })
        .collect();
    for flags in [1 << 1, 1 << 2, 1 << 1 | 1 << 2] {
        let made = but(deflated("a", TEXT), |item| item.both(|header| header.flags |= flags));
        found.push(accepted(format!("compressed with effort {flags}"), [made]));
    }
    for needed in [0, 10, 11, 20] {
        let made = but(deflated("a", TEXT), |item| item.both(|header| header.needed = needed));
        found.push(accepted(format!("for version {needed}"), [made]));
    }
    let archive_bit = but(stored("a", TEXT), |item| item.with(|item| item.external |= 0x27));
    let as_text = but(stored("a", TEXT), |item| item.with(|item| item.internal = 1));
    let no_time =
        but(stored("a", TEXT), |item| item.both(|header| (header.time, header.date) = (0, 0)));
    found.extend([
        accepted("the bits of DOS that say nothing", [archive_bit]),
        accepted("marked as text", [as_text]),
        accepted("a day there never was", [no_time]),
    ]);
    found
}

fn modes() -> Vec<Clean> {
    let modes = [
        0o100_644, 0o100_755, 0o100_600, 0o100_700, 0o100_777, 0o100_000, 0o100_444, 0o100_555,
        0o100_100, 0o100_011, 0o644, 0o755, 0,
    ];
    let each = modes.map(|mode| {
        let (item, file) = stored("run.sh", b"#!/bin/sh\n");
        let file = file.map(|mut file| {
            file.executable = mode & 0o100 != 0;
            file
        });
        accepted(format!("mode {mode:o}"), [(item.mode(mode), file)])
    });
    each.to_vec()
}

fn ends() -> Vec<Clean> {
    let with = |comment: Vec<u8>| move |zip: Zip| zip.with(|zip| zip.comment = comment);
    let made = || [stored("a", TEXT), deflated("b", TEXT)];
    vec![
        accepted_as("the commit id of git", made(), with(b"0123456789abcdef0123".repeat(2))),
        accepted_as("a longer commit id", made(), with(b"0123456789abcdef".repeat(4))),
        accepted_as("a commit id and no files", [], with(b"0".repeat(40))),
    ]
}

/// Archives inside that are no bombs, and files that only look like archives.
fn nested() -> Vec<Clean> {
    let inner = Zip::of([Item::deflated("a", TEXT), Item::stored("b/c", TEXT)]).bytes();
    let empty = Zip::default().bytes();
    let text = super::text(200_000);
    let data = super::deflate_with(&text, flate2::Compression::new(6));
    let crc = crc32fast::hash(&text).to_le_bytes();
    let gzip =
        [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", &data[..], &crc, &200_000_u32.to_le_bytes()].concat();
    let marks = b"PK\x03\x04PK\x01\x02PK\x05\x06PK\x06\x07PK\x07\x08".repeat(20);
    vec![
        accepted("a wheel inside", [stored("x-1.0-py3-none-any.whl", &inner)]),
        accepted("a compressed archive inside", [deflated("x.zip", &inner)]),
        accepted("an empty archive inside", [stored("x.zip", &empty)]),
        accepted("a gzip file inside", [stored("x.json.gz", &gzip)]),
        accepted(
            "a program with an archive inside",
            [stored("x.pyz", &[b"#!python\n", &inner[..]].concat())],
        ),
        accepted("no archive, but named so", [stored("x.zip", b"no archive")]),
        accepted("an empty file named as an archive", [stored("x.zip", b"")]),
        accepted("marks of archives, again and again", [stored("x.bin", &marks)]),
        accepted(
            "a file of one letter that archives begin with",
            [stored("x", b"P"), stored("y", b"\x1f")],
        ),
        accepted("a damaged gzip file inside", [stored("x.gz", &gzip[..gzip.len() / 2])]),
    ]
}
