//! What a tool reached for and was not let.
//!
//! What it wanted of the network goes through us, so we know. What it looked for among the files we do not: to
//! it they are not there. It is told from what the tool complains of, and whether they are there is
//! not looked at, or whoever calls could find out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};

use egress::Refusal;
use manifest::model::{Action, SideEffects};
use policy::GrantKind;
use sandbox::{Confinement, SCRATCH, is_in_every_room};
use serde_json::Value;

use crate::error::{CallError, Kind};

/// What a tool reached for and was not let.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What it asked for: a name, perhaps as `host:port`, or a path.
    pub asked: String,
    /// Why not.
    pub why: Why,
}

/// Why a tool was not let.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The rules of the network.
    Network(Refusal),
    /// The path is not inside its walls.
    Hidden,
    /// The same, of a path that was to be written.
    HiddenToWriting,
    /// The path may only be read.
    ReadOnly,
}

impl Blocked {
    /// A place of the network.
    pub(crate) fn host(asked: impl Into<String>, why: Refusal) -> Self {
        Self { asked: asked.into(), why: Why::Network(why) }
    }

    /// What a refusal of ours was about, and what was reached for in vain before something else failed.
    pub fn of(error: &CallError) -> Vec<Self> {
        let refused = match &error.kind {
            Kind::Blocked(place) => Some((**place).clone()),
            _ => None,
        };
        refused.into_iter().chain(error.blocked.clone()).collect()
    }

    /// What would have to be granted.
    pub fn kind(&self) -> GrantKind {
        match self.why {
            Why::Network(_) => GrantKind::Host,
            Why::Hidden => GrantKind::Read,
            Why::HiddenToWriting | Why::ReadOnly => GrantKind::Write,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(refusal) => refusal.fmt(out),
            Self::Hidden | Self::HiddenToWriting => out.write_str("it is not inside its walls"),
            Self::ReadOnly => out.write_str("it may only be read"),
        }
    }
}

/// How many paths of one call are told.
const MOST_PATHS: usize = 8;

/// Bytes of a path that is told.
const LONGEST_PATH: usize = 1024;

/// How those complain who do not find a file.
const MISSING: [&str; 7] = [
    "no such file",
    "enoent",
    "not found",
    "does not exist",
    "doesn't exist",
    "cannot find",
    "unable to open",
];

/// How those complain who may not do something with a file.
const REFUSED: [&str; 6] = [
    "read-only file system",
    "erofs",
    "permission denied",
    "eacces",
    "operation not permitted",
    "not writable",
];

/// Words of those who write, in the names of actions and in complaints.
const WRITING: [&str; 10] = [
    "append", "create", "export", "mkdir", "rename", "save", "saving", "touch", "write", "writing",
];

/// Words in the names of what is written.
const WRITTEN: [&str; 7] = ["dest", "destination", "out", "outfile", "output", "target", "to"];

/// What a tool complains of: a file that it misses, or that it may not do something with.
pub(crate) struct Complaint {
    texts: Vec<String>,
    is_missing: bool,
    is_refused: bool,
}

impl Complaint {
    /// The complaint about a file in what a tool said, if there is one.
    pub(crate) fn of(error: &CallError) -> Option<Self> {
        let mut said = vec![error.message.clone()];
        texts(&error.details, "", &mut |_, text| said.push(text.to_owned()));
        let lowered: Vec<String> = said.iter().map(|text| text.to_lowercase()).collect();
        let says = |words: &[&str]| {
            words.iter().any(|word| lowered.iter().any(|said| said.contains(word)))
        };
        let (is_missing, is_refused) = (says(&MISSING), says(&REFUSED));
        (is_missing || is_refused).then_some(Self { texts: said, is_missing, is_refused })
    }
}

/// Paths of the input that a tool misses and that are not whole: it looks for them where it runs, not where its caller
/// is.
pub(crate) fn relative(complaint: &Complaint, input: &str) -> Vec<String> {
    let mut given = Vec::new();
    if let (true, Ok(input)) = (complaint.is_missing, serde_json::from_str(input)) {
        texts(&input, "", &mut |_, text| {
            let is_path = text.contains(['/', '.']) && !text.starts_with('/');
            let is_plain = !text.contains("://") && !text.contains(char::is_control);
            let is_meant = || complaint.texts.iter().any(|said| said.contains(text));
            if is_path && is_plain && text.len() <= LONGEST_PATH && is_meant() {
                given.push(text.to_owned());
            }
        });
    }
    given.truncate(MOST_PATHS);
    given
}

/// The files that a tool missed, by its own complaint and the input of the call, as far as its walls keep them from it.
pub(crate) fn files(
    complaint: &Complaint,
    action: &Action,
    input: &str,
    walls: &Confinement,
    user_home: Option<&Path>,
    is_kept: impl Fn(&Path) -> bool,
) -> Vec<Blocked> {
    let is_home = |folder: &Path| user_home == Some(folder);
    let Complaint { texts: said, is_refused, .. } = complaint;
    // What is given, and whether it is by a name of what is written.
    let mut given = BTreeMap::new();
    if let Ok(input) = serde_json::from_str(input) {
        texts(&input, "", &mut |name, text| {
            given.extend(path(text).map(|path| (path, has_word(name, &[&WRITING, &WRITTEN]))));
        });
    }
    let is_named = given.values().any(|is_written| *is_written);
    let writes = matches!(action.side_effects, Some(SideEffects::Write | SideEffects::Destructive))
        || std::iter::once(&action.name).chain(said).any(|text| has_word(text, &[&WRITING]));
    let is_written = |path: &Path| match given.get(path) {
        Some(is_written) if is_named => *is_written,
        _ => writes,
    };
    let mut found: BTreeSet<PathBuf> = given.keys().cloned().collect();
    found.extend(said.iter().flat_map(|text| paths(text)));
    let blocked = |path: PathBuf| {
        let (asked, why) = match (sees(walls, &path), only_readable(walls, &path)) {
            // What it would write need not be there yet; the folder is.
            (true, Some(folder)) if *is_refused => (folder.to_owned(), Why::ReadOnly),
            // Its scratch folder is its own; of that it is meant only if the caller says so.
            (false, _) if !path.starts_with(SCRATCH) || given.contains_key(&path) => {
                match path.parent().filter(|_| is_written(&path)) {
                    // As above, unless that is the whole disk, or all that the owner has.
                    Some(folder) if folder.parent().is_some() && !is_home(folder) => {
                        (folder.to_owned(), Why::HiddenToWriting)
                    }
                    Some(_) => (path, Why::HiddenToWriting),
                    None => (path, Why::Hidden),
                }
            }
            _ => return None,
        };
        let asked = asked.into_os_string().into_string().ok().filter(|one| !is_kept(one.as_ref()));
        asked.map(|asked| Blocked { asked, why })
    };
    let mut blocked: Vec<_> = found.into_iter().filter_map(blocked).collect();
    blocked.dedup();
    blocked.truncate(MOST_PATHS);
    blocked
}

/// Whether there is anything of the outside at a path in there. The system's own is always.
pub(crate) fn sees(walls: &Confinement, path: &Path) -> bool {
    const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];
    let is_in = |all: &[PathBuf]| all.iter().any(|one| path.starts_with(one));
    let is_own = OWN.iter().any(|one| path.starts_with(one)) || is_in_every_room(path);
    is_own || ((is_in(&walls.readable) || is_in(&walls.writable)) && !is_in(&walls.hidden))
}

/// The file or folder that it was given to read and that holds a path, where it may not write there.
fn only_readable<'w>(walls: &'w Confinement, path: &Path) -> Option<&'w Path> {
    let holds = |one: &&PathBuf| path.starts_with(one);
    let is_writable = walls.writable.iter().any(|one| holds(&one));
    let given = walls.readable.iter().filter(holds).max_by_key(|one| one.components().count());
    given.filter(|_| !is_writable).map(PathBuf::as_path)
}

/// All texts of a value, each with the name of the member it is in.
fn texts<'v>(value: &'v Value, name: &'v str, take: &mut impl FnMut(&'v str, &'v str)) {
    match value {
        Value::String(text) => take(name, text),
        Value::Array(items) => items.iter().for_each(|one| texts(one, name, take)),
        Value::Object(members) => members.iter().for_each(|(name, one)| texts(one, name, take)),
        _ => {}
    }
}

/// Whether a text has one of these words, also as a part of a name: `output_path`, `saveTo`.
fn has_word(text: &str, lists: &[&[&str]]) -> bool {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric());
    words
        .flat_map(parts_of_word)
        .any(|part| lists.iter().copied().flatten().any(|word| part.eq_ignore_ascii_case(word)))
}

/// A word as it is, and the parts that begin with a capital letter.
fn parts_of_word(word: &str) -> impl Iterator<Item = &str> {
    let starts =
        word.char_indices().filter(|(_, sign)| sign.is_ascii_uppercase()).map(|(at, _)| at);
    let ends = starts.clone().chain([word.len()]);
    let parts = std::iter::once(0).chain(starts).zip(ends);
    std::iter::once(word).chain(parts.map(|(start, end)| &word[start..end]))
}

/// A text that is a path and nothing else.
fn path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    // Two strokes begin what is left of a URL.
    let is_path = path.is_absolute() && is_plain && text.len() > 1 && !text.starts_with("//");
    // Collected anew, it has no doubled and no last stroke.
    (is_path && text.len() <= LONGEST_PATH && !text.contains(char::is_control))
        .then(|| path.components().collect())
}

/// The paths that a text names, in quotes or between spaces and signs.
fn paths(text: &str) -> Vec<PathBuf> {
    const QUOTES: [char; 3] = ['\'', '"', '`'];
    let ends =
        |sign: char| sign.is_whitespace() || QUOTES.contains(&sign) || ",;:()[]{}<>".contains(sign);
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let is_start = sign == '/' && (ends(before) || before == '=');
        let length = if !is_start {
            sign.len_utf8()
        } else if QUOTES.contains(&before) {
            rest.find(before).unwrap_or(rest.len())
        } else {
            rest.find(ends).unwrap_or(rest.len())
        };
        let (one, after) = rest.split_at(length);
        if is_start {
            found.extend(path(one.trim_end_matches('.')));
        }
        before = one.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls() -> Confinement {
        Confinement {
            readable: vec!["/srv/tool".into(), "/home/ada/notes".into()],
            writable: vec!["/home/ada/out".into()],
            hidden: vec!["/home/ada/notes/secret".into()],
            ..Confinement::default()
        }
    }

    fn found(message: &str, input: &str) -> Vec<(String, Why)> {
        found_by("look", message, input)
    }

    fn found_by(action: &str, message: &str, input: &str) -> Vec<(String, Why)> {
        let error = CallError::new(Kind::Failed, message);
        let Some(complaint) = Complaint::of(&error) else { return Vec::new() };
        let is_kept =
            |path: &Path| path.starts_with("/home/ada/.mcp") || path.starts_with("/srv/tool");
        let (action, home) = (crate::assumed(action), Path::new("/home/ada"));
        let found = files(&complaint, &action, input, &walls(), Some(home), is_kept);
        found.into_iter().map(|one| (one.asked, one.why)).collect()
    }

    #[test]
    fn a_file_that_is_not_inside_is_told() {
        for message in [
            "[Errno 2] No such file or directory: '/home/ada/a b.txt'",
            "Error: ENOENT: no such file or directory, open '/home/ada/a b.txt'",
            "cannot open \"/home/ada/a b.txt\": not found.",
        ] {
            assert_eq!(
                found(message, "{}"),
                [("/home/ada/a b.txt".to_owned(), Why::Hidden)],
                "{message}"
            );
        }
        let bare = "cat: /home/ada/b.txt: No such file or directory";
        assert_eq!(found(bare, "{}"), [("/home/ada/b.txt".to_owned(), Why::Hidden)]);
        let by_input = found("file not found", r#"{"files":["/data/x//y/"],"note":"see /data/z"}"#);
        assert_eq!(by_input, [("/data/x/y".to_owned(), Why::Hidden)]);
        let covered = found("ENOENT /home/ada/notes/secret/1", "{}");
        assert_eq!(covered, [("/home/ada/notes/secret/1".to_owned(), Why::Hidden)]);
    }

    #[test]
    fn a_file_that_may_only_be_read_is_told_when_that_is_the_complaint() {
        let message = "EROFS: read-only file system, open '/home/ada/notes/new.txt'";
        assert_eq!(found(message, "{}"), [("/home/ada/notes".to_owned(), Why::ReadOnly)]);
        assert!(found("no such file: /home/ada/notes/new.txt", "{}").is_empty());
        assert!(found("Permission denied: /home/ada/out/x", "{}").is_empty());
        assert!(found("Permission denied: /usr/lib/x", "{}").is_empty());
        assert!(found("Permission denied: /srv/tool/cache", "{}").is_empty());
    }

    #[test]
    fn what_was_to_be_written_is_told_as_that() {
        let missing = "No such file or directory: '/home/ada/x/new.txt'";
        let read = [("/home/ada/x/new.txt".to_owned(), Why::Hidden)];
        let write = |path: &str| [(path.to_owned(), Why::HiddenToWriting)];
        let input = |name: &str| format!(r#"{{"{name}":"/home/ada/x/new.txt"}}"#);
        assert_eq!(found_by("read_note", missing, &input("path")), read);
        assert_eq!(found_by("write_note", missing, &input("path")), write("/home/ada/x"));
        assert_eq!(found_by("saveNote", missing, &input("path")), write("/home/ada/x"));
        assert_eq!(found_by("convert", missing, &input("outputPath")), write("/home/ada/x"));
        let making = "ENOENT: no such file or directory, mkdir '/home/ada/x/new'";
        assert_eq!(found(making, "{}"), write("/home/ada/x"));
        let both = r#"{"from":"/data/a","to":"/data/b"}"#;
        let told =
            [("/data".to_owned(), Why::HiddenToWriting), ("/data/a".to_owned(), Why::Hidden)];
        let mut all = found_by("save_copy", "no such file", both);
        all.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(all, told);
        // Nobody is told to hand over everything.
        assert_eq!(found("mkdir: not found: /home/ada/new", "{}"), write("/home/ada/new"));
        assert_eq!(found("mkdir: not found: /new", "{}"), write("/new"));
    }

    #[test]
    fn a_path_that_is_not_whole_is_told_where_the_tool_misses_it() {
        let told = |message: &str, input: &str| {
            let error = CallError::new(Kind::Failed, message);
            Complaint::of(&error).map(|one| relative(&one, input)).unwrap_or_default()
        };
        let missing = "No such file or directory: 'notes/a.txt'";
        assert_eq!(told(missing, r#"{"path":"notes/a.txt"}"#), ["notes/a.txt"]);
        assert_eq!(told("not found: ~/a", r#"["~/a"]"#), ["~/a"]);
        assert!(told(missing, r#"{"path":"/notes/a.txt"}"#).is_empty());
        assert!(told(missing, r#"{"path":"notes/b.txt"}"#).is_empty());
        assert!(told("it broke at notes/a.txt", r#"{"path":"notes/a.txt"}"#).is_empty());
        assert!(told("not found: http://a/b", r#"{"url":"http://a/b"}"#).is_empty());
    }

    #[test]
    fn nothing_else_is_told() {
        assert!(found("it broke at /home/ada/x", r#"{"path":"/home/ada/x"}"#).is_empty());
        assert!(found("no such file: /tmp/own", "{}").is_empty());
        assert_eq!(found("no such file", r#"{"path":"/tmp/mine"}"#).len(), 1);
        assert!(found("no such file: /usr/lib/x /proc/1/maps /etc/passwd", "{}").is_empty());
        assert!(found("no such file: /home/ada/.mcp/vault/x", "{}").is_empty());
        // Of the settings of the system only a few are in there.
        assert_eq!(found("no such file: /etc/ours.conf", "{}").len(), 1);
        assert!(
            found("no such file: /home/ada/../bob/x and/or https://a.b/c / // /.", "{}").is_empty()
        );
        let many: String = (0..50).map(|number| format!(" /data/{number}")).collect();
        assert_eq!(found(&format!("not found:{many}"), "{}").len(), MOST_PATHS);
    }
}
