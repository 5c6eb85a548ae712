//! The audit log, as it is shown.

use std::collections::HashSet;

use host::fleet::short;
use ledger::Time;
use ledger::audit::record::{APPROVE, REFUSE};
use ledger::audit::{Blocked, BlockedKind, Filter, Kind, Record};
use policy::Surface;
use prove::watch;

use super::link;
pub(super) use super::log::Timeline;
use super::log::{Line, Log};
use super::moment::Moment;
use crate::shelf::Stock;

/// How many records are looked at to fill a page, at most.
const MOST_LOOKED_AT: usize = 20_000;

/// How many are read at a time.
const STEP: usize = 400;

/// Which records are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) filter: Filter,
    /// Where they came from.
    pub(super) surface: Option<String>,
    /// Only what was refused or went wrong.
    pub(super) is_trouble: bool,
    /// Without the calls that tests made, which nobody asked for.
    pub(super) is_without_tests: bool,
}

impl Timeline {
    /// Reads so many calls and changes, each as one record: its end tells all, and its beginning is there while there is no
    /// end. Why it cannot be read.
    pub(super) async fn read(
        log: &Log,
        wanted: &Wanted,
        before: Option<&str>,
        most: usize,
    ) -> Result<Self, String> {
        let mut timeline = Self { next: before.map(str::to_owned), ..Self::default() };
        let (mut ended, mut looked_at) = (HashSet::new(), 0);
        while timeline.lines.len() < most && looked_at < MOST_LOOKED_AT {
            let step = STEP.min((most - timeline.lines.len()) * 2);
            let found = log.page(&wanted.filter, timeline.next.as_deref(), step).await?;
            looked_at += found.lines.len().max(1);
            timeline.unreadable += found.unreadable;
            timeline.next = found.next;
            for line in found.lines {
                let Line { replica, record } = &line;
                ended.extend(record.begin.map(|begin| (replica.clone(), begin)));
                let is_over =
                    record.kind == Kind::Begin && ended.contains(&(replica.clone(), record.seq));
                if !is_over && wanted.wants(record) {
                    timeline.lines.push(line);
                }
            }
            if timeline.next.is_none() {
                break;
            }
        }
        Ok(timeline)
    }
}

impl Wanted {
    fn wants(&self, record: &Record) -> bool {
        let is_here = self.surface.as_ref().is_none_or(|surface| *surface == record.surface);
        let is_left_out = self.is_without_tests && record.surface == Surface::Test.name();
        is_here
            && !is_left_out
            && (!self.is_trouble || tone(record) == Tone::Stop || tone(record) == Tone::Warn)
    }
}

/// How good or bad something is; never told by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Plain,
    Warn,
    Stop,
}

impl Tone {
    /// Its class.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Plain => "plain",
            Self::Warn => "warn",
            Self::Stop => "stop",
        }
    }
}

/// A line of the timeline.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) seq: u64,
    /// What no other on the page is called.
    pub(super) id: String,
    pub(super) at: Moment,
    pub(super) surface: String,
    pub(super) package: String,
    /// Where there is more about it.
    pub(super) address: String,
    /// What was called, or done to it.
    pub(super) action: String,
    pub(super) outcome: String,
    pub(super) tone: Tone,
    /// Why it came to nothing.
    pub(super) because: Option<String>,
    pub(super) ms: Option<u64>,
    /// What it reached for in vain, and what would grant it.
    pub(super) blocked: Vec<(String, String)>,
    /// Everything else that is written of it.
    pub(super) details: Vec<(&'static str, String)>,
}

impl Entry {
    pub(super) fn new(line: &Line, now: Time) -> Self {
        let Line { replica, record } = line;
        let replica = replica.as_deref().map(short);
        let action = match (record.kind, record.is_change(), record.step.as_str()) {
            (Kind::Torn | Kind::Mended, _, _) => "the log itself".to_owned(),
            (_, true, _) if record.is_answer() => format!("{} {}", answer(record), record.action),
            (_, true, _) => record.change.clone(),
            (_, false, "") => record.action.clone(),
            (_, false, step) => format!("{} (step {step})", record.action),
        };
        Self {
            seq: record.seq,
            id: match &replica {
                Some(replica) => format!("entry-{replica}-{}", record.seq),
                None => format!("entry-{}", record.seq),
            },
            at: Moment::new(record.ts, now),
            surface: match &replica {
                Some(replica) => format!("{} at {replica}", record.surface),
                None => record.surface.clone(),
            },
            package: record.package.clone(),
            address: link::calls(&record.package),
            action,
            outcome: outcome(record),
            tone: tone(record),
            because: record.reason.clone().or_else(|| record.note.clone()),
            ms: record.ms.filter(|_| !record.is_change()),
            blocked: record.blocked.iter().map(|one| grant(one, &record.package)).collect(),
            details: details(record),
        }
    }

    /// The same, which leads to the page of the package where it has one.
    pub(super) fn linked(self, stock: &Stock) -> Self {
        Self { address: link::seen(&self.package, stock), ..self }
    }
}

/// What the owner said to a call, in the words of the buttons.
fn answer(record: &Record) -> &str {
    match record.change.as_str() {
        APPROVE => "allow",
        REFUSE => "deny",
        other => other,
    }
}

/// What came of it, in a word or two.
fn outcome(record: &Record) -> String {
    let code = match (record.kind, &record.outcome) {
        (Kind::Torn, _) => "a line was put aside",
        (Kind::Mended, _) => "did not end as signed",
        (_, None) => "runs",
        (_, Some(outcome)) => outcome,
    };
    let words = match code {
        "ok" if record.cached == Some(true) => "ok, known from before",
        "needs_approval" => "needed your word",
        "needs_login" => "needs a sign-in",
        "needs_answers" => "needs answers",
        "denied" => "refused",
        "tool_failed" => "failed",
        "timed_out" => "took too long",
        "bad_input" => "wrong input",
        "bad_output" => "wrong answer",
        "too_much_output" => "said too much",
        "missing_input" => "something is missing",
        "unknown_tool" | "not_found" => "not found",
        "unconfirmed" => "not confirmed",
        watch::SLOWER => "got slower",
        watch::FAILING => "fails more often",
        code => code,
    };
    words.replace('_', " ")
}

pub(super) fn tone(record: &Record) -> Tone {
    match (record.kind, record.outcome.as_deref()) {
        (Kind::Torn, _) => Tone::Plain,
        (Kind::Mended, _) => Tone::Stop,
        (_, None) => Tone::Plain,
        (_, Some("ok")) => Tone::Good,
        (_, Some("cancelled")) => Tone::Plain,
        (
            _,
            Some(
                "needs_approval"
                | "needs_login"
                | "needs_answers"
                | "unconfirmed"
                | watch::SLOWER
                | watch::FAILING,
            ),
        ) => Tone::Warn,
        (_, Some(_)) => Tone::Stop,
    }
}

/// What was reached for in vain, and what would grant it.
fn grant(blocked: &Blocked, package: &str) -> (String, String) {
    let kind = match blocked.kind {
        BlockedKind::Host => "host",
        BlockedKind::Path => "read",
    };
    let command =
        format!("haft grant {} --{kind} {}", link::word(package), link::word(&blocked.value));
    (blocked.value.clone(), command)
}

/// What the digest in a record is of: what is installed is told by all its files, what is called by its manifest.
fn digest_of(record: &Record) -> &'static str {
    if record.is_change() { "Digest of its files" } else { "Digest of its manifest" }
}

fn details(record: &Record) -> Vec<(&'static str, String)> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let shape = (!record.arguments.is_null()).then(|| record.arguments.to_string());
    // Only what a process wrote is measured.
    let bytes = record.stdout_bytes.filter(|_| record.exit.is_some());
    let bytes = bytes.map(|bytes| format!("{bytes} bytes"));
    let all = [
        ("Decision", record.decision.clone()),
        ("Rule of the policy", text(&record.rule)),
        ("Client", text(&record.session)),
        ("Version", text(&record.version)),
        ("Implementation", text(&record.implementation)),
        ("Shape of its arguments", shape),
        ("Command", text(&record.argv.join(" "))),
        ("Folder", text(&record.cwd)),
        ("Variables", text(&record.env_keys.join(", "))),
        ("Walls", text(&record.sandbox)),
        ("Exit status", record.exit.map(|exit| exit.to_string())),
        ("Answer", bytes),
        ("Tried", record.attempts.filter(|tries| *tries > 1).map(|tries| format!("{tries} times"))),
        ("Digest of the card", text(&record.card)),
        ("Trace", text(&record.trace)),
        (digest_of(record), text(&record.package_digest)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use ledger::Audit;
    use ledger::audit::{Call, Decision, Durability, Ending, Outcome};

    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder =
            std::env::temp_dir().join(format!("haft-timeline-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[tokio::test]
    async fn a_call_is_one_line_and_what_runs_is_told() {
        let folder = folder("calls");
        let audit = Audit::new(&folder, Durability::Process);
        let now = host::records::now();
        let call = Call {
            package: "mcpkg:a".into(),
            action: "x".into(),
            surface: "mcp".into(),
            ..Call::default()
        };
        let done = audit.begin(&call, now).unwrap();
        audit.end(done, &call, &Ending::default(), now).unwrap();
        let _runs = audit.begin(&call, now).unwrap();
        let denied = Call {
            decision: Decision::Denied("no".into()),
            surface: "terminal".into(),
            ..call.clone()
        };
        let ending = Ending { outcome: Outcome::Error("denied".into()), ..Ending::default() };
        audit.record(&denied, &ending, now).unwrap();
        let log = Log::Home(folder.clone());
        let all = Timeline::read(&log, &Wanted::default(), None, 10).await.unwrap();
        let told: Vec<_> = all.lines.iter().map(|one| Entry::new(one, now)).collect();
        assert_eq!(
            told.iter().map(|one| one.outcome.as_str()).collect::<Vec<_>>(),
            ["refused", "runs", "ok"]
        );
        assert_eq!(told[0].because.as_deref(), Some("no"));
        let wanted = Wanted { surface: Some("terminal".into()), ..Wanted::default() };
        assert_eq!(Timeline::read(&log, &wanted, None, 10).await.unwrap().lines.len(), 1);
        let wanted = Wanted { is_trouble: true, ..Wanted::default() };
        assert_eq!(Timeline::read(&log, &wanted, None, 10).await.unwrap().lines.len(), 1);
        let first = Timeline::read(&log, &Wanted::default(), None, 1).await.unwrap();
        assert!(first.next.is_some());
        let tested = Call { surface: Surface::Test.name().into(), ..call };
        audit.record(&tested, &Ending::default(), now).unwrap();
        assert_eq!(
            Timeline::read(&log, &Wanted::default(), None, 10).await.unwrap().lines.len(),
            4
        );
        let wanted = Wanted { is_without_tests: true, ..Wanted::default() };
        let made = Timeline::read(&log, &wanted, None, 10).await.unwrap();
        assert!(made.lines.len() == 3 && made.lines.iter().all(|one| one.record.surface != "test"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_digest_says_what_it_is_of_and_an_answer_is_called_as_its_button() {
        let (folder, now) = (folder("digests"), host::records::now());
        let call = Call {
            package: "mcpkg:a".into(),
            package_digest: "sha256:1".into(),
            action: "send".into(),
            ..Call::default()
        };
        Audit::new(&folder, Durability::Process).record(&call, &Ending::default(), now).unwrap();
        let log = Log::Home(folder.clone());
        let read = Timeline::read(&log, &Wanted::default(), None, 1).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let mut line = read.lines.into_iter().next().unwrap();
        let named = |record: &Record| {
            let all = details(record);
            all.into_iter().find(|(_, value)| value == "sha256:1").map(|(name, _)| name)
        };
        assert_eq!(named(&line.record), Some("Digest of its manifest"));
        line.record.change = "install".into();
        assert_eq!(named(&line.record), Some("Digest of its files"));
        for (written, told) in [(APPROVE, "allow send"), (REFUSE, "deny send")] {
            line.record.change = written.into();
            assert_eq!(Entry::new(&line, now).action, told);
        }
    }

    #[test]
    fn what_was_reached_for_comes_with_the_exact_command() {
        let blocked = Blocked { kind: BlockedKind::Host, value: "evil.example; rm".into() };
        let (_, command) = grant(&blocked, "mcpkg:a");
        assert_eq!(command, "haft grant mcpkg:a --host 'evil.example; rm'");
    }
}
