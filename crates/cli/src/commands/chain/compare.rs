//! `haft chain compare`: two chains, or two versions of one, on the same tests.

use std::path::PathBuf;

use clap::Args;
use host::Tool;
use manifest::model::Json;
use policy::Policy;
use prove::compare::{Compared, Standing};
use serde_json::{Value, json};

use super::proof::{Proof, cases, no_tests, verdict};
use super::subject;
use crate::ask::Ask;
use crate::commands::count;
use crate::commands::test::{json_of, reasons};
use crate::exit::{Exit, Outcome};
use crate::home::Home;
use crate::printer::{Printer, check_output, line};
use crate::steps;

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
    let cases = cases(&tools)?;
    if cases.is_empty() {
        return Err(no_tests("neither of them has a test"));
    }
    let proof = Proof::new(args.repeat, args.approve, home, ask)?;
    let compared = proof.compare(tools.map(|tool| (tool, None)), &cases);
    let policy = proof.policy.clone();
    proof.end(printer);
    let compared = compared?;
    let told = Told { compared: &compared, tools, cases: cases.len(), policy: &policy };
    if json_wanted {
        printer.json(&told.to_value())?;
    } else {
        printer.result(&told.text())?;
    }
    Ok(if compared.lost().is_empty() { Exit::Done } else { Exit::Failed })
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
        verdict(self.compared, NAMES)
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
        let own = policy.of_package(package);
        #[expect(clippy::cast_precision_loss, reason = "nobody pays so much")]
        let own = own.map_or(0, |rules| rules.cents_per_call) as f64;
        let steps = linked.targets.iter().map(|target| cents(&target.tool, policy));
        return steps.sum::<Option<f64>>().map(|steps| own + steps);
    }
    let rules = policy.of_package(package);
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
