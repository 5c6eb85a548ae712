//! `haft approve`: what may be called without being asked again.

use clap::{Args, Subcommand};
use host::Records;
use host::records::now;
use host::ticket::{self, conversation, is_first, package_of};
use ledger::state::approvals::{Answer, Ticket};
use ledger::state::rules::{Lasts, Remembered, Rule};
use ledger::state::wishes::Wish;
use policy::{Arguments, Pattern};
use serde_json::{Value, json};

use super::surface::SurfaceArgs;
use crate::ask::Ask;
use crate::declared::Declared;
use crate::done::Done;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed;
use crate::names::{self, Typed};
use crate::owner;
use crate::printer::{Printer, indented, line};
use crate::seen::Seen;
use crate::steps;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft approve list\n  haft approve allow 3f9a --session\n  haft approve always mcpkg:acme.mail send '{\"to\":\"*@example.com\"}'\n  haft approve rules\n  haft approve forget 3"
)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Let an action be called without asking, where its arguments fit
    Always {
        /// The package, with its dialect: mcpkg:acme.mail
        #[arg(value_name = "PACKAGE", value_parser = names::package)]
        package: Typed,
        /// The action
        #[arg(value_name = "ACTION", value_parser = names::action)]
        action: String,
        /// A JSON object whose members must fit; `*` in a text stands for any letters; with `=` before it, exactly these
        #[arg(value_name = "PATTERN", default_value = "{}", value_parser = Pattern::parse)]
        pattern: Pattern,
    },
    /// Show the calls of agents that wait for your word
    #[command(alias = "waiting")]
    List,
    /// Show the tools that agents would have, and are not installed
    Requests {
        /// Dismiss those for one tool, as its name is shown
        #[arg(long, value_name = "TOOL", conflicts_with = "clear")]
        dismiss: Option<String>,
        /// Dismiss all of them
        #[arg(long)]
        clear: bool,
    },
    /// Say yes to a call that waits: once, or for longer
    ///
    /// Where your policy asks the first time only, a yes is for every further call of the action from there; `haft approve list`
    /// says so of each such call.
    Allow {
        /// What `haft approve list` shows, or four letters of its beginning or more
        #[arg(value_name = "TICKET")]
        ticket: String,
        /// And to every call of this action by the same client, as long as it is connected
        #[arg(long, conflicts_with = "always")]
        session: bool,
        /// And from now on: with exactly these arguments, or where they fit a pattern, as for `haft approve always`
        #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "=", value_parser = Meant::parse)]
        always: Option<Meant>,
    },
    /// Say no to a call that waits
    #[command(
        alias = "refuse",
        override_usage = "haft approve deny <TICKET>\n       haft approve deny --all"
    )]
    Deny {
        /// What `haft approve list` shows, or four letters of its beginning or more
        #[arg(value_name = "TICKET", required_unless_present = "all")]
        ticket: Option<String>,
        /// Say no to every call that waits now
        #[arg(long, conflicts_with = "ticket")]
        all: bool,
    },
    /// Approve everything that an installed server offers, or what it offers now
    Surface(SurfaceArgs),
    /// Show what may be called without asking
    Rules,
    /// Ask again from now on
    Forget {
        /// The number that `haft approve rules` shows
        #[arg(value_name = "NUMBER", allow_hyphen_values = true)]
        number: String,
    },
}

/// How much of a ticket's name is enough.
const LEAST_LETTERS: usize = 4;

/// Which arguments are meant by a yes that counts for longer.
#[derive(Clone, Debug)]
enum Meant {
    /// Those of the call that waits; written `=`, or nothing.
    These,
    /// Those that fit.
    Fitting(Pattern),
}

impl Meant {
    fn parse(text: &str) -> Result<Self, policy::arguments::NotAPattern> {
        if text == "=" { Ok(Self::These) } else { Pattern::parse(text).map(Self::Fitting) }
    }
}

pub(crate) fn run(
    args: &ApproveArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let runtime = owner::runtime()?;
    let failed = |error: ledger::StateError| owner::of_state(&error);
    let mut done = Done::default();
    let document = match &args.what {
        What::Always { package, action, pattern } => {
            let package = &package.whole(home)?;
            owner::check_presence(home, ask)?;
            let records = owner::records(home, &runtime)?;
            let rule = Rule {
                package: package.clone(),
                action: action.clone(),
                arguments: pattern.to_string(),
                lasts: Lasts::Always,
                by: "terminal".to_owned(),
            };
            let remembered = runtime.block_on(remember(&records, rule))?;
            done.note(format!(
                "Rule {}: `{}` of {package} is not asked about {}",
                remembered.id,
                line(action),
                fitting(pattern)
            ));
            done.doubt(Seen::of(&records.state, home, &runtime)?.doubt(package));
            let declared = Declared::of(package, &records.state, &runtime);
            done.doubt(declared.doubt_action(action));
            done.doubt(declared.doubt_pattern(action, pattern));
            json!({ "remembered": rule_value(&remembered) })
        }
        What::List => {
            let tickets = match owner::records_there(home, &runtime)? {
                Some(records) => runtime.block_on(records.state.waiting(now())).map_err(failed)?,
                None => Vec::new(),
            };
            if json_wanted {
                printer.json(&json!(tickets.iter().map(to_value).collect::<Vec<_>>()))?;
                return Ok(Exit::Done);
            }
            for ticket in &tickets {
                printer.result(&words(ticket))?;
            }
            if tickets.is_empty() {
                printer.note("nothing waits for you");
                home.ways_elsewhere().iter().for_each(|way| printer.note(way));
            }
            return Ok(Exit::Done);
        }
        What::Allow { ticket, session, always } => {
            owner::check_presence(home, ask)?;
            let records = owner::records(home, &runtime)?;
            let ticket = runtime.block_on(find(&records, ticket, home))?;
            let lasts = lasting(&ticket, *session, always.as_ref())?;
            let document = runtime.block_on(allow(&records, &ticket, lasts, &mut done))?;
            done.doubt(off(&package_of(&ticket), home));
            document
        }
        What::Deny { ticket, .. } => deny(ticket.as_deref(), &runtime, home, &mut done)?,
        What::Requests { dismiss: None, clear: false } => {
            return requests(&runtime, home, json_wanted, printer);
        }
        What::Requests { dismiss, .. } => {
            return dismissed(dismiss.as_deref(), &runtime, home, json_wanted, printer);
        }
        What::Surface(args) => return super::surface::run(args, home, ask, json_wanted, printer),
        What::Rules => {
            let rules = match owner::records_there(home, &runtime)? {
                Some(records) => runtime.block_on(rules(&records))?,
                None => Vec::new(),
            };
            return show_rules(&rules, json_wanted, printer);
        }
        What::Forget { number } => {
            let forgotten = match owner::records_there(home, &runtime)? {
                Some(records) => runtime.block_on(forget(&records, number))?,
                None => None,
            };
            let forgotten = forgotten.ok_or_else(|| {
                Failure::new(Exit::NotFound, format!("there is no rule `{}`", line(number)))
                    .hint("`haft approve rules` shows which there are")
            })?;
            done.note(format!("Rule {} is forgotten", forgotten.id));
            json!({ "forgotten": rule_value(&forgotten) })
        }
    };
    done.tell(document, json_wanted, printer)
}

/// Dismisses what agents ask for: of one tool, or all of it.
fn dismissed(
    tool: Option<&str>,
    runtime: &tokio::runtime::Runtime,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let count = match owner::records_there(home, runtime)? {
        Some(records) => runtime.block_on(records.state.forget_wishes(tool)),
        None => Ok(0),
    };
    let count = count.map_err(|error| owner::of_state(&error))?;
    if let (0, Some(tool)) = (count, tool) {
        let message = format!("no agent asks for `{}`", line(tool));
        let hint = "`haft approve requests` shows what they ask for";
        return Err(Failure::new(Exit::NotFound, message).hint(hint));
    }
    if json_wanted {
        printer.json(&json!({ "forgotten": count }))?;
    } else {
        printer.note(&format!("{} dismissed", super::count(count, "request")));
    }
    Ok(Exit::Done)
}

/// Shows what agents would have.
fn requests(
    runtime: &tokio::runtime::Runtime,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let Some(records) = owner::records_there(home, runtime)? else {
        if json_wanted {
            printer.json(&json!([]))?;
        }
        return Ok(Exit::Done);
    };
    let wishes = runtime.block_on(records.state.wishes());
    let wishes = wishes.map_err(|error| owner::of_state(&error))?;
    if json_wanted {
        let told = |one: &Wish| json!({ "tool": one.tool, "why": one.why, "surface": one.surface, "client": one.client, "at": one.at.to_string() });
        printer.json(&json!(wishes.iter().map(told).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    for one in &wishes {
        let (tool, why) = (line(&one.tool), line(&one.why));
        printer.result(&format!("{tool}: {why} (by {}, {})\n", line(&one.by()), one.at))?;
    }
    if wishes.is_empty() {
        printer.note("agents ask for no tools");
    } else {
        printer.note(
            "`haft show TOOL` shows what one would be allowed, `haft install TOOL` installs it, `haft approve requests --dismiss TOOL` puts it away",
        );
    }
    Ok(Exit::Done)
}

/// Says yes to a call that waits, and to others for as long as that lasts.
async fn allow(
    records: &Records,
    ticket: &Ticket,
    lasts: Option<(Lasts, Pattern)>,
    done: &mut Done,
) -> Result<Value, Failure> {
    answer(records, ticket, Answer::Approved).await?;
    let from_now_on = first_by(ticket).map(|surface| format!(", and by {surface} from now on"));
    let from_now_on = from_now_on.unwrap_or_default();
    let (action, package) = (line(&ticket.asked.action), line(&package_of(ticket)));
    done.note(format!("`{action}` of {package} may be called{from_now_on}"));
    let mut document = json!({ "allowed": to_value(ticket) });
    if let Some((lasts, pattern)) = lasts {
        let rule = Rule {
            package: package_of(ticket),
            action: ticket.asked.action.clone(),
            arguments: pattern.to_string(),
            lasts,
            by: "terminal".to_owned(),
        };
        let remembered = remember(records, rule).await?;
        if is_covered(ticket, &pattern) {
            let spent = records.state.spend(&ticket.id, now()).await;
            spent.map_err(|error| owner::of_state(&error))?;
        }
        let session = session_of(&remembered.rule.lasts).map_or("", |_| " in this session");
        let (number, fitting) = (remembered.id, fitting(&pattern));
        done.note(format!("Rule {number}: it is not asked about again{session} {fitting}"));
        document["remembered"] = rule_value(&remembered);
    }
    Ok(document)
}

/// For how long a yes counts, and to which arguments, where that is more than this call.
fn lasting(
    ticket: &Ticket,
    session: bool,
    always: Option<&Meant>,
) -> Result<Option<(Lasts, Pattern)>, Failure> {
    if !session {
        return Ok(match always {
            Some(Meant::Fitting(pattern)) => Some((Lasts::Always, pattern.clone())),
            Some(Meant::These) => Some((Lasts::Always, exactly(ticket)?)),
            None => None,
        });
    }
    let without = match first_by(ticket) {
        Some(surface) => format!("without --session it {}", further(&surface)),
        None => "without --session it counts once".to_owned(),
    };
    let Some(session) = conversation(ticket) else {
        let message = "the client has no session that it could count for";
        return Err(Failure::invalid(message).hint(without));
    };
    if is_first(ticket) {
        let message = "it is asked about the first time only, so no yes ends with a session";
        return Err(Failure::invalid(message).hint(without));
    }
    Ok(Some((Lasts::Session(session.to_owned()), Pattern::any())))
}

/// What to say of a package that cannot be called whatever is allowed.
fn off(package: &str, home: &Home) -> Option<String> {
    let named = installed::named(package, &installed::home(home)).ok()?;
    let id = line(&named.id);
    (!named.enabled).then(|| format!("{id} is switched off meanwhile: `haft status {id}` says why"))
}

/// Whether a rule lets the call of a ticket through. What is asked the first time only is remembered when the ticket is used.
fn is_covered(ticket: &Ticket, pattern: &Pattern) -> bool {
    !is_first(ticket) && pattern.fits(&Arguments::new(ticket.shown.value()["input"].clone()))
}

/// Remembers a rule, which may be one that is remembered already.
async fn remember(records: &Records, rule: Rule) -> Result<Remembered, Failure> {
    let created = now();
    let id = records.state.remember(&rule, created).await;
    let id = id.map_err(|error| owner::of_state(&error))?;
    let known = rules(records).await?.into_iter().find(|one| one.id == id);
    Ok(known.unwrap_or(Remembered { id, rule, created }))
}

/// All that is remembered.
async fn rules(records: &Records) -> Result<Vec<Remembered>, Failure> {
    let rules = records.state.remembered(None).await;
    rules.map_err(|error| owner::of_state(&error))
}

/// Forgets the rule of a number, where there is one.
async fn forget(records: &Records, number: &str) -> Result<Option<Remembered>, Failure> {
    let known = rules(records).await?.into_iter().find(|one| one.id.to_string() == number);
    let Some(rule) = known else { return Ok(None) };
    let is_gone = records.state.forget_rule(rule.id).await;
    let is_gone = is_gone.map_err(|error| owner::of_state(&error))?;
    Ok(is_gone.then_some(rule))
}

/// Which calls a rule is about, in words.
fn fitting(pattern: &Pattern) -> String {
    if *pattern == Pattern::any() {
        return "whatever its arguments".to_owned();
    }
    let pattern = line(&pattern.to_string());
    match pattern.strip_prefix('=') {
        Some(exact) => format!("with exactly {exact}"),
        None => format!("where its arguments fit {pattern}"),
    }
}

/// The arguments that a question is about, and no others. What is shown of them must be what the answer is for.
fn exactly(ticket: &Ticket) -> Result<Pattern, Failure> {
    ticket::exactly(ticket).ok_or_else(|| {
        Failure::invalid("these arguments cannot be remembered as they are")
            .hint("--always PATTERN says which are meant")
    })
}

fn show_rules(rules: &[Remembered], json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        printer.json(&json!(rules.iter().map(rule_value).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    for one in rules {
        let rule = &one.rule;
        printer.result(&format!(
            "{} {} {} {}{}\n",
            one.id,
            line(&rule.package),
            line(&rule.action),
            match Pattern::parse(&rule.arguments) {
                Ok(pattern) => fitting(&pattern),
                Err(_) => line(&rule.arguments),
            },
            match &rule.lasts {
                Lasts::Session(name) => format!(" in session {}", line(name)),
                Lasts::First(name) => format!(" by {}, after its first call", line(name)),
                Lasts::Once | Lasts::Always => String::new(),
            }
        ))?;
    }
    if rules.is_empty() {
        printer.note("there are no rules: what has to be asked is asked");
    }
    Ok(Exit::Done)
}

/// A rule, for programs.
fn rule_value(one: &Remembered) -> Value {
    json!({
        "number": one.id,
        "package": one.rule.package,
        "action": one.rule.action,
        "pattern": one.rule.arguments,
        "session": session_of(&one.rule.lasts),
        "surface": surface_of(&one.rule.lasts),
        "by": one.rule.by,
        "since": one.created.to_string(),
    })
}

/// The session that a rule counts for, if it is for one.
fn session_of(lasts: &Lasts) -> Option<&str> {
    match lasts {
        Lasts::Session(name) => Some(name),
        Lasts::Once | Lasts::Always | Lasts::First(_) => None,
    }
}

/// The surface that a rule counts for, if it is for one.
fn surface_of(lasts: &Lasts) -> Option<&str> {
    match lasts {
        Lasts::First(name) => Some(name),
        Lasts::Once | Lasts::Always | Lasts::Session(_) => None,
    }
}

/// From where an action may be called from now on, where it is asked about the first time only.
fn first_by(ticket: &Ticket) -> Option<String> {
    is_first(ticket).then(|| line(&ticket.asked.surface))
}

/// What a yes then is for.
fn further(surface: &str) -> String {
    format!("counts for every further call of this action by {surface}")
}

fn to_value(ticket: &Ticket) -> Value {
    let shown = ticket.shown.value();
    let mut told = json!({
        "ticket": ticket.id.to_string(),
        "package": shown["package"],
        "action": ticket.asked.action,
        "input": shown["input"],
        "folder": shown["folder"],
        "because": shown["because"],
        "is_first": is_first(ticket),
        "message": shown["message"],
        "surface": ticket.asked.surface,
        "client": shown["client"],
        "client_says": shown["client_says"],
        "session": conversation(ticket),
        "since": ticket.created.to_string(),
        "expires": ticket.expires.to_string(),
    });
    if let Some(steps) = shown.get("steps") {
        told["steps"] = steps.clone();
    }
    told
}

/// Our own words with the whole input; the tool's own are quoted beneath.
fn words(ticket: &Ticket) -> String {
    let shown = ticket.shown.value();
    let text = |name: &str| line(shown[name].as_str().unwrap_or_default());
    let quoted = match shown["message"].as_str() {
        Some(said) => format!("  the tool itself says: \"{}\"\n", indented(said)),
        None => String::new(),
    };
    let place = match shown["folder"].as_str() {
        Some(folder) => format!("  in {}\n", line(folder)),
        None => String::new(),
    };
    let steps = shown["steps"].as_array().into_iter().flatten();
    let steps: String = steps.map(|one| format!("  step {}\n", steps::words(one))).collect();
    let first = first_by(ticket).map(|surface| format!("; a yes {}", further(&surface)));
    format!(
        "{} `{}` of {} by {}{} until {}\n  {}\n{place}{quoted}{steps}  because {}{}\n",
        ticket.id,
        line(&ticket.asked.action),
        text("package"),
        line(&ticket.asked.surface),
        who(&shown),
        ticket.expires,
        line(&shown["input"].to_string()),
        text("because"),
        first.unwrap_or_default(),
    )
}

/// Who asks: what the owner calls it, and what its program says that it is, which nobody has proved.
fn who(shown: &Value) -> String {
    match (shown["client"].as_str(), shown["client_says"].as_str()) {
        (Some(name), Some(says)) => {
            format!(" ({}, which says that it is `{}`)", line(name), line(says))
        }
        (Some(name), None) => format!(" ({})", line(name)),
        (None, _) => String::new(),
    }
}

/// The one question that waits under a name, or the beginning of one.
async fn find(records: &Records, name: &str, home: &Home) -> Result<Ticket, Failure> {
    let waiting = records.state.waiting(now()).await;
    let waiting = waiting.map_err(|error| owner::of_state(&error))?;
    // With fewer letters, the name of a call that is gone may be that of one nobody has looked at.
    let is_meant =
        |one: &Ticket| name.len() >= LEAST_LETTERS && one.id.to_string().starts_with(name);
    let mut found: Vec<_> = waiting.into_iter().filter(is_meant).collect();
    match (found.pop(), found.len()) {
        (Some(ticket), 0) => Ok(ticket),
        (Some(_), _) => {
            Err(Failure::new(Exit::Conflict, format!("more than one begins with `{}`", line(name))))
        }
        (None, _) => {
            let message = format!("nothing waits as `{}`", line(name));
            let mut failure = Failure::new(Exit::NotFound, message).hint(format!(
                "`haft approve list` shows what does; write {LEAST_LETTERS} of its letters or more"
            ));
            failure.hints.extend(home.ways_elsewhere());
            Err(failure)
        }
    }
}

/// Says no to a call that waits, or to all of them.
fn deny(
    ticket: Option<&str>,
    runtime: &tokio::runtime::Runtime,
    home: &Home,
    done: &mut Done,
) -> Result<Value, Failure> {
    let Some(ticket) = ticket else {
        let refused = match owner::records_there(home, runtime)? {
            Some(records) => runtime.block_on(deny_all(&records))?,
            None => Vec::new(),
        };
        done.note(format!("{} refused", super::count(refused.len(), "call")));
        return Ok(json!({ "refused": refused.iter().map(to_value).collect::<Vec<_>>() }));
    };
    let records = owner::records(home, runtime)?;
    let ticket = runtime.block_on(find(&records, ticket, home))?;
    runtime.block_on(answer(&records, &ticket, Answer::Refused))?;
    done.note(format!("`{}` is not called", line(&ticket.asked.action)));
    Ok(json!({ "refused": to_value(&ticket) }))
}

/// Says no to every call that waits; which those were.
async fn deny_all(records: &Records) -> Result<Vec<Ticket>, Failure> {
    let mut refused = Vec::new();
    let waiting = records.state.waiting(now()).await;
    for ticket in waiting.map_err(|error| owner::of_state(&error))? {
        // Who was quicker has said it already.
        let counted = records.answer(&ticket.id, Answer::Refused, "terminal").await;
        if counted.map_err(|error| owner::of_state(&error))? {
            refused.push(ticket);
        }
    }
    Ok(refused)
}

async fn answer(records: &Records, ticket: &Ticket, answer: Answer) -> Result<(), Failure> {
    let counted = records.answer(&ticket.id, answer, "terminal").await;
    if counted.map_err(|error| owner::of_state(&error))? {
        Ok(())
    } else {
        Err(Failure::new(Exit::Conflict, "it was answered meanwhile, or ran out"))
    }
}
