//! `haft rank --replace`: for every step of a chain, what would do the same faster, proven by running both.

mod told;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use host::chain::{Linked, Target};
use host::records::now;
use host::{CallError, Tool};
use manifest::chain::Step;
use manifest::document::{Options, read};
use manifest::model::{Action, Package};
use prove::Case;
use prove::compare::Compared;
use prove::replace::{Instead, fits, replaced};
use serde_json::Value;

use crate::ask::Ask;
use crate::commands::call::failure;
use crate::commands::chain::proof::{Proof, cases, no_tests};
use crate::commands::chain::subject;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::measured;
use crate::printer::{Printer, check_output, line};
use crate::tools::Found;
use crate::{disk, project, steps};

/// How many tools are tried for a step; those that were measured to be fast come first.
const MOST_TRIED: usize = 6;

/// How often each test is called on each, unless somebody says otherwise.
const REPEAT: u32 = 20;

#[derive(Args, Debug)]
pub(super) struct ReplaceArgs {
    /// Propose faster tools and implementations for the steps of this chain, and prove it by running both: an
    /// installed package, a folder, an archive, a manifest
    #[arg(long, value_name = "CHAIN")]
    pub(super) replace: Option<String>,
    /// With --replace: tools that may be called without being installed, at this path; may be repeated
    #[arg(long, value_name = "PATH", requires = "replace")]
    with: Vec<PathBuf>,
    /// With --replace: call each test so often on each
    #[arg(long, value_name = "N", default_value_t = REPEAT, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// With --replace: approve the calls that need your word
    #[arg(long, requires = "replace")]
    approve: bool,
    /// With --replace: write the chain with what was proven faster into this new folder, as its next version
    #[arg(long, short, value_name = "FOLDER", requires = "replace")]
    output: Option<PathBuf>,
}

impl ReplaceArgs {
    /// Refuses what means nothing without a chain.
    pub(super) fn check_unused(&self) -> Result<(), Failure> {
        let used = [
            (!self.with.is_empty(), "--with"),
            (self.approve, "--approve"),
            (self.output.is_some(), "--output"),
            (self.repeat != REPEAT, "--repeat"),
        ];
        match used.into_iter().find(|(is_used, _)| *is_used) {
            Some((_, flag)) => {
                let message = format!("{flag} is about a chain, and there is no --replace");
                Err(Failure::invalid(message))
            }
            None => Ok(()),
        }
    }
}

/// What was tried for a step.
struct Trial {
    step: String,
    /// The id of what it calls now.
    now: String,
    instead: What,
    result: Tried,
}

/// What a step would be made by.
enum What {
    Implementation(String),
    Tool { id: String, instead: Instead },
}

/// What came of it.
enum Tried {
    /// It passes what the other passes and is faster: how they compare, by its own tests or else by those of the chain.
    Better(Compared),
    /// It passes what the other passes, and is not clearly faster.
    NotFaster(Compared),
    /// It does not pass what the other passes; in the chain or by itself.
    Fails(Compared),
    /// It could not be tried.
    Untried(String),
}

pub(super) fn run(
    chain: &str,
    args: &ReplaceArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    check_output()?;
    let with = steps::with(&args.with, home, printer)?;
    let found = subject::find(chain, &with, home, printer)?;
    let tool = &found.tools[0];
    let linked = match &tool.links {
        Some(Ok(linked)) => linked,
        Some(Err(error)) => return Err(failure(error, &error.blocked, tool)),
        None => {
            let message = format!("`{}` is no chain", line(&tool.package.id));
            return Err(Failure::invalid(message).hint("`haft rank CAPABILITY` ranks tools"));
        }
    };
    let own = cases(&[tool])?;
    if own.is_empty() {
        return Err(no_tests(format!(
            "`{}` has no tests to prove anything by",
            line(&tool.package.id)
        )));
    }
    if let Some(folder) = &args.output {
        written::check(folder)?;
    }
    let manifest = manifest_of(tool)?;
    let proof = Proof::new(args.repeat, args.approve, home, ask)?;
    let pool = pool(&with, &proof, home, printer)?;
    let (manifest, cases, pool, proof_of) = (&manifest, &own[..], &pool[..], &proof);
    let trying = Trying { tool, manifest, cases, pool, proof: proof_of, home, printer };
    let tried = trying.all(linked);
    let together = tried.and_then(|trials| {
        let together = trying.together(&trials)?;
        Ok((trials, together))
    });
    proof.settle(printer);
    let chosen = |target: &Target| {
        let ways = proof.runtime.block_on(proof.host.ways(&target.tool)).unwrap_or_default();
        ways.into_iter().find(|way| way.place == Some(0)).map(|way| way.implementation)
    };
    let chosen: BTreeMap<String, Option<String>> =
        linked.steps().map(|(step, target)| (step.name.clone(), chosen(target))).collect();
    proof.end(printer);
    let (trials, together) = together?;
    let told = told::Told { tool, trials: &trials, together: together.as_ref(), chosen: &chosen };
    let written = match (&args.output, &together) {
        (Some(folder), Some(together)) if together.is_good() => {
            Some(written::write(folder, tool, &together.manifest)?)
        }
        (Some(_), _) => {
            printer.note("nothing was written: no other tool was proven to be faster");
            None
        }
        (None, _) => None,
    };
    if json_wanted {
        printer.json(&told.to_value(written.as_deref()))?;
    } else {
        printer.result(&told.text())?;
        told.hint(written.as_deref(), printer);
    }
    Ok(Exit::Done)
}

/// The manifest of a chain, as it is written.
fn manifest_of(tool: &Tool) -> Result<Value, Failure> {
    let bytes = disk::read(&disk::manifest_in(tool.folder())?)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::invalid("the manifest of the chain cannot be read").cause(error))
}

/// All tools that a step could call: those of --with, and the installed ones that may be called, the fastest first by what was
/// measured.
fn pool(
    with: &[Found],
    proof: &Proof,
    home: &Home,
    printer: Printer,
) -> Result<Vec<Tool>, Failure> {
    let beside: Vec<Tool> = with.iter().flat_map(|one| &one.tools).cloned().collect();
    let view = project::view(home, printer)?;
    let listed = view.listed();
    let mut pool = beside.clone();
    for one in listed.iter().filter(|one| one.enabled && one.pinned.is_some()) {
        let is_known = pool.iter().any(|tool| tool.package.canonical_id() == one.id);
        // What cannot be called is no other choice.
        if let (false, Ok(tool)) = (is_known, steps::find(&one.id, &[], home, Printer::silent())) {
            pool.push(tool);
        }
    }
    for tool in &mut pool {
        steps::link_one(tool, &beside, home, Printer::silent());
    }
    let all = measured::all(home, &proof.runtime)?;
    let latency = |tool: &Tool| {
        let version = tool.package.semver();
        let measured = all.version(&tool.package.canonical_id(), &version);
        measured.and_then(|one| one.facts(now()).latency_ms).unwrap_or(f64::INFINITY)
    };
    pool.sort_by(|one, other| latency(one).total_cmp(&latency(other)));
    Ok(pool)
}

/// What is at hand to try other tools.
struct Trying<'t> {
    tool: &'t Tool,
    manifest: &'t Value,
    /// The tests of the chain.
    cases: &'t [Case],
    pool: &'t [Tool],
    proof: &'t Proof,
    home: &'t Home,
    printer: Printer,
}

/// The chain with all that was proven to be faster.
struct Together {
    manifest: Value,
    compared: Compared,
}

impl Together {
    /// Whether it passes what the chain passes now, and is faster.
    fn is_good(&self) -> bool {
        self.compared.lost().is_empty() && self.compared.faster() == Some(1)
    }
}

impl Trying<'_> {
    fn all(&self, linked: &Linked) -> Result<Vec<Trial>, Failure> {
        let mut trials = Vec::new();
        for (step, target) in linked.steps() {
            let Some(action) = target.action() else { continue };
            let now = target.tool.package.id.clone();
            let trial = |instead, result| Trial {
                step: step.name.clone(),
                now: now.clone(),
                instead,
                result,
            };
            let (own, of_step) = Self::narrowed(&target.tool, action)?;
            for implementation in self.implementations(&own)? {
                self.tell(step, &format!("implementation {implementation} of {now}"));
                let result = self.by_implementation(&own, &implementation, &of_step)?;
                trials.push(trial(What::Implementation(implementation), result));
            }
            let mut left = MOST_TRIED;
            for (other, of_other) in self.others(step, (&own.package, action)) {
                if left == 0 {
                    break;
                }
                left -= 1;
                self.tell(step, &other.package.canonical_id());
                let is_only = other.package.actions.len() == 1;
                let action = (!is_only).then(|| of_other.name.clone());
                let instead = Instead { tool: other.package.id.clone(), action };
                let (narrow, _) = Self::narrowed(other, of_other)?;
                let result = self.by_tool(&own, &narrow, (step, &instead), &of_step)?;
                let id = other.package.canonical_id();
                trials.push(trial(What::Tool { id, instead }, result));
            }
        }
        Ok(trials)
    }

    /// Says what is tried now, which takes a while.
    fn tell(&self, step: &Step, what: &str) {
        self.printer.note(&format!("Trying {} for {}", line(what), line(&step.name)));
    }

    /// A tool with one action alone, and the tests of that.
    fn narrowed(tool: &Tool, action: &Action) -> Result<(Tool, Vec<Case>), Failure> {
        let has_several = tool.package.actions.len() > 1;
        let is_of_it = |case: &Case| match &case.action {
            Some(name) => *name == action.name,
            None => !has_several,
        };
        let cases = cases(&[tool])?.into_iter().filter(is_of_it);
        let cases = cases.map(|case| Case { action: None, ..case }).collect();
        let mut tool = tool.clone();
        tool.package.actions = vec![action.clone()];
        Ok((tool, cases))
    }

    /// The other implementations of a tool that run here.
    fn implementations(&self, tool: &Tool) -> Result<Vec<String>, Failure> {
        let ways = self.proof.runtime.block_on(self.proof.host.ways(tool));
        let ways = ways.map_err(|error| failure(&error, &error.blocked, tool))?;
        let others = ways.into_iter().filter(|way| way.place.is_some_and(|place| place > 0));
        Ok(others.map(|way| way.implementation).collect())
    }

    /// The tools that could take the place of one, each with the action that could.
    fn others<'o>(
        &'o self,
        step: &'o Step,
        (package, action): (&'o Package, &'o Action),
    ) -> impl Iterator<Item = (&'o Tool, &'o Action)> {
        let id = package.canonical_id();
        let chain = self.tool.package.canonical_id();
        let others = self.pool.iter().filter(move |tool| {
            let other = tool.package.canonical_id();
            other != id && other != chain && !matches!(tool.links, Some(Err(_)))
        });
        others.flat_map(move |tool| {
            let actions = tool.package.actions.iter();
            let could = move |one: &&Action| fits(step, (package, action), (&tool.package, one));
            actions.filter(could).map(move |action| (tool, action))
        })
    }

    fn by_implementation(
        &self,
        tool: &Tool,
        implementation: &str,
        cases: &[Case],
    ) -> Result<Tried, Failure> {
        if cases.is_empty() {
            return Ok(Tried::Untried(format!("`{}` has no tests", tool.package.id)));
        }
        let now = self.proof.runtime.block_on(self.proof.host.ways(tool));
        let now = now.map_err(|error| failure(&error, &error.blocked, tool))?;
        let now = now.into_iter().find(|way| way.place == Some(0)).map(|way| way.implementation);
        let sides = [(tool, now.as_deref()), (tool, Some(implementation))];
        Ok(Tried::of(self.proof.compare(sides, cases)?))
    }

    /// Tries another tool: by the tests of the one that is called now, where it has any, and then in the chain.
    fn by_tool(
        &self,
        own: &Tool,
        other: &Tool,
        (step, instead): (&Step, &Instead),
        of_step: &[Case],
    ) -> Result<Tried, Failure> {
        let mut found = None;
        if !of_step.is_empty() {
            let alone = Tried::of(self.proof.compare([(own, None), (other, None)], of_step)?);
            match alone {
                Tried::Better(compared) => found = Some(compared),
                alone => return Ok(alone),
            }
        }
        let all = BTreeMap::from([(step.name.clone(), instead.clone())]);
        let chain = match self.with(&replaced(self.manifest, &all)) {
            Ok(chain) => chain,
            Err(error) => return Ok(Tried::Untried(error.message)),
        };
        let in_chain = self.proof.compare([(self.tool, None), (&chain, None)], self.cases)?;
        Ok(match (found, in_chain.lost().is_empty()) {
            (_, false) => Tried::Fails(in_chain),
            (Some(alone), true) => Tried::Better(alone),
            (None, true) => Tried::of(in_chain),
        })
    }

    /// The chain of another manifest, with what its steps call.
    fn with(&self, manifest: &Value) -> Result<Tool, CallError> {
        let bad = |message: String| CallError::new(host::Kind::BadChain, message);
        let read = read(manifest.to_string().as_bytes(), &Options::default());
        let (_, mut packages) = read.map_err(|report| {
            bad(report.findings.first().map_or_else(String::new, |one| one.message.clone()))
        })?;
        let mut package = packages.remove(0);
        // What is only tried is no version that anybody has.
        package.version = package.version.map(|version| format!("{version}-tried"));
        let mut chain = Tool { package, links: None, digest: None, ..self.tool.clone() };
        steps::link_one(&mut chain, self.pool, self.home, Printer::silent());
        match &chain.links {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(chain),
        }
    }

    /// The chain with the best tool for each step that has a better one, against the chain as it is.
    fn together(&self, trials: &[Trial]) -> Result<Option<Together>, Failure> {
        let mut best: BTreeMap<String, (f64, Instead)> = BTreeMap::new();
        for trial in trials {
            let (What::Tool { instead, .. }, Tried::Better(compared)) =
                (&trial.instead, &trial.result)
            else {
                continue;
            };
            let ratio = compared.ratio().unwrap_or(1.0);
            let known = best.get(&trial.step).map_or(0.0, |(known, _)| *known);
            if ratio > known {
                best.insert(trial.step.clone(), (ratio, instead.clone()));
            }
        }
        if best.is_empty() {
            return Ok(None);
        }
        let all = best.into_iter().map(|(step, (_, instead))| (step, instead)).collect();
        let manifest = replaced(self.manifest, &all);
        let chain = self.with(&manifest).map_err(|error| failure(&error, &[], self.tool))?;
        let compared = self.proof.compare([(self.tool, None), (&chain, None)], self.cases)?;
        Ok(Some(Together { manifest, compared }))
    }
}

impl Tried {
    fn of(compared: Compared) -> Self {
        if !compared.lost().is_empty() {
            Self::Fails(compared)
        } else if compared.faster() == Some(1) {
            Self::Better(compared)
        } else {
            Self::NotFaster(compared)
        }
    }
}
