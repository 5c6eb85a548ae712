//! What a tool says when it misses a file, and which that may be.
//!
//! Whether a file is there is not looked at, or whoever calls could find out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use egress::{Decision, Rules, Target};
use manifest::model::{Action, SideEffects};
use sandbox::{Confinement, SCRATCH};
use serde_json::Value;

use crate::blocked::{Blocked, Why, only_readable, sees};
use crate::error::CallError;

/// How many paths of one call are told.
const MOST_PATHS: usize = 8;

/// Bytes of a path that is told.
const LONGEST_PATH: usize = 1024;

/// What stands around the name of a file.
const QUOTES: [char; 3] = ['\'', '"', '`'];

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

/// How those complain who would write where nobody does.
const READ_ONLY: [&str; 3] = ["read-only file system", "erofs", "not writable"];

/// How those complain who may not do something with a file.
const REFUSED: [&str; 4] = ["permission denied", "eacces", "operation not permitted", "eperm"];

/// Words of those who write, in the names of actions and in complaints.
const WRITING: [&str; 10] = [
    "append", "create", "export", "mkdir", "rename", "save", "saving", "touch", "write", "writing",
];

/// Words in the names of actions that read.
const READING: [&str; 11] =
    ["count", "find", "get", "list", "load", "look", "open", "read", "search", "show", "view"];

/// Words in the names of what is written.
const WRITTEN: [&str; 7] = ["dest", "destination", "out", "outfile", "output", "target", "to"];

/// Words in the names of what is a path.
const OF_PATHS: [&str; 8] =
    ["dir", "directory", "file", "filename", "filepath", "folder", "path", "paths"];

/// What a tool complains of: a file that it misses, or that it may not do something with.
pub(crate) struct Complaint {
    said: Vec<String>,
    is_missing: bool,
    is_read_only: bool,
    is_refused: bool,
}

/// The call in which a tool complains.
pub(crate) struct Scene<'s> {
    pub(crate) action: &'s Action,
    pub(crate) input: &'s str,
    pub(crate) walls: &'s Confinement,
    /// Whether a grant would let it write.
    pub(crate) may_write: bool,
    /// The folder of the tool.
    pub(crate) own: &'s Path,
    /// The folder of its caller.
    pub(crate) caller: &'s Path,
    /// Where the owner has all that they have.
    pub(crate) user_home: Option<&'s Path>,
}

/// What was to be done with a file.
#[derive(Clone, Copy, PartialEq)]
enum Intent {
    Read,
    Write,
    /// Nobody says.
    Either,
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
        let (is_missing, is_read_only) = (says(&MISSING), says(&READ_ONLY));
        let is_refused = is_read_only || says(&REFUSED);
        (is_missing || is_refused).then_some(Self { said, is_missing, is_read_only, is_refused })
    }

    /// Paths of the input that a tool misses and that are not whole, where it does not look for them where its caller is:
    /// it runs elsewhere, and none knows what a tilde is.
    pub(crate) fn relative(&self, scene: &Scene<'_>) -> Vec<String> {
        let input = serde_json::from_str(scene.input).unwrap_or_default();
        let is_elsewhere = scene.walls.folder != scene.caller;
        let given = self.not_whole(&input).into_iter().map(|(_, text)| text);
        let given = given.filter(|text| is_elsewhere || text.starts_with('~'));
        given.take(MOST_PATHS).map(str::to_owned).collect()
    }

    /// Paths of the input that a tool misses and that are not whole, each with the name of the member it is in.
    fn not_whole<'v>(&self, input: &'v Value) -> Vec<(&'v str, &'v str)> {
        let mut given = Vec::new();
        let says_which =
            self.said.iter().any(|text| text.contains(QUOTES) || !paths(text).is_empty());
        texts(input, "", &mut |name, text| {
            let is_path = text.contains(['/', '.']) && !text.starts_with('/');
            let is_plain = !text.contains("://") && !text.contains(char::is_control);
            // Who does not say what is missing misses what is called a path.
            let is_meant = || {
                self.said.iter().any(|said| said.contains(text))
                    || (!says_which && has_word(name, &[&OF_PATHS]))
            };
            if self.is_missing && is_path && is_plain && text.len() <= LONGEST_PATH && is_meant() {
                given.push((name, text));
            }
        });
        given
    }

    /// Whether it would write into the folder it is in, of which no tool gets more than to read it.
    pub(crate) fn is_about_itself(&self, scene: &Scene<'_>) -> bool {
        let named: Vec<_> = self.said.iter().flat_map(|text| paths(text)).collect();
        let is_there = named.is_empty() && scene.walls.folder.starts_with(scene.own);
        self.is_read_only && (is_there || named.iter().any(|path| path.starts_with(scene.own)))
    }

    /// The files that a tool missed, by its own complaint and the input of the call, as far as its walls keep them from
    /// it.
    pub(crate) fn files(&self, scene: &Scene<'_>, is_kept: impl Fn(&Path) -> bool) -> Vec<Blocked> {
        // What is given, and whether it is by a name of what is written.
        let mut given = BTreeMap::new();
        if let Ok(input) = serde_json::from_str(scene.input) {
            let is_written = |name: &str| has_word(name, &[&WRITING, &WRITTEN]);
            texts(&input, "", &mut |name, text| {
                given.extend(path(text).map(|path| (path, is_written(name))));
            });
            // It looks for the others where its caller is, where it runs there.
            let others = self.not_whole(&input).into_iter();
            let others = others.filter(|_| scene.walls.folder == scene.caller);
            given.extend(
                others.filter_map(|(name, text)| {
                    Some((below(scene.caller, text)?, is_written(name)))
                }),
            );
        }
        let mut found: BTreeSet<PathBuf> = given.keys().cloned().collect();
        found.extend(self.said.iter().flat_map(|text| paths(text)));
        let is_around = |path: &PathBuf| {
            let mut others = found.iter().filter(|one| *one != path);
            others.any(|one| one.starts_with(path))
        };
        // Whoever makes folders complains of the first that is missing, which is half of the disk.
        let is_meant = |path: &&PathBuf| {
            given.contains_key(*path) || !(is_around(path) || is_wide(path, scene.user_home))
        };
        let mut blocked = Vec::new();
        for path in found.iter().filter(is_meant) {
            let parent = path.parent().filter(|folder| !is_wide(folder, scene.user_home));
            let places = match (sees(scene.walls, path), only_readable(scene.walls, path)) {
                // What it would write need not be there yet; the folder is.
                (true, Some(granted)) if self.is_refused => {
                    let folder = parent.filter(|one| one.starts_with(granted)).unwrap_or(granted);
                    [Some((folder, Why::ReadOnly)), None]
                }
                // Its scratch folder is its own; the owner's is meant only where somebody says so.
                (false, _)
                    if !path.starts_with(SCRATCH)
                        || given.contains_key(path)
                        || [scene.own, scene.caller].iter().any(|one| in_one_corner(one, path)) =>
                {
                    let intent = self.intent(path, &given, scene);
                    let read = (path.as_path(), Why::Hidden);
                    let why = match intent {
                        Intent::Either => Why::HiddenPerhapsToWriting,
                        _ => Why::HiddenToWriting,
                    };
                    let write = (parent.unwrap_or(path), why);
                    [
                        (intent != Intent::Write).then_some(read),
                        (intent != Intent::Read).then_some(write),
                    ]
                }
                _ => [None, None],
            };
            for (place, why) in places.into_iter().flatten().filter(|(place, _)| !is_kept(place)) {
                let asked = place.to_str().map(|text| Blocked { asked: text.to_owned(), why });
                blocked.extend(asked.filter(|one| !blocked.contains(one)));
            }
        }
        blocked.truncate(MOST_PATHS);
        blocked
    }

    fn intent(&self, path: &Path, given: &BTreeMap<PathBuf, bool>, scene: &Scene<'_>) -> Intent {
        let (action, may_write) = (scene.action, scene.may_write);
        if given.values().any(|is_written| *is_written)
            && let Some(is_written) = given.get(path)
        {
            return if *is_written { Intent::Write } else { Intent::Read };
        }
        let names = |words: &[&str]| has_word(&action.name, &[words]);
        let complains_of_writing = || self.said.iter().any(|text| has_word(text, &[&WRITING]));
        match action.side_effects {
            _ if !may_write => Intent::Read,
            _ if self.is_read_only || names(&WRITING) || complains_of_writing() => Intent::Write,
            Some(SideEffects::None | SideEffects::Read) => Intent::Read,
            None if names(&READING) => Intent::Read,
            // What it chose itself it may well write; what it was given it may read first.
            Some(SideEffects::Write | SideEffects::Destructive) if !given.contains_key(path) => {
                Intent::Write
            }
            _ => Intent::Either,
        }
    }
}

/// How those complain whom nobody answers at an address.
const UNANSWERED: [&str; 5] = [
    "connection refused",
    "econnrefused",
    "failed to connect",
    "couldn't connect",
    "could not connect",
];

/// The names of the machine a program runs on; inside the walls that is not the owner's.
const THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Services of the owner's machine that a tool was not let reach: it dials its own loopback, so nobody sees it. They are
/// told from its complaint and the input.
pub(crate) fn loopback(error: &CallError, input: &str, rules: &Rules) -> Vec<Blocked> {
    let mut all = vec![error.message.clone()];
    texts(&error.details, "", &mut |_, text| all.push(text.to_owned()));
    let is_unanswered = all
        .iter()
        .map(|text| text.to_lowercase())
        .any(|text| UNANSWERED.iter().any(|words| text.contains(words)));
    if !is_unanswered {
        return Vec::new();
    }
    if let Ok(input) = serde_json::from_str(input) {
        texts(&input, "", &mut |_, text| all.push(text.to_owned()));
    }
    let mut blocked = Vec::new();
    for (name, after) in all.iter().flat_map(|text| {
        let of = |name: &'static str| text.split(name).skip(1).map(move |after| (name, after));
        THIS_MACHINE.into_iter().flat_map(of).collect::<Vec<_>>()
    }) {
        // As in a URL, and as curl says it.
        let Some(rest) = after.strip_prefix(':').or_else(|| after.strip_prefix(" port ")) else {
            continue;
        };
        let port: String = rest.chars().take_while(char::is_ascii_digit).take(5).collect();
        let asked = format!("{name}:{port}");
        let Ok(target) = Target::parse(asked.as_bytes()) else { continue };
        if let Decision::Refused(refusal) = rules.decide(&target) {
            let one = Blocked::host(asked, refusal);
            if !blocked.contains(&one) && blocked.len() < MOST_PATHS {
                blocked.push(one);
            }
        }
    }
    blocked
}

/// Whether a folder is too much to be offered by us: the whole disk, a folder of the system, all that the owner has.
fn is_wide(folder: &Path, user_home: Option<&Path>) -> bool {
    folder.components().count() <= 2 || user_home.is_some_and(|home| home.starts_with(folder))
}

/// Whether both are in the same folder of those that are for everybody's temporary files.
fn in_one_corner(one: &Path, other: &Path) -> bool {
    let corner = |path: &Path| {
        let below = path.strip_prefix(SCRATCH).ok()?;
        below.components().next().map(|part| part.as_os_str().to_owned())
    };
    corner(one).is_some_and(|one| corner(other).is_some_and(|other| one == other))
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

/// Where a path that is not whole leads from a folder.
fn below(folder: &Path, text: &str) -> Option<PathBuf> {
    let mut whole = folder.to_owned();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(name) if name != "~" => whole.push(name),
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            _ => return None,
        }
    }
    Some(whole)
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
    use crate::error::Kind;

    fn walls() -> Confinement {
        Confinement {
            readable: vec!["/srv/tool".into(), "/home/ada/notes".into()],
            writable: vec!["/home/ada/out".into()],
            hidden: vec!["/home/ada/notes/secret".into()],
            ..Confinement::default()
        }
    }

    fn scene<'s>(action: &'s Action, input: &'s str, walls: &'s Confinement) -> Scene<'s> {
        let (own, caller) = (Path::new("/srv/tool"), Path::new("/tmp/desk/work"));
        let user_home = Some(Path::new("/home/ada"));
        Scene { action, input, walls, may_write: true, own, caller, user_home }
    }

    fn found(message: &str, input: &str) -> Vec<(String, Why)> {
        found_by("look", message, input)
    }

    fn found_by(action: &str, message: &str, input: &str) -> Vec<(String, Why)> {
        let error = CallError::new(Kind::Failed, message);
        let Some(complaint) = Complaint::of(&error) else { return Vec::new() };
        let is_kept =
            |path: &Path| path.starts_with("/home/ada/.mcp") || path.starts_with("/srv/tool");
        let (action, walls) = (crate::assumed(action), walls());
        let found = complaint.files(&scene(&action, input, &walls), is_kept);
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
        let told = [("/data/a".to_owned(), Why::Hidden), write("/data/b")[0].clone()];
        let all = found_by("save_copy", "no such file", both);
        assert_eq!(all, told);
        // Nobody is told to hand over everything.
        assert_eq!(found("mkdir: not found: /home/ada/new", "{}"), write("/home/ada/new"));
        assert!(found("mkdir: not found: /new", "{}").is_empty());
        let all = "makedirs('/var/x/y/z')\nRead-only file system: '/var'";
        assert_eq!(found(all, "{}"), write("/var/x/y"));
        // Where nobody says which, both are told.
        let perhaps = ("/data/n".to_owned(), Why::HiddenPerhapsToWriting);
        let either = [("/data/n/a.txt".to_owned(), Why::Hidden), perhaps];
        assert_eq!(found_by("add", "no such file: /data/n/a.txt", "{}"), either);
    }

    #[test]
    fn what_is_beside_the_tool_is_not_its_to_write() {
        let is_own = |message: &str| {
            let error = CallError::new(Kind::Failed, message);
            let (action, mut walls) = (crate::assumed("log"), walls());
            walls.folder = "/srv/tool".into();
            let scene = scene(&action, "{}", &walls);
            Complaint::of(&error).is_some_and(|one| one.is_about_itself(&scene))
        };
        assert!(is_own("Read-only file system: 'app.log'"));
        assert!(is_own("EROFS: open '/srv/tool/app.log'"));
        assert!(!is_own("EROFS: open '/data/app.log'"));
        assert!(!is_own("no such file: 'app.log'"));
    }

    #[test]
    fn a_path_that_is_not_whole_is_told_where_the_tool_misses_it() {
        let told = |message: &str, input: &str| {
            let error = CallError::new(Kind::Failed, message);
            let (action, walls) = (crate::assumed("look"), walls());
            let scene = scene(&action, input, &walls);
            Complaint::of(&error).map(|one| one.relative(&scene)).unwrap_or_default()
        };
        let missing = "No such file or directory: 'notes/a.txt'";
        assert_eq!(told(missing, r#"{"path":"notes/a.txt"}"#), ["notes/a.txt"]);
        assert_eq!(told("not found: ~/a", r#"["~/a"]"#), ["~/a"]);
        assert!(told(missing, r#"{"path":"/notes/a.txt"}"#).is_empty());
        assert!(told(missing, r#"{"path":"notes/b.txt"}"#).is_empty());
        assert!(told("it broke at notes/a.txt", r#"{"path":"notes/a.txt"}"#).is_empty());
        assert!(told("not found: http://a/b", r#"{"url":"http://a/b"}"#).is_empty());
        let silent = "No such file or directory";
        let input = r#"{"path":"notes/a.txt","phrase":"e.g."}"#;
        assert_eq!(told(silent, input), ["notes/a.txt"]);
        assert!(told("no such file: /home/ada/x", input).is_empty());
    }

    #[test]
    fn a_service_of_the_owners_machine_is_told_by_how_it_is_dialled() {
        let told = |message: &str, input: &str, granted: &[&str]| -> Vec<String> {
            let error = CallError::new(Kind::Failed, message);
            let rules = granted.iter().map(|text| egress::Rule::parse(text).unwrap());
            let rules: Rules = rules.map(egress::Rule::reaching_private).collect();
            loopback(&error, input, &rules).into_iter().map(|one| one.asked).collect()
        };
        let refused = "<urlopen error [Errno 111] Connection refused>";
        let input = r#"{"url":"http://localhost:8123/x"}"#;
        assert_eq!(told(refused, input, &[]), ["localhost:8123"]);
        assert!(told(refused, input, &["localhost:8123"]).is_empty());
        let curl = "curl: (7) Failed to connect to localhost port 8123 after 0 ms";
        assert_eq!(told(curl, "{}", &[]), ["localhost:8123"]);
        assert_eq!(told("connect ECONNREFUSED 127.0.0.1:99", "{}", &[]), ["127.0.0.1:99"]);
        assert!(told("it broke", input, &[]).is_empty());
        assert!(told(refused, r#"{"url":"http://a.test:1"}"#, &[]).is_empty());
    }

    #[test]
    fn nothing_else_is_told() {
        assert!(found("it broke at /home/ada/x", r#"{"path":"/home/ada/x"}"#).is_empty());
        assert!(found("no such file: /tmp/own", "{}").is_empty());
        assert_eq!(found("no such file", r#"{"path":"/tmp/mine"}"#).len(), 1);
        // The caller works there.
        assert_eq!(found("no such file: /tmp/desk/data", "{}").len(), 1);
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
