//! Tools run against each other, on the same tests and under the same conditions.

use std::num::NonZeroU32;
use std::sync::Arc;

use host::{Host, Said, Tool};
use policy::Policy;
use prove::compare::{Compared, Side, compare};
use prove::{Case, How, Suite};
use tokio::runtime::Runtime;

use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::call::settings;
use crate::commands::count;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{interrupt, owner, walls};

/// How many different tests are run at most.
const MOST_TESTS: usize = 1_000;

/// Fewer pairs than these tell nothing, even if one is always the faster one.
const FEWEST: u64 = 8;

/// Where tools are run against each other.
pub(in crate::commands) struct Proof {
    pub(in crate::commands) host: Host,
    pub(in crate::commands) policy: Policy,
    pub(in crate::commands) runtime: Runtime,
    how: How,
    rounds: NonZeroU32,
    approver: Arc<Owner>,
}

impl Proof {
    /// How often each test is called on each, and whether the owner approves all of it beforehand.
    pub(in crate::commands) fn new(
        repeat: u32,
        approve: bool,
        home: &Home,
        ask: Ask,
    ) -> Result<Self, Failure> {
        let settings = settings(home)?;
        let policy = settings.policy.clone();
        let runtime = owner::runtime()?;
        let records = owner::records(home, &runtime)?;
        let vault = owner::vault(home, ask)?;
        let host = Host::new(settings, walls::launcher()?, vault, records);
        let folder = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
        })?;
        let approver = Arc::new(Owner::new(home, ask, approve.then_some(Said::Once)));
        let given = Some(Arc::<Owner>::clone(&approver) as Arc<dyn host::Approver>);
        let how = How::one_by_one(folder, given, interrupt::calling_off());
        let rounds = NonZeroU32::new(repeat).unwrap_or(NonZeroU32::MIN);
        Ok(Self { host, policy, runtime, how, rounds, approver })
    }

    /// Runs the same tests on both.
    pub(in crate::commands) fn compare(
        &self,
        sides: [Side<'_>; 2],
        cases: &[Case],
    ) -> Result<Compared, Failure> {
        let compared = compare(&self.host, sides, cases, self.rounds, &self.how);
        let compared = self.runtime.block_on(compared);
        if interrupt::was_told_to_stop() {
            return Err(interrupt::cancelled());
        }
        match self.approver.take_failure() {
            Some(failure) => Err(failure),
            None => Ok(compared),
        }
    }

    /// Counts what was run.
    pub(in crate::commands) fn settle(&self, printer: Printer) {
        self.runtime.block_on(self.host.settle());
        if let Err(error) = self.runtime.block_on(self.host.records().settle()) {
            printer.alarm(&format!("the calls could not be counted: {}", line(&error.to_string())));
        }
    }

    /// Nothing runs any more. A question may still wait for its answer, and nobody waits for the question.
    pub(in crate::commands) fn end(self, printer: Printer) {
        self.settle(printer);
        interrupt::nothing_runs();
        self.runtime.shutdown_background();
    }
}

/// The tests of these tools, each once.
pub(in crate::commands) fn cases(tools: &[&Tool]) -> Result<Vec<Case>, Failure> {
    let mut cases: Vec<Case> = Vec::new();
    for tool in tools {
        for case in Suite::of(&tool.package, tool.folder()).cases().take(MOST_TESTS) {
            let case = case.map_err(|error| Failure::invalid(line(&error.to_string())))?;
            let is_known = |one: &Case| one.name == case.name && one.input == case.input;
            if !cases.iter().any(is_known) {
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

/// That nothing can be held against anything.
pub(in crate::commands) fn no_tests(message: impl Into<String>) -> Failure {
    Failure::new(Exit::NotFound, message)
        .hint("a test is a file `tests/NAME.test.json`; testing.md says what is in it")
}

/// Which of two is faster, how sure that is, and whether the second passes what the first passes.
pub(in crate::commands) fn verdict(compared: &Compared, [first, second]: [&str; 2]) -> String {
    let [slower, faster] = compared.faster;
    let (pairs, chance) = (slower + faster, compared.chance());
    let speed = match (compared.faster(), compared.ratio()) {
        (Some(1), Some(ratio)) => format!("{second} is {ratio:.2} times as fast as {first}"),
        (Some(_), Some(ratio)) => {
            format!("{first} is {:.2} times as fast as {second}", 1.0 / ratio)
        }
        _ if pairs < FEWEST => format!("{pairs} pairs are too few to tell which is faster"),
        _ => "neither is clearly faster".to_owned(),
    };
    let tested = format!("{second} was faster in {faster} of {pairs} pairs, p = {chance:.3}");
    let right = match compared.lost().len() {
        0 => format!("{second} passes what {first} passes"),
        lost => format!("{second} fails {} that {first} passes", count(lost, "test")),
    };
    format!("{speed} ({tested}); {right}")
}
