//! `haft chain compare`: two chains, or two versions of one, on the same tests.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use host::{Host, Said, Tool};
use manifest::model::Json;
use policy::Policy;
use prove::compare::{Compared, Standing, compare};
use prove::{Case, How, Suite};
use serde_json::{Value, json};

use super::subject;
use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::call::settings;
use crate::commands::count;
use crate::commands::test::{json_of, reasons};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, check_output, line};
use crate::{interrupt, owner, steps, walls};

/// How many different tests are run at most.
const MOST_TESTS: usize = 1_000;

#[derive(Args, Debug)]
#[command(
    after_help = "The tests of both are run on both, in turn, and each once more before anything is counted. One is called faster where that is no chance: an exact two-sided sign test over the pairs of calls, below 0.01.\nIt ends with 1 when the second does not pass what the first passes."
)]
pub(super) struct CompareArgs {
    /// The first: an installed package, one of its versions that are still here, or a folder, archive or manifest
    #[arg(value_name = "A")]
    first: String,
    /// The second
    #[arg(value_name = "B")]
    second: String,
    /// Tools that steps may call without being installed, at this path; may be repeated
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Call each test so often on each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Approve the calls that need your word
    #[arg(long)]
    approve: bool,
}

pub(super) fn run(
    args: &CompareArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    check_output()?;
    let with = steps::with(&args.with, home, printer)?;
    let found = [&args.first, &args.second].map(|what| subject::find(what, &with, home, printer));
    let [first, second] = found;
    let (first, second) = (first?, second?);
    let tools = [&first.tools[0], &second.tools[0]];
    let cases = cases(tools)?;
    let settings = settings(home)?;
    let policy = settings.policy.clone();
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(settings, walls::launcher()?, vault, records);
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
    })?;
    let approver = Arc::new(Owner::new(home, ask, args.approve.then_some(Said::Once)));
    let given = Some(Arc::<Owner>::clone(&approver) as Arc<dyn host::Approver>);
    let how = How::one_by_one(folder, given, interrupt::calling_off());
    let rounds = NonZeroU32::new(args.repeat).unwrap_or(NonZeroU32::MIN);
    let compared = runtime.block_on(compare(&host, tools, &cases, rounds, &how));
    runtime.block_on(host.settle());
    interrupt::nothing_runs();
    let unwritten = runtime.block_on(host.records().settle());
    if let Err(error) = unwritten {
        printer.alarm(&format!("the calls could not be counted: {}", line(&error.to_string())));
    }
    runtime.shutdown_background();
    if interrupt::was_told_to_stop() {
        return Err(Failure::new(Exit::Of(interrupt::CODE), "cancelled"));
    }
    if let Some(failure) = approver.take_failure() {
        return Err(failure);
    }
    let told = Told { compared: &compared, tools, cases: cases.len(), policy: &policy };
    if json_wanted {
        printer.json(&told.to_value())?;
    } else {
        printer.result(&told.text())?;
    }
    Ok(if compared.lost().is_empty() { Exit::Done } else { Exit::Failed })
}

/// The tests of both, each once.
fn cases(tools: [&Tool; 2]) -> Result<Vec<Case>, Failure> {
    let mut cases: Vec<Case> = Vec::new();
    for tool in tools {
        let folder: &Path = if tool.place.is_dir() { &tool.place } else { &tool.root };
        for case in Suite::of(&tool.package, folder).cases().take(MOST_TESTS) {
            let case = case.map_err(|error| Failure::invalid(line(&error.to_string())))?;
            let is_known = |one: &Case| one.name == case.name && one.input == case.input;
            if !cases.iter().any(is_known) {
                cases.push(case);
            }
        }
    }
    if cases.is_empty() {
        return Err(Failure::new(Exit::NotFound, "neither of them has a test")
            .hint("a test is a file `tests/NAME.test.json`; testing.md says what is in it"));
    }
    Ok(cases)
}

struct Told<'t> {
    compared: &'t Compared,
    tools: [&'t Tool; 2],
    cases: usize,
    policy: &'t Policy,
}

const NAMES: [&str; 2] = ["A", "B"];

impl Told<'_> {
    fn text(&self) -> String {
        let row = |name: &str, of: &dyn Fn(usize) -> String| {
            format!("{name:<18}{:<28}{}\n", of(0), of(1))
        };
        let passed = |at: usize| format!("{} of {}", self.standing(at).passed.len(), self.cases);
        let took = |at: usize| match self.standing(at).median() {
            Some(took) => format!("{:.1} ms", took.as_secs_f64() * 1000.0),
            None => "unknown".to_owned(),
        };
        let calls = |at: usize| count(steps_of(self.tools[at]), "step");
        let cost = |at: usize| match self.cents(at) {
            Some(cents) => format!("{cents:.0} cents"),
            None => "unknown".to_owned(),
        };
        let mut text = row("", &|at| format!("{} {}", NAMES[at], line(&self.name(at))));
        text += &row("tests passed", &passed);
        text += &row("median of a call", &took);
        text += &row("made of", &calls);
        text += &row("cost of a call", &cost);
        for (at, name) in NAMES.iter().enumerate() {
            for ended in &self.standing(at).failed {
                text += &format!("{name} fails {}\n", line(&ended.name));
                for reason in reasons(&ended.outcome, self.tools[at]) {
                    text += &format!("    {}\n", line(&reason));
                }
            }
        }
        text + &self.verdict() + "\n"
    }

    fn verdict(&self) -> String {
        let [first, second] = self.compared.faster;
        let (pairs, chance) = (first + second, self.compared.chance());
        let ratio = self.compared.ratio();
        let speed = match (self.compared.faster(), ratio) {
            (Some(1), Some(ratio)) => format!("B is {ratio:.2} times as fast as A"),
            (Some(_), Some(ratio)) => format!("A is {:.2} times as fast as B", 1.0 / ratio),
            _ => "neither is clearly faster".to_owned(),
        };
        let tested = format!("B was faster in {second} of {pairs} pairs, p = {chance:.2}");
        let lost = self.compared.lost();
        let right = match lost.len() {
            0 => "B passes what A passes".to_owned(),
            lost => format!("B fails {} that A passes", count(lost, "test")),
        };
        format!("{speed} ({tested}); {right}")
    }

    fn to_value(&self) -> Value {
        let side = |at: usize| {
            let standing = self.standing(at);
            json!({
                "package": self.tools[at].package.canonical_id(),
                "version": self.tools[at].package.version,
                "passed": standing.passed.len(),
                "failed": standing.failed.iter().map(json_of).collect::<Vec<_>>(),
                "medianMs": standing.median().map(|took| took.as_secs_f64() * 1000.0),
                "steps": steps_of(self.tools[at]),
                "centsPerCall": self.cents(at),
            })
        };
        json!({
            "tests": self.cases,
            "a": side(0),
            "b": side(1),
            "faster": self.compared.faster().map(|at| ["a", "b"][at]),
            "ratio": self.compared.ratio(),
            "pairs": {"a": self.compared.faster[0], "b": self.compared.faster[1]},
            "p": self.compared.chance(),
            "lost": self.compared.lost(),
            "verdict": self.verdict(),
        })
    }

    fn standing(&self, at: usize) -> &Standing {
        &self.compared.sides[at]
    }

    fn name(&self, at: usize) -> String {
        let package = &self.tools[at].package;
        format!("{} {}", package.id, package.version.as_deref().unwrap_or_default())
    }

    /// What one call costs in cents, each step made once; none where that is not known of one of them.
    fn cents(&self, at: usize) -> Option<f64> {
        cents(self.tools[at], self.policy)
    }
}

fn cents(tool: &Tool, policy: &Policy) -> Option<f64> {
    let package = &tool.package;
    if let Some(Ok(linked)) = &tool.links {
        let own = policy.of(&package.canonical_id(), &package.id);
        #[expect(clippy::cast_precision_loss, reason = "nobody pays so much")]
        let own = own.map_or(0, |rules| rules.cents_per_call) as f64;
        let steps = linked.targets.iter().map(|target| cents(&target.tool, policy));
        return steps.sum::<Option<f64>>().map(|steps| own + steps);
    }
    let rules = policy.of(&package.canonical_id(), &package.id);
    let call = rules.map_or(0, |rules| rules.cents_per_call);
    let cost = package.cost.as_ref().map(Json::value);
    let price = prove::rank::price(cost.as_ref(), package.uses_payment, call)?;
    Some(price.cents_per_call)
}

/// How many steps a tool is made of, those of chains in it included; one that is no chain is one.
fn steps_of(tool: &Tool) -> u64 {
    match &tool.links {
        Some(Ok(linked)) => linked.targets.iter().map(|target| steps_of(&target.tool)).sum(),
        _ => 1,
    }
}
