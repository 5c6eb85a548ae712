//! Archives that must be accepted: everything the common tools write, up to the limits.

mod shapes;

use flate2::Compression;
use manifest::path::{MAX_NAME, MAX_PATH, MAX_SEGMENTS};
use package::limits::Limits;

use super::deflate::{self, NOTHING, blocks, deflate_with, noise, repeated, stored_block};
use super::zip::{Item, Zip};

/// A file of a clean archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanFile {
    /// Its path.
    pub path: String,
    /// What it holds.
    pub content: Vec<u8>,
    /// Whether it can be run.
    pub executable: bool,
}

/// An archive without fault.
#[derive(Clone, Debug)]
pub struct Clean {
    /// What is special about it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The files in it, in the order of their paths.
    pub files: Vec<CleanFile>,
}

/// Every clean archive; each is a few MiB at most.
pub fn clean() -> Vec<Clean> {
    [shapes::archives(), sizes(), names(), limits(), streams()].concat()
}

/// What belongs to an item: the file, if it is one.
type Made = (Item, Option<CleanFile>);

fn accepted(name: impl Into<String>, made: impl IntoIterator<Item = Made>) -> Clean {
    accepted_as(name, made, |zip| zip)
}

fn accepted_as(
    name: impl Into<String>,
    made: impl IntoIterator<Item = Made>,
    finish: impl FnOnce(Zip) -> Zip,
) -> Clean {
    let (items, files): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    let mut files: Vec<_> = files.into_iter().flatten().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Clean { name: name.into(), bytes: finish(Zip::of(items)).bytes(), files }
}

fn file(path: &str, content: &[u8]) -> CleanFile {
    CleanFile { path: path.to_owned(), content: content.to_vec(), executable: false }
}

fn stored(path: &str, content: &[u8]) -> Made {
    (Item::stored(path, content), Some(file(path, content)))
}

fn deflated(path: &str, content: &[u8]) -> Made {
    (Item::deflated(path, content), Some(file(path, content)))
}

fn folder(path: &str) -> Made {
    (Item::folder(path), None)
}

/// Changes the item of something made.
fn but((item, file): Made, change: impl FnOnce(Item) -> Item) -> Made {
    (change(item), file)
}

/// Text that shrinks as text does.
fn text(len: usize) -> Vec<u8> {
    let words = noise(len).into_iter().map(|byte| b"etaoin shrdlu\n"[usize::from(byte) % 14]);
    words.collect()
}

fn sizes() -> Vec<Clean> {
    let mut found = Vec::new();
    let around = [0, 1, 2, 255, 4_096, 65_535, 65_536, 65_537, 131_072, 1_000_000, 1 << 20];
    for size in around {
        found.push(accepted(format!("{size} bytes stored"), [stored("a/b", &noise(size))]));
        found.push(accepted(format!("{size} bytes of text"), [deflated("a/b", &text(size))]));
        found.push(accepted(format!("{size} zeros"), [deflated("a/b", &vec![0; size])]));
    }
    found
}

fn names() -> Vec<Clean> {
    let names = [
        "plain",
        "a.b.c",
        ".hidden",
        ".github/workflows/x.yml",
        "-rf",
        "~",
        "with blank.txt",
        " leading blank",
        "[id].tsx",
        "(group)/page.js",
        "@scope/name.js",
        "#!$%&'+,;=^_`{}~",
        "console.js",
        "com10",
        "nullable/auxiliary.txt",
        "ä/ö.txt",
        "日本語/ファイル.md",
        "Ελληνικά.txt",
        "русский.txt",
        "한국어.txt",
        "עברית.txt",
        "e\u{301}.txt",
        "🦀.rs",
        "a/b/c/d/e/f/g",
        "..a",
        "a..b/..c",
    ];
    let mut found: Vec<_> = names
        .iter()
        .map(|name| accepted(format!("a file named {name:?}"), [stored(name, name.as_bytes())]))
        .collect();
    found.push(accepted("all these names", names.map(|name| deflated(name, name.as_bytes()))));
    let marked = but(stored("ascii", b"x"), |item| item.both(|header| header.flags = 1 << 11));
    found.push(accepted("a plain name, marked as UTF-8", [marked]));
    found
}

fn limits() -> Vec<Clean> {
    let entries = Limits::DEFAULT.entries;
    let name = "n".repeat(MAX_NAME);
    let deep = "d/".repeat(MAX_SEGMENTS - 1) + "f";
    let long = format!("{}/", "n".repeat(204)).repeat(5);
    let path = format!("{}{}", &long[..MAX_PATH - 2], "/x");
    assert_eq!(path.len(), MAX_PATH);
    let many = |count| (0..count).map(|n| stored(&format!("{n:05}"), b""));
    let both =
        (0..entries / 2).flat_map(|n| [folder(&format!("{n}/")), stored(&format!("{n}/f"), b"x")]);
    let free = usize::try_from(Limits::DEFAULT.ratio_free_bytes).expect("a file fits into memory");
    vec![
        accepted("the longest name", [stored(&name, b"x")]),
        accepted("the longest path", [stored(&path, b"x")]),
        accepted("the deepest path", [stored(&deep, b"x")]),
        accepted("the deepest folder", [folder(&("d/".repeat(MAX_SEGMENTS)))]),
        accepted("as many files as may be", many(entries)),
        accepted("as many entries as may be, half of them folders", both),
        accepted("as many zeros as may come of nothing", [deflated("zeros", &vec![0; free])]),
        accepted("exactly the ratio that may be", [at_the_ratio()]),
        accepted("a hundredfold", [hundredfold(4 << 20)]),
    ]
}

/// A file that is exactly as many times larger than its data as it may be.
fn at_the_ratio() -> Made {
    let ratio = usize::try_from(Limits::DEFAULT.ratio).expect("a ratio is small");
    let fits = |step: usize| {
        let content = vec![0; 2_000_000 + step * ratio];
        let data = deflate_with(&content, Compression::new(9));
        let missing = content.len() / ratio - data.len();
        missing.is_multiple_of(NOTHING.len()).then(|| {
            let data = [&NOTHING.repeat(missing / NOTHING.len())[..], &data].concat();
            (content, data)
        })
    };
    let (content, data) = (0..20).find_map(fits).expect("one in five fits");
    by_hand("zeros", data, &content)
}

/// A large file that is small when compressed, but no bomb.
pub fn hundredfold(size: usize) -> Made {
    let block = noise(16 * 1024).repeat(64);
    let content = block.repeat(size / block.len());
    by_hand("large.bin", repeated(&blocks(&block), size / block.len()), &content)
}

fn by_hand(path: &str, data: Vec<u8>, content: &[u8]) -> Made {
    let item = Item::by_hand(path, data, content.len(), crc32fast::hash(content));
    (item, Some(file(path, content)))
}

fn streams() -> Vec<Clean> {
    let content = text(100_000);
    let mut found: Vec<_> = (0..=9)
        .map(|level| {
            let data = deflate_with(&content, Compression::new(level));
            accepted(format!("compressed at level {level}"), [by_hand("a", data, &content)])
        })
        .collect();
    let parts: Vec<_> = content.chunks(1_000).map(stored_block).collect();
    let flushed: Vec<_> = content.chunks(1_000).map(blocks).collect();
    let with_end = |parts: Vec<Vec<u8>>| [&parts.concat()[..], deflate::END].concat();
    let nothing = [&NOTHING.repeat(30_000)[..], &deflate_with(&content, Compression::new(6))];
    found.extend([
        accepted("compressed as stored blocks", [by_hand("a", with_end(parts), &content)]),
        accepted("compressed in many blocks", [by_hand("a", with_end(flushed), &content)]),
        accepted("much nothing before the content", [by_hand("a", nothing.concat(), &content)]),
        accepted("compressed nothing", [by_hand("a", deflate::END.to_vec(), b"")]),
    ]);
    found
}
