//! The first page: does anything need its owner, what is happening, what is here.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use host::records::now;
use ledger::Time;
use ledger::audit::{Filter, Kind, Record};
use policy::Surface;

use super::frame::{Frame, Part, page};
use super::log::Log;
use super::moment::{count, grouped};
use super::plot::spark;
use super::question::Question;
use super::timeline::{Entry, Timeline, Tone, Wanted, tone};
use super::tools::{Row, name, rows};
use super::visit::Visit;
use super::{Console, approvals, link};
use crate::shelf::Stock;
use crate::steward::Standing;

/// How many calls are shown.
const SHOWN: usize = 7;

/// How many records of today are counted, or looked through for a call; of more it is only told that there are.
const COUNTED: usize = 2_000;

/// What there is to say first while nothing can be called.
const CLOSED: &str = "No tool can be called";

/// Something that is worth a look.
#[derive(Debug)]
struct Look {
    package: String,
    name: String,
    address: String,
    chip: &'static str,
    tone: Tone,
    words: String,
    /// A small drawing that is made of numbers alone.
    spark: Option<String>,
}

#[derive(Template)]
#[template(path = "today.html")]
struct TodayPage {
    frame: Frame,
    heading: String,
    /// What today was like, in a line.
    line: String,
    questions: Vec<Question>,
    entries: Vec<Entry>,
    looks: Vec<Look>,
    rows: Vec<Row>,
    /// Whether nothing was ever called.
    is_new: bool,
    /// Where agents speak MCP over HTTP, where they do.
    mcp: Option<String>,
    back: &'static str,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let (stock, now) = (console.gateway.stock().await, now());
    let questions: Vec<_> =
        console.waiting().await.iter().map(|ticket| Question::new(ticket, &stock, now)).collect();
    let looks = looks(&stock, now).await;
    let log = console.log().await;
    let timeline = Timeline::read(&log, &shown(), None, SHOWN).await.unwrap_or_default();
    let measured = stock.host.records().state.metrics(None).await.unwrap_or_default();
    let today = today(&log, now).await;
    let heading = match (questions.len(), looks.len()) {
        _ if stock.trouble.is_some() => CLOSED.to_owned(),
        (0, 0) => "Nothing needs you".to_owned(),
        (0, many) => format!("Nothing waits for you; {} worth a look", count(many, "thing")),
        (waiting, _) => approvals::heading(waiting),
    };
    let title = if questions.is_empty() && stock.trouble.is_none() {
        "Today".to_owned()
    } else {
        heading.clone()
    };
    let line = format!("{} installed · {}", count(stock.packages.len(), "tool"), today.words());
    page(&TodayPage {
        frame: Frame::new(&console, &visit, Part::Today, title).await,
        heading,
        line,
        questions,
        is_new: is_new(&log, &timeline).await,
        // All that is written of them is on their own page.
        entries: timeline
            .lines
            .iter()
            .take(SHOWN)
            .map(|one| Entry { details: Vec::new(), ..Entry::new(one, now).linked(&stock) })
            .collect(),
        looks,
        rows: rows(&stock, &measured),
        mcp: console.gateway.mcp.get().cloned(),
        back: "/",
    })
}

/// What today was like.
#[derive(Debug, Default)]
struct Today {
    calls: usize,
    refused: usize,
    failed: usize,
    is_more: bool,
}

impl Today {
    fn words(&self) -> String {
        let more = if self.is_more { "at least " } else { "" };
        let mut words = format!("{more}{} today", count(self.calls, "call"));
        for (number, what) in [(self.refused, "refused"), (self.failed, "failed")] {
            if number > 0 {
                words += &format!(" · {} {what}", grouped(number as u64));
            }
        }
        words
    }
}

/// Everything but the calls of tests, which are nobody's: they stand with all others under Calls.
fn shown() -> Wanted {
    Wanted { is_without_tests: true, ..Wanted::default() }
}

/// Whether a record is of a call that somebody made.
fn is_call(record: &Record) -> bool {
    let is_run = matches!(record.kind, Kind::Call | Kind::Begin | Kind::End);
    is_run && !record.is_change() && record.surface != Surface::Test.name()
}

/// Whether nobody has called anything yet, by what is newest in the log, and where that does not show it by more of it.
async fn is_new(log: &Log, newest: &Timeline) -> bool {
    let has_none = |part: &Timeline| !part.lines.iter().any(|line| is_call(&line.record));
    if newest.next.is_none() || !has_none(newest) {
        return has_none(newest);
    }
    has_none(&Timeline::read(log, &shown(), None, COUNTED).await.unwrap_or_default())
}

/// Counts the calls since midnight, which is that of UTC.
async fn today(log: &Log, now: Time) -> Today {
    let midnight = Time::from_unix_millis(now.unix_millis() / 86_400_000 * 86_400_000);
    let wanted = Wanted {
        filter: Filter { since: Some(midnight), ..Filter::default() },
        ..Wanted::default()
    };
    let read = Timeline::read(log, &wanted, None, COUNTED).await.unwrap_or_default();
    let mut today = Today { is_more: read.next.is_some(), ..Today::default() };
    for one in read.lines.iter().map(|line| &line.record).filter(|one| is_call(one)) {
        today.calls += 1;
        match (one.outcome.as_deref(), tone(one)) {
            (Some("denied"), _) => today.refused += 1,
            (_, Tone::Stop) => today.failed += 1,
            _ => {}
        }
    }
    today
}

/// What is worth a look: what cannot be called, what was revoked and is not confirmed, what agents would have, what got worse.
async fn looks(stock: &Stock, now: Time) -> Vec<Look> {
    let state = &stock.host.records().state;
    let mut looks = Vec::new();
    // What keeps all of them from being called is told once.
    if let Some((_, words)) = &stock.trouble {
        looks.push(Look {
            package: String::new(),
            name: "Your policy".to_owned(),
            address: "/policy".to_owned(),
            chip: "closed",
            tone: Tone::Stop,
            words: words.clone(),
            spark: None,
        });
    }
    for package in &stock.packages {
        let mut address = link::tool(&package.id);
        let changed = package.tool.as_ref().ok().and_then(|tool| stock.host.changed_surface(tool));
        let (chip, tone, words) = match (package.standing, &package.tool) {
            (Standing::Unconfirmed, _) => (
                "revoked, not confirmed",
                Tone::Stop,
                "It is switched off. Nobody has confirmed that what it was given is worth nothing."
                    .to_owned(),
            ),
            (Standing::Enabled, Err(_)) if stock.trouble.is_some() => continue,
            (Standing::Enabled, Err(why)) => ("cannot be called", Tone::Stop, why.clone()),
            (Standing::Enabled, Ok(_)) if package.is_taken_back => (
                "taken back",
                Tone::Stop,
                "Its registry has taken this version back for security; it is not called."
                    .to_owned(),
            ),
            (Standing::Enabled, Ok(_)) if let Some(changed) = changed => {
                address += "/surface";
                let words = format!(
                    "Its server offers other tools than you approved, so none is called: {changed}."
                );
                ("offers something else", Tone::Stop, words)
            }
            _ => continue,
        };
        let name = name(package);
        looks.push(Look {
            package: package.id.clone(),
            name,
            address,
            chip,
            tone,
            words,
            spark: None,
        });
    }
    for wish in state.wishes().await.unwrap_or_default() {
        looks.push(Look {
            package: wish.tool.clone(),
            name: "An agent asks for a tool".to_owned(),
            address: "/approvals#wanted".to_owned(),
            chip: "wanted",
            tone: Tone::Warn,
            words: wish.why,
            spark: None,
        });
    }
    for found in state.regressions(None).await.unwrap_or_default() {
        let Some(package) = stock.package(&found.series.package) else { continue };
        if found.over.is_some() || package.version.as_deref() != Some(found.series.version.as_str())
        {
            continue;
        }
        let spans = state.over_time(&package.id, None).await.unwrap_or_default();
        looks.push(Look {
            package: package.id.clone(),
            name: name(package),
            address: link::tool(&package.id),
            chip: "got worse",
            tone: Tone::Warn,
            words: format!("{} is {}.", found.series.action, prove::watch::words(&found)),
            spark: spark(&spans, now),
        });
    }
    looks
}
