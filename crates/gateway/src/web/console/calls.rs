//! The audit timeline, with filters, and whether the chain of hashes is whole.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use host::records::now;
use ledger::audit::Filter;

use super::Console;
use super::frame::{Frame, Part, page};
use super::link::part;
use super::log::{Checked, Log};
use super::moment::{count, grouped};
use super::timeline::{Entry, Timeline, Wanted};
use super::visit::Visit;

/// How many are shown at a time.
const SHOWN: usize = 50;

/// How many findings are shown.
const MOST_FINDINGS: usize = 50;

/// How far back one may look.
const SINCE: [(&str, &str, Option<Duration>); 4] = [
    ("", "any time", None),
    ("1h", "the last hour", Some(Duration::from_hours(1))),
    ("24h", "the last day", Some(Duration::from_hours(24))),
    ("7d", "the last week", Some(Duration::from_hours(24 * 7))),
];

/// What a call may have come to.
const OUTCOMES: [(&str, &str); 11] = [
    ("", "anything"),
    ("trouble", "refused or gone wrong"),
    ("ok", "ok"),
    ("denied", "refused"),
    ("needs_approval", "needed your word"),
    ("tool_failed", "failed"),
    ("timed_out", "took too long"),
    ("bad_input", "wrong input"),
    ("bad_output", "wrong answer"),
    ("unavailable", "unavailable"),
    ("cancelled", "called off"),
];

/// Where calls come from.
const SURFACES: [&str; 7] = ["", "mcp", "http", "terminal", "console", "token", "test"];

/// A choice of a list.
#[derive(Debug)]
struct Choice {
    value: String,
    words: String,
    is_chosen: bool,
}

/// What came of looking at the chain of hashes.
#[derive(Debug)]
struct Verified {
    is_sound: bool,
    words: String,
    findings: Vec<String>,
}

#[derive(Template)]
#[template(path = "calls.html")]
struct CallsPage {
    frame: Frame,
    entries: Vec<Entry>,
    packages: Vec<Choice>,
    outcomes: Vec<Choice>,
    surfaces: Vec<Choice>,
    sinces: Vec<Choice>,
    action: String,
    trace: String,
    is_filtered: bool,
    /// The newest page is kept fresh, an older one is not.
    is_first: bool,
    next: Option<String>,
    unreadable: u64,
    trouble: Option<String>,
    verified: Option<Verified>,
    verify: String,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let (stock, now) = (console.gateway.stock().await, now());
    let text = |name: &str| visit.query.text(name).unwrap_or_default().to_owned();
    let [package, action, outcome, surface, since, trace] =
        ["package", "action", "outcome", "surface", "since", "trace"].map(text);
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let ago = SINCE.iter().find(|(value, ..)| *value == since).and_then(|(.., ago)| *ago);
    let wanted = Wanted {
        filter: Filter {
            package: some(&package),
            action: some(&action),
            trace: some(&trace),
            outcome: some(&outcome).filter(|outcome| outcome != "trouble"),
            since: ago.map(|ago| now.minus(ago)),
        },
        surface: some(&surface),
        is_trouble: outcome == "trouble",
        ..Wanted::default()
    };
    let before = visit.query.get("before");
    let log = console.log().await;
    let (timeline, trouble) = match Timeline::read(&log, &wanted, before, SHOWN).await {
        Ok(timeline) => (timeline, None),
        Err(words) => (Timeline::default(), Some(words)),
    };
    let fields = [
        ("package", &package),
        ("action", &action),
        ("outcome", &outcome),
        ("surface", &surface),
        ("since", &since),
        ("trace", &trace),
    ];
    let query: String = fields
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}&", part(value)))
        .collect();
    let verified = match visit.query.get("verify") {
        Some(_) if !visit.is_live => Some(verified(&log).await),
        _ => None,
    };
    let choices = |all: Vec<(String, String)>, chosen: &str| {
        all.into_iter()
            .map(|(value, words)| Choice { is_chosen: value == chosen, value, words })
            .collect::<Vec<_>>()
    };
    let named = |value: &str, words: &str| (value.to_owned(), words.to_owned());
    let mut ids: Vec<_> = stock.packages.iter().map(|one| named(&one.id, &one.id)).collect();
    if !package.is_empty() && !ids.iter().any(|(id, _)| *id == package) {
        ids.push(named(&package, &package));
    }
    ids.insert(0, named("", "every tool"));
    page(&CallsPage {
        frame: Frame::new(&console, &visit, Part::Calls, "Calls").await,
        entries: timeline.lines.iter().map(|one| Entry::new(one, now).linked(&stock)).collect(),
        packages: choices(ids, &package),
        outcomes: choices(
            OUTCOMES.iter().map(|(value, words)| named(value, words)).collect(),
            &outcome,
        ),
        surfaces: choices(
            SURFACES
                .iter()
                .map(|value| named(value, if value.is_empty() { "anywhere" } else { value }))
                .collect(),
            &surface,
        ),
        sinces: choices(
            SINCE.iter().map(|(value, words, _)| named(value, words)).collect(),
            &since,
        ),
        is_filtered: !query.is_empty(),
        is_first: before.is_none(),
        next: timeline.next.map(|place| format!("/calls?{query}before={}", part(&place))),
        unreadable: timeline.unreadable,
        trouble,
        verified,
        verify: format!("/calls?{query}verify=1"),
        action,
        trace,
    })
}

async fn verified(log: &Log) -> Verified {
    let Checked { is_sound, records, replicas, findings } = match log.check().await {
        Ok(checked) => checked,
        Err(words) => {
            let words = format!("The log could not be read: {words}");
            return Verified { is_sound: false, words, findings: Vec::new() };
        }
    };
    let of = replicas.map_or_else(String::new, |all| format!(" of {}", count(all, "replica")));
    let how = if is_sound {
        "unbroken: none was changed, moved, added or taken away."
    } else {
        "not as they were written."
    };
    let words = format!("{} records{of}, {how}", grouped(records));
    Verified { is_sound, words, findings: findings.into_iter().take(MOST_FINDINGS).collect() }
}
