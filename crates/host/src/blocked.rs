//! What a tool reached for and was not let.
//!
//! What it wanted of the network goes through us, so we know. What it looked for among the files we do not: to
//! it they are not there. It is told from what the tool complains of, and whether they are there is
//! not looked at, or whoever calls could find out.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use egress::Refusal;
use policy::GrantKind;
use sandbox::{Confinement, SCRATCH, runtime};
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
            Why::ReadOnly => GrantKind::Write,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(refusal) => refusal.fmt(out),
            Self::Hidden => out.write_str("it is not inside its walls"),
            Self::ReadOnly => out.write_str("it may only be read"),
        }
    }
}

/// How many paths of one call are told.
const MOST_PATHS: usize = 8;

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

/// The files that a tool missed, by its own complaint and the input of the call, as far as its walls keep them from it.
pub(crate) fn files(
    error: &CallError,
    input: &str,
    walls: &Confinement,
    is_kept: impl Fn(&Path) -> bool,
) -> Vec<Blocked> {
    let mut complaint = vec![error.message.clone()];
    strings(&error.details, &mut complaint);
    let lowered: Vec<String> = complaint.iter().map(|text| text.to_lowercase()).collect();
    let says =
        |words: &[&str]| words.iter().any(|word| lowered.iter().any(|said| said.contains(word)));
    let (is_missing, is_refused) = (says(&MISSING), says(&REFUSED));
    if !is_missing && !is_refused {
        return Vec::new();
    }
    let mut given = Vec::new();
    if let Ok(input) = serde_json::from_str(input) {
        strings(&input, &mut given);
    }
    let given: BTreeSet<PathBuf> = given.iter().filter_map(|text| path(text)).collect();
    let mut found = given.clone();
    found.extend(complaint.iter().flat_map(|text| paths(text)));
    let blocked = |path: PathBuf| {
        let (asked, why) = match (sees(walls, &path), only_readable(walls, &path)) {
            // What it would write need not be there yet; the folder is.
            (true, Some(folder)) if is_refused => (folder.to_owned(), Why::ReadOnly),
            // Its scratch folder is its own; of that it is meant only if the caller says so.
            (false, _) if !path.starts_with(SCRATCH) || given.contains(&path) => {
                (path, Why::Hidden)
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
fn sees(walls: &Confinement, path: &Path) -> bool {
    const OWN: [&str; 4] = ["/proc", "/dev", "/sys", "/etc"];
    let is_in = |all: &[PathBuf]| all.iter().any(|one| path.starts_with(one));
    let is_own = OWN.iter().any(|one| path.starts_with(one)) || runtime::is_system(path);
    is_own || ((is_in(&walls.readable) || is_in(&walls.writable)) && !is_in(&walls.hidden))
}

/// The file or folder that it was given to read and that holds a path, where it may not write there.
fn only_readable<'w>(walls: &'w Confinement, path: &Path) -> Option<&'w Path> {
    let holds = |one: &&PathBuf| path.starts_with(one);
    let is_writable = walls.writable.iter().any(|one| holds(&one));
    let given = walls.readable.iter().filter(holds).max_by_key(|one| one.components().count());
    given.filter(|_| !is_writable).map(PathBuf::as_path)
}

/// All texts of a value.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|one| strings(one, into)),
        Value::Object(members) => members.values().for_each(|one| strings(one, into)),
        _ => {}
    }
}

/// A text that is a path and nothing else.
fn path(text: &str) -> Option<PathBuf> {
    const LONGEST: usize = 1024;
    let path = Path::new(text);
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    // Two strokes begin what is left of a URL.
    let is_path = path.is_absolute() && is_plain && text.len() > 1 && !text.starts_with("//");
    // Collected anew, it has no doubled and no last stroke.
    (is_path && text.len() <= LONGEST && !text.contains(char::is_control))
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
        let error = CallError::new(Kind::Failed, message);
        let found = files(&error, input, &walls(), |path| {
            path.starts_with("/home/ada/.mcp") || path.starts_with("/srv/tool")
        });
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
    fn nothing_else_is_told() {
        assert!(found("it broke at /home/ada/x", r#"{"path":"/home/ada/x"}"#).is_empty());
        assert!(found("no such file: /tmp/own", "{}").is_empty());
        assert_eq!(found("no such file", r#"{"path":"/tmp/mine"}"#).len(), 1);
        assert!(found("no such file: /usr/lib/x /proc/1/maps /etc/shadow", "{}").is_empty());
        assert!(found("no such file: /home/ada/.mcp/vault/x", "{}").is_empty());
        assert!(
            found("no such file: /home/ada/../bob/x and/or https://a.b/c / // /.", "{}").is_empty()
        );
        let many: String = (0..50).map(|number| format!(" /data/{number}")).collect();
        assert_eq!(found(&format!("not found:{many}"), "{}").len(), MOST_PATHS);
    }
}
