//! What a command did to a home, call by call, and whether that is how changes are made.
//!
//! | when | what has to be |
//! |---|---|
//! | before the journal gets its place | everything that was prepared is on the disk |
//! | before the first step | the name of the journal is on the disk |
//! | before the journal goes | each name that a step put or took is on the disk, in its own folder |
//! | before what is left is swept | that the journal is gone is on the disk |
//! | before anything else gets a place by its name | its content is on the disk |

use std::path::{Path, PathBuf};

const JOURNAL: &str = "journal";
const STAGING: &str = "staging";

/// One call that changes a home. Paths are those of the home, without its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Of a rename: where to.
    to: Option<PathBuf>,
    pub(crate) came: Came,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Done,
    Failed,
    /// It is the one that was disturbed.
    Hit,
}

/// Reads the report of a run.
pub(crate) fn parse(report: &str, home: &Path) -> Vec<Call> {
    let inside = |text: &str| {
        let path = Path::new(text);
        path.strip_prefix(home).unwrap_or(path).to_owned()
    };
    let call = |line: &str| {
        let parts: Vec<_> = line.split('\t').collect();
        let [name, path, to, came] = parts[..] else { panic!("no line of a report: {line}") };
        Call {
            name: name.to_owned(),
            path: inside(path),
            to: (!to.is_empty()).then(|| inside(to)),
            came: match came {
                "done" => Came::Done,
                "failed" => Came::Failed,
                "hit" => Came::Hit,
                other => panic!("no answer: {other}"),
            },
        }
    };
    report.lines().map(call).collect()
}

/// Whether a command made exactly these changes, each as they are made. Of a change its steps are told: `+` with what gets
/// a place, and `-` with what loses it, versions without their digests.
pub(crate) fn check(trace: &[Call], changes: &[&[&str]]) -> Result<(), String> {
    let done: Vec<_> = trace.iter().filter(|call| call.came == Came::Done).collect();
    let mut from = 0;
    for steps in changes {
        from = check_change(&done, from, steps)?;
    }
    if done[from..].iter().any(|call| call.gives_place_to_journal()) {
        return Err("a change is made that nobody expects".to_owned());
    }
    check_others(&done)
}

impl Call {
    fn is(&self, name: &str, path: impl AsRef<Path>) -> bool {
        self.name == name && self.path == path.as_ref()
    }

    fn gives_place_to_journal(&self) -> bool {
        self.name == "rename" && self.to.as_deref() == Some(Path::new(JOURNAL))
    }

    /// The name that it puts or takes outside of the staging area.
    fn named(&self) -> Option<&Path> {
        let is_outside = |path: &&Path| !path.starts_with(STAGING);
        match self.name.as_str() {
            "rename" => [self.to.as_deref()?, &self.path].into_iter().find(is_outside),
            "mkdir" | "symlink" | "link" => Some(self.path.as_path()).filter(is_outside),
            _ => None,
        }
    }

    /// It as a step of a change.
    fn step(&self) -> Option<String> {
        let to = self.to.as_deref().filter(|_| self.name == "rename")?;
        Some(if to.starts_with(STAGING) {
            format!("-{}", without_digest(&self.path))
        } else {
            format!("+{}", without_digest(to))
        })
    }
}

/// A path in which a version has no digest: that is another one whenever a manifest is.
fn without_digest(path: &Path) -> String {
    let text = path.to_str().expect("our own names are text");
    match text.rsplit_once('-') {
        Some((version, _)) if path.components().count() == 3 => version.to_owned(),
        _ => text.to_owned(),
    }
}

/// One change; where the rest begins.
fn check_change(calls: &[&Call], from: usize, steps: &[&str]) -> Result<usize, String> {
    let after = |from: usize, is_it: &dyn Fn(&Call) -> bool| {
        calls[from..].iter().position(|call| is_it(call)).map(|at| at + from)
    };
    let journal = after(from, &Call::gives_place_to_journal).ok_or("no journal gets its place")?;
    let folder = calls[journal].path.parent().expect("it comes from a folder of its own");
    let before = |is_it: &dyn Fn(&Call) -> bool| {
        calls[from..journal].iter().rposition(|call| is_it(call)).map(|at| at + from)
    };
    let prepared = before(&|call| call.path.starts_with(folder) && !call.name.contains("sync"));
    let synced = before(&|call| call.is("syncfs", folder));
    if prepared.is_none() || synced < prepared {
        return Err("the journal is found before what was prepared is on the disk".to_owned());
    }
    let removed = after(journal, &|call| call.is("unlink", JOURNAL)).ok_or("the journal stays")?;
    let first = after(journal + 1, &|call| call.named().is_some()).unwrap_or(removed);
    if !calls[journal..first].iter().any(|call| call.is("fsync", "")) {
        return Err("a step is taken before the journal is on the disk".to_owned());
    }
    let mut taken: Vec<_> =
        calls[journal + 1..removed].iter().filter_map(|call| call.step()).collect();
    let mut steps: Vec<_> = steps.iter().map(|step| (*step).to_owned()).collect();
    taken.sort();
    steps.sort();
    if taken != steps {
        return Err(format!("its steps are {taken:?}, and {steps:?} are expected"));
    }
    for (at, call) in calls[..removed].iter().enumerate().skip(journal + 1) {
        let Some(name) = call.named() else { continue };
        let parent = name.parent().unwrap_or(Path::new(""));
        if !calls[at..removed].iter().any(|call| call.is("fsync", parent)) {
            return Err(format!("`{}` is not on the disk before the journal goes", name.display()));
        }
    }
    let gone =
        after(removed, &|call| call.is("fsync", "")).ok_or("that it is done does not last")?;
    let is_swept = |call: &&Call| call.path.starts_with(folder) && call.name != "fsync";
    if calls[removed..gone].iter().any(is_swept) {
        return Err("what was prepared is swept before the journal is gone for good".to_owned());
    }
    Ok(gone + 1)
}

/// What gets its place outside of changes: its content is on the disk before, and its name after it. The log has its own
/// rules for when a name has to last.
fn check_others(calls: &[&Call]) -> Result<(), String> {
    for (at, call) in calls.iter().enumerate() {
        let Some(to) = call.to.as_deref().filter(|_| call.name == "rename") else { continue };
        if call.path.starts_with(STAGING) || to.starts_with(STAGING) {
            continue;
        }
        let written = calls[..at].iter().rposition(|one| one.is("write", &call.path));
        let synced = calls[..at].iter().rposition(|one| one.is("fsync", &call.path));
        if synced < written || written.is_none() {
            return Err(format!("`{}` gets its place before it is on the disk", to.display()));
        }
        let parent = to.parent().unwrap_or(Path::new(""));
        if !to.starts_with("audit") && !calls[at..].iter().any(|one| one.is("fsync", parent)) {
            return Err(format!("the name of `{}` does not last", to.display()));
        }
    }
    Ok(())
}

/// What may not be missing in the trace of one change: each is what is left without it, and what that is.
pub(crate) fn mutilated(trace: &[Call]) -> Vec<(String, Vec<Call>)> {
    let without = |is_gone: &dyn Fn(usize, &Call) -> bool| -> Vec<Call> {
        let kept = trace.iter().enumerate().filter(|(at, call)| !is_gone(*at, call));
        kept.map(|(_, call)| call.clone()).collect()
    };
    let place = |is_it: &dyn Fn(&Call) -> bool| trace.iter().position(is_it).unwrap();
    let journal = place(&Call::gives_place_to_journal);
    let removed = place(&|call| call.is("unlink", JOURNAL));
    let mut all = Vec::new();
    let steps = trace.iter().enumerate().filter(|(_, call)| call.came == Came::Done);
    for (at, call) in steps.filter(|(_, call)| call.name == "rename" && call.named().is_some()) {
        if at >= journal && at < removed {
            all.push((format!("without the step {call:?}"), without(&|one, _| one == at)));
        }
    }
    all.push((
        "without what was prepared on the disk".to_owned(),
        without(&|_, call| call.name == "syncfs"),
    ));
    all.push(("without an end".to_owned(), without(&|at, _| at == removed)));
    all.push((
        "without the end on the disk".to_owned(),
        without(&|at, call| at > removed && call.is("fsync", "")),
    ));
    let named = trace[journal..].iter().position(|call| call.is("fsync", "")).unwrap() + journal;
    all.push(("without the journal on the disk".to_owned(), without(&|at, _| at == named)));
    let mut synced: Vec<_> =
        trace[named + 1..removed].iter().filter(|call| call.name == "fsync").collect();
    synced.sort_by(|a, b| a.path.cmp(&b.path));
    synced.dedup_by(|a, b| a.path == b.path);
    for folder in synced {
        let is_gone =
            |at: usize, call: &Call| at > named && at < removed && call.is("fsync", &folder.path);
        all.push((format!("without {folder:?}"), without(&is_gone)));
    }
    // Something is written once everything was put on the disk.
    let mut late = trace.to_vec();
    let written = trace[..journal].iter().rposition(|call| call.name == "write").unwrap();
    let call = late.remove(written);
    late.insert(journal - 1, call);
    all.push(("with a write too late".to_owned(), late));
    all
}
