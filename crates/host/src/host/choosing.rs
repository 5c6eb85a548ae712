//! Which implementation makes a call, and which one makes it when that breaks.
//!
//! A call is made a second time, by the next implementation, only where that is harmless: nothing of the first ran, or the
//! action is said to change nothing or to do the same twice, or it is a test. Otherwise the one that broke is noted, and the
//! next call goes to the next.

use std::borrow::Cow;
use std::time::Instant;

use ledger::state::implementations::Broken;
use manifest::model::{Action, Entry, Implementation, OutputFormat, SideEffects};
use policy::policy::Weights;
use policy::{Consent, Surface};
use sandbox::Launcher;
use serde_json::{Value, json};

use super::{Host, Made, Settings, action_of};
use crate::call::{Call, Tool};
use crate::chain::trace::Trace;
use crate::choose::{Choice, Choosing, Prospect};
use crate::error::{CallError, Kind};
use crate::records::{Records, now};
use crate::run::worker::Warmth;

/// An implementation that was tried for a call, and broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallen {
    /// Its id.
    pub implementation: String,
    /// How it broke.
    pub why: String,
}

/// A way to make a call, as it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The id of the implementation.
    pub implementation: String,
    /// In which place it is tried, from 0; none where it does not run here.
    pub place: Option<usize>,
    /// Why it does not, or what keeps it from an earlier place.
    pub why: Option<String>,
    /// What was measured of it, where enough was: milliseconds, the part that went well, and its score of 100.
    pub measured: Option<(f64, f64, u8)>,
}

impl Way {
    /// For people.
    pub fn words(&self) -> String {
        let place = match self.place {
            Some(0) => "chosen",
            Some(_) => "runs here too",
            None => "not here",
        };
        let measured = self.measured.map(|(ms, success, score)| {
            format!("{ms:.1} ms, {:.0} % went well, {score} of 100", success * 100.0)
        });
        let plain = match self.place {
            Some(0) => "of those that run here its author has it first",
            _ => "not called often enough to be measured against the others",
        };
        let plain = (measured.is_none() && self.why.is_none()).then(|| plain.to_owned());
        let told: Vec<_> = [measured, self.why.clone(), plain].into_iter().flatten().collect();
        format!("{place}: {}", told.join("; "))
    }

    /// For programs.
    pub fn to_value(&self) -> Value {
        let measured = self.measured.map(|(ms, success, score)| {
            json!({ "meanMs": ms, "successRate": success, "score": f64::from(score) / 100.0 })
        });
        json!({
            "id": self.implementation,
            "chosen": self.place == Some(0),
            "runs": self.place.is_some(),
            "why": self.why,
            "measured": measured,
        })
    }
}

impl Host {
    /// What may make a call, in the order in which it is tried.
    pub(super) async fn choose<'t>(
        &self,
        tool: &'t Tool,
        call: &Call,
    ) -> Result<Choice<'t>, CallError> {
        self.choose_for(tool, action_of(tool, call)?, call.implementation.as_deref()).await
    }

    /// The same of an action.
    pub(super) async fn choose_for<'t>(
        &self,
        tool: &'t Tool,
        action: &Action,
        named: Option<&str>,
    ) -> Result<Choice<'t>, CallError> {
        let Self { settings, launcher, records, .. } = self;
        Box::pin(Choosing { settings, launcher, records }.choose(tool, action, named)).await
    }

    /// All that could run the only action of a package, or the first one, with why each is chosen or is not.
    pub async fn ways(&self, tool: &Tool) -> Result<Vec<Way>, CallError> {
        ways(&self.settings, &self.launcher, &self.records, tool).await
    }

    /// Makes a call that may be a step of a chain, until it ends or its package is switched off.
    pub(super) async fn make(
        &self,
        tool: &Tool,
        call: &Call,
        warmth: Warmth,
        around: Option<&Trace>,
    ) -> Made {
        let underway = self.underway.begin(tool, call);
        let mut made = self.make_in_turn(tool, call, warmth, around).await;
        made.reply = underway.told(made.reply);
        made
    }

    /// Makes a call by the first implementation, and by the next where that one breaks and nothing speaks against a second try.
    async fn make_in_turn(
        &self,
        tool: &Tool,
        call: &Call,
        warmth: Warmth,
        around: Option<&Trace>,
    ) -> Made {
        let (began, mut answer) = (Instant::now(), None);
        let choice = match self.choose(tool, call).await {
            Ok(choice) => choice,
            Err(error) => {
                let made = self.make_by(tool, call, warmth, around, Err(error), &mut answer);
                return Box::pin(made).await;
            }
        };
        let (mut before, mut call, within) = (None::<Made>, Cow::Borrowed(call), call.within);
        let mut prospects = choice.prospects.iter().peekable();
        loop {
            let prospect = prospects.next().expect("whoever has a next one goes on");
            let by = &*prospect.implementation;
            let made = self.make_by(tool, &call, warmth, around, Ok(by), &mut answer);
            let made = Box::pin(made).await.after(before.take());
            let breakage = made.reply.as_ref().err();
            let breakage = breakage.and_then(|error| Breakage::of(error, &call, made.has_begun));
            if choice.prospects.len() > 1 && tool.consent != Consent::ByPath {
                self.note_health(tool, prospect, &made, breakage.as_ref()).await;
            }
            let Some(breakage) = breakage else { return made };
            if !breakage.may_be_tried_again(tool, &call, by) {
                return match prospects.peek() {
                    Some(next) => made.leaving(&next.implementation.id, breakage.is_sure),
                    None => made,
                };
            }
            let left = within.map(|within| within.saturating_sub(began.elapsed()));
            let is_late = left.is_some_and(|left| left.is_zero());
            if prospects.peek().is_none() || is_late || call.called_off.is_cancelled() {
                return made;
            }
            if left.is_some() {
                call.to_mut().within = left;
            }
            let mut made = made;
            made.fallen.push(Fallen { implementation: by.id.clone(), why: breakage.why });
            before = Some(made);
        }
    }

    /// Notes that an implementation broke, or works again.
    async fn note_health(
        &self,
        tool: &Tool,
        prospect: &Prospect<'_>,
        made: &Made,
        breakage: Option<&Breakage>,
    ) {
        let (package, version) = (tool.package.canonical_id(), tool.package.semver());
        let series = (&*package, &*version, &*prospect.implementation.id);
        let state = &self.records.state;
        // What cannot be noted costs a second try later, and no more.
        let _ = match (breakage, &made.reply) {
            (Some(breakage), _) if breakage.is_its_own => {
                let told = (&*breakage.why, breakage.is_sure);
                state.note_broken(series, told, now()).await
            }
            (None, Ok(_)) if prospect.past.broken.is_some() => state.note_whole(series).await,
            _ => Ok(()),
        };
    }
}

/// All that could run the only action of a package, or the first one, with why each is chosen or is not, for somebody
/// who calls nothing.
pub async fn ways(
    settings: &Settings,
    launcher: &Launcher,
    records: &Records,
    tool: &Tool,
) -> Result<Vec<Way>, CallError> {
    let Some(action) = tool.package.actions.first() else { return Ok(Vec::new()) };
    let choosing = Choosing { settings, launcher, records };
    let choice = choosing.look(tool, action, None).await?;
    let mut ways = choice.ways(&settings.policy.rank.weights);
    if let Some(named) = choosing.by_policy(tool).filter(|_| tool.package.chain.is_none()) {
        put_first(&mut ways, named);
    }
    Ok(ways)
}

/// Puts the one before all others that the policy names.
fn put_first(ways: &mut Vec<Way>, named: &str) {
    let found = ways.iter().position(|way| way.implementation == named);
    let (why, lacks) = match found.map(|at| ways.remove(at)) {
        Some(way) => (BY_POLICY.to_owned(), way.why.filter(|_| way.place.is_none())),
        None => (format!("{BY_POLICY}, and there is none"), None),
    };
    let why = lacks.map_or(why.clone(), |lacks| format!("{why}, though it {lacks}"));
    let place = found.map(|_| 0);
    for way in ways.iter_mut() {
        way.place = way.place.map(|place| place + usize::from(found.is_some()));
    }
    let implementation = named.to_owned();
    ways.insert(0, Way { implementation, place, why: Some(why), measured: None });
}

/// Why an implementation comes before all others, whatever else holds.
const BY_POLICY: &str = "your policy names it";

impl Made {
    /// The same call, which another implementation could have made, had the one that broke not begun.
    fn leaving(mut self, next: &str, is_sure: bool) -> Self {
        if let Err(error) = &mut self.reply {
            error.details["next"] = json!({ "implementation": next, "sure": is_sure });
        }
        self
    }

    /// The same call, after it was tried in vain: what was done and reached for then is not forgotten.
    fn after(mut self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        self.took += before.took;
        self.attempts += before.attempts;
        self.level = before.level.into_iter().chain(self.level).min();
        self.violation = before.violation.or(self.violation);
        for one in before.blocked {
            if !self.blocked.contains(&one) {
                self.blocked.push(one);
            }
        }
        self.step_violations.splice(0..0, before.step_violations);
        self.unwritten.splice(0..0, before.unwritten);
        Self { fallen: before.fallen, ..self }
    }
}

impl Choice<'_> {
    /// All of it, as it is told.
    fn ways(&self, weights: &Weights) -> Vec<Way> {
        let runs = self.prospects.iter().enumerate().map(|(place, one)| Way {
            implementation: one.implementation.id.clone(),
            place: Some(place),
            why: one.why(),
            measured: one
                .score(weights)
                .and_then(|score| Some((one.past.mean_ms?, one.past.success?, score))),
        });
        let others = self.others.iter().map(|(id, why)| Way {
            implementation: (*id).to_owned(),
            place: None,
            why: Some(why.clone()),
            measured: None,
        });
        runs.chain(others).collect()
    }

    /// The one that comes first.
    pub(super) fn first(&self) -> &Implementation {
        &self.prospects[0].implementation
    }
}

impl Prospect<'_> {
    /// What keeps it from an earlier place.
    fn why(&self) -> Option<String> {
        let broken = self.broken(now()).map(|Broken { times, why, at, .. }| {
            let often =
                if *times == 1 { "once".to_owned() } else { format!("{times} times in a row") };
            format!("it broke {often}, last at {at}: {why}")
        });
        let unknown = (!self.unknown.is_empty())
            .then(|| format!("nobody here can tell whether it has {}", self.unknown.join(", ")));
        broken.or(unknown)
    }
}

/// That an implementation broke, and did not only say no.
struct Breakage {
    why: String,
    /// Whether one time is enough to know.
    is_sure: bool,
    /// Whether it is the implementation that broke, and nothing around it.
    is_its_own: bool,
    /// Whether anything of it may have run.
    has_run: bool,
}

impl Breakage {
    fn of(error: &CallError, call: &Call, has_begun: bool) -> Option<Self> {
        let details = &error.details;
        let said = |name: &str| details.get(name).and_then(Value::as_str).unwrap_or_default();
        let exit = details.get("exit").and_then(Value::as_i64);
        let status = details.get("status").and_then(Value::as_u64);
        let of_home = ["unwritten", "damaged"].iter().any(|name| details.get(name).is_some());
        let is_sure = match error.kind {
            // Nobody is to blame who was never asked.
            Kind::Unavailable if of_home => return None,
            Kind::Unavailable => {
                ["program", "obstacle"].iter().any(|name| details.get(name).is_some())
            }
            // Shells say so of a program that is not there or cannot be executed.
            Kind::Failed if matches!(exit, Some(126 | 127)) => true,
            Kind::Failed if exit.is_some() && is_unloaded(said("stderr")) => true,
            Kind::Failed if exit.is_some() || details.get("code").is_some() => return None,
            Kind::Failed if status.is_some_and(|status| status < 500) => return None,
            // Something ended it, or its server failed.
            Kind::Failed if details.get("stderr").is_some() || status.is_some() => false,
            // Whoever gives it less time than it may have cannot blame it.
            Kind::TimedOut if call.within.is_some() => return None,
            Kind::BadOutput | Kind::TooMuchOutput | Kind::TimedOut => false,
            _ => return None,
        };
        Some(Self {
            why: reason(said("stderr"))
                .unwrap_or(&error.message)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            is_sure,
            is_its_own: has_begun || is_sure,
            has_run: has_begun,
        })
    }

    /// Whether the next implementation may make the same call.
    fn may_be_tried_again(&self, tool: &Tool, call: &Call, by: &Implementation) -> bool {
        let is_asking = matches!(&by.entry, Entry::Http { method: Some(method), .. }
            if matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"));
        let Some(action) = tool.action(&call.action) else { return false };
        let is_harmless = action.idempotent == Some(true)
            || matches!(action.side_effects, Some(SideEffects::None | SideEffects::Read))
            || is_asking
            || call.surface == Surface::Test;
        // Nobody takes back records that somebody was told.
        let is_told = action.output_format == Some(OutputFormat::NdjsonStream);
        !self.has_run || (is_harmless && !is_told)
    }
}

/// The line of what a runtime said that names an error; the last one of Node is its version.
fn reason(said: &str) -> Option<&str> {
    let is_error = |line: &&str| {
        let word = line.split([':', ' ']).next().unwrap_or_default();
        word.ends_with("Error") || word.ends_with("Exception")
    };
    said.lines().map(str::trim).find(is_error)
}

/// Whether what a runtime said on its way out is that it could not load what it should run.
fn is_unloaded(said: &str) -> bool {
    let signs = [
        "ModuleNotFoundError: ",
        "ImportError: ",
        "SyntaxError: ",
        "MODULE_NOT_FOUND",
        "ERR_REQUIRE_ESM",
        "can't open file",
        "cannot open ",
        "Can't open perl script",
        "No such file or directory -- ",
        "You must install or update .NET",
        "Could not find or load main class",
        "Unable to access jarfile",
    ];
    signs.iter().any(|sign| said.contains(sign))
}
