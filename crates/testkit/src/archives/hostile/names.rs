//! Faults of names: those that lead elsewhere, and those that are two for one file.

use package::refusal::RefusalCode as Code;

use super::{Hostile, refused};
use crate::archives::zip::{Item, UTF8, Zip};

pub(super) fn archives() -> Vec<Hostile> {
    [alone(), encodings(), lengths(), together()].concat()
}

/// A file of this name, or a folder when it ends in a slash.
fn named(name: &str) -> Item {
    if name.ends_with('/') { Item::folder(name) } else { Item::stored(name, b"content") }
}

fn alone() -> Vec<Hostile> {
    let cases: [(Code, &[&str]); 14] = [
        (Code::EmptyName, &["", "/"]),
        (Code::AbsolutePath, &["/etc/passwd", "//server/share/x", "/../x", "/folder/", "//"]),
        (Code::Backslash, &["..\\x", "a\\b", "\\\\server\\share", "C:\\x", "a/b\\..\\..\\c"]),
        (Code::Drive, &["C:/x", "c:x", "file.txt:stream", "a/b:c/d", "x::$DATA"]),
        (Code::Wildcard, &["a<b", "a>b", "a\"b", "a|b", "a?b", "*", "dir*/x"]),
        (Code::EmptySegment, &["a//b", "a//", "a/b///c"]),
        (Code::DotSegment, &[".", "./a", "a/./b", "a/.", "./", "a/./"]),
        (Code::ParentSegment, &["..", "../x", "a/../../x", "a/..", "../", "a/b/../c", "a/../"]),
        (Code::TrailingDot, &["a.", "a ", "a./b", "a /b", "...", "a/... ", "folder./"]),
        (Code::Repository, &[".git/config", "a/.GIT/hooks/post-checkout", ".git", "git~1/config"]),
        (
            Code::ReservedName,
            &[
                "CON",
                "nul",
                "a/aux.txt",
                "com1",
                "LPT9.log",
                "prn/x",
                "CONIN$",
                "com¹",
                "COM0",
                "nul .x",
            ],
        ),
        (
            Code::HiddenCharacter,
            &[
                "a\0b",
                "a\nb",
                "a\rb",
                "a\tb",
                "\u{1b}[31mred",
                "a\u{7f}",
                "a\u{85}b",
                "invoice\u{202e}fdp.exe",
                "a\u{200b}b",
                "a\u{200d}b",
                "a\u{2066}b",
                "\u{feff}a",
                "a\u{ad}b",
                "a\u{2028}b",
                "a\u{e0041}b",
                "a\u{fff9}b",
                "a\u{61c}b",
            ],
        ),
        (
            Code::DisguisedPath,
            &[
                "a\u{ff0f}b",
                "\u{2024}\u{2024}/x",
                "\u{2025}/x",
                "\u{ff0e}\u{ff0e}/x",
                "c\u{ff1a}x",
                "a\u{ff3c}b",
                "\u{ff43}on",
                "x\u{ff0e}",
                "a\u{3000}",
                "\u{2100}",
                "a\u{fe56}",
            ],
        ),
        (Code::PathTooDeep, &[]),
    ];
    let each =
        cases.into_iter().flat_map(|(code, names)| names.iter().map(move |name| (code, *name)));
    each.map(|(code, name)| refused(code, format!("the name {name:?}"), named(name))).collect()
}

fn encodings() -> Vec<Hostile> {
    let cases: [(&str, &[u8], u16); 7] = [
        ("UTF-8 that is not marked", "ä".as_bytes(), 0),
        ("an old code page", b"caf\x82", 0),
        ("Latin-1, marked as UTF-8", b"caf\xe9", UTF8),
        ("a slash in two bytes", b"..\xc0\xaf..\xc0\xafx", UTF8),
        ("half a pair", b"\xed\xa0\x80", UTF8),
        ("a sequence that is cut off", b"a\xe2\x82", UTF8),
        ("more than there is", b"\xf5\x80\x80\x80", UTF8),
    ];
    let archive = |(name, bytes, flags): (&str, &[u8], u16)| {
        let item = Item::stored("x", b"content").both(|header| {
            header.name = bytes.to_vec();
            header.flags = flags;
        });
        refused(Code::NameEncoding, format!("a name in {name}"), item)
    };
    cases.map(archive).to_vec()
}

fn lengths() -> Vec<Hostile> {
    let folders = |count: usize| "d/".repeat(count);
    let long = format!("{}/", "n".repeat(200)).repeat(5);
    vec![
        refused(Code::PathTooLong, "a name of 256 bytes", named(&"n".repeat(256))),
        refused(Code::PathTooLong, "a folder of 256 bytes", named(&("n".repeat(256) + "/x"))),
        refused(Code::PathTooLong, "86 letters of three bytes", named(&"日".repeat(86))),
        refused(Code::PathTooLong, "a path of 1,025 bytes", named(&(long + &"n".repeat(20)))),
        refused(Code::PathTooLong, "a path of 1,900 bytes", named(&"n".repeat(1_900))),
        refused(Code::PathTooDeep, "a file in 32 folders", named(&(folders(32) + "f"))),
        refused(Code::PathTooDeep, "33 folders", named(&folders(33))),
        refused(Code::PathTooDeep, "a file in 400 folders", named(&(folders(400) + "f"))),
    ]
}

fn together() -> Vec<Hostile> {
    let cases: [(Code, &[&[&str]]); 4] = [
        (
            Code::DuplicatePath,
            &[&["a", "a"], &["b/", "b/"], &["b/c", "x", "b/c"], &["b/c", "b/", "b/"]],
        ),
        (
            Code::CaseTwin,
            &[
                &["a", "A"],
                &["a/x", "A/y"],
                &["a/", "A/"],
                &["README", "readme"],
                &["É", "é"],
                &["\u{212b}", "\u{c5}"],
                &["a", "A/x"],
                &["x/Σ", "x/σ"],
            ],
        ),
        (
            Code::FormTwin,
            &[
                &["\u{fb01}", "fi"],
                &["e\u{301}", "\u{e9}"],
                &["x\u{b2}", "x2"],
                &["Stra\u{df}e", "STRASSE"],
                &["\u{ff41}/x", "a/y"],
                &["\u{1e9e}", "ss"],
                &["\u{3c2}", "\u{3c3}"],
                &["\u{17f}", "s"],
                &["\u{fb01}/x", "fi"],
            ],
        ),
        (
            Code::FileAsParent,
            &[
                &["a", "a/b"],
                &["a/b", "a"],
                &["a", "a/"],
                &["a/", "a"],
                &["a/b/c", "a/b"],
                &["x", "a/b/c", "a"],
            ],
        ),
    ];
    let each =
        cases.into_iter().flat_map(|(code, sets)| sets.iter().map(move |names| (code, *names)));
    each.map(|(code, names)| {
        let archive = Zip::of(names.iter().map(|name| named(name)));
        refused(code, format!("the names {names:?}"), archive)
    })
    .collect()
}
