//! `haft grant` and `haft ungrant`: what one package may have.

use std::path::Path;

use clap::Args;
use egress::{Decision, Port, Rule, Rules, Target};
use host::records::now;
use ledger::state::grants::{Attempt, Grant, GrantKind};
use policy::Policy;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::call::granting;
use crate::ask::Ask;
use crate::declared::Declared;
use crate::done::Done;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::names::{self, Typed};
use crate::owner;
use crate::policy_doubts::expanded;
use crate::printer::{Printer, line};
use crate::seen::Seen;
use crate::shell;

#[derive(Args, Debug)]
#[command(
    after_help = "Without anything to grant, shows what is granted.\n\nExamples:\n  haft grant mcpkg:acme.weather --host api.weather.example\n  haft grant capability:demo.notes --write ~/notes\n  haft grant --learn mcpkg:acme.weather"
)]
pub(crate) struct GrantArgs {
    /// The package, with its dialect: mcpkg:acme.weather
    #[arg(value_name = "PACKAGE", value_parser = names::package)]
    package: Typed,
    #[command(flatten)]
    what: What,
    /// Show what it reached for in vain, with the commands that would allow it; grants nothing
    #[arg(long, conflicts_with_all = KINDS)]
    learn: bool,
}

#[derive(Args, Debug)]
pub(crate) struct UngrantArgs {
    /// The package, with its dialect: mcpkg:acme.weather
    #[arg(value_name = "PACKAGE", value_parser = names::package)]
    package: Typed,
    #[command(flatten)]
    what: What,
    /// Take back everything it has; where it is called from stays known
    #[arg(long, conflicts_with_all = KINDS)]
    all: bool,
}

/// The flags that name something to grant or to take back.
const KINDS: [&str; 6] = ["host", "read", "write", "device", "env", "from"];

// What is granted or taken back. A doc comment would stand in the help of the verbs.
#[derive(Args, Debug)]
struct What {
    /// A host: NAME, *.NAME, NAME:PORT, ADDRESS, NETWORK/BITS; may be repeated
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// A file or folder to read; may be repeated
    #[arg(long, value_name = "PATH")]
    read: Vec<String>,
    /// A file or folder to read and write; may be repeated
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,
    /// A device below /dev; may be repeated
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
    /// A variable of yours, by its name; may be repeated
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// A folder or archive it is called from, where it was another before; may be repeated
    #[arg(long, value_name = "PATH")]
    from: Vec<String>,
}

impl What {
    /// Whether nothing is named.
    fn is_nothing(&self) -> bool {
        let Self { host, read, write, device, env, from } = self;
        [host, read, write, device, env, from].iter().all(|named| named.is_empty())
    }

    /// Each thing, checked and in the one form it is kept in.
    fn things(&self, policy: &Policy, home: &Home) -> Result<Vec<(GrantKind, String)>, Failure> {
        let mut things = Vec::new();
        for text in &self.host {
            things.push((GrantKind::Host, owner::host_rule(text)?.to_string()));
        }
        for (kind, paths) in [
            (GrantKind::Read, &self.read),
            (GrantKind::Write, &self.write),
            (GrantKind::From, &self.from),
        ] {
            for text in paths {
                let found = path(text, Some(home)).map_err(|failure| match kind {
                    GrantKind::Write if !Path::new(text).exists() => {
                        let word = shell::word(text);
                        failure.hint(format!("make it first: `mkdir -p {word}` if it is a folder"))
                    }
                    _ => failure,
                });
                things.push((kind, found?));
            }
        }
        for text in &self.device {
            let is_part = |part: &str| !matches!(part, "" | "." | "..");
            if !text.strip_prefix("/dev/").is_some_and(|rest| rest.split('/').all(is_part)) {
                let message = format!("`{}` is no device below /dev", line(text));
                return Err(Failure::invalid(message).hint("write it as in /dev/dri/card0"));
            }
            if Path::new(text).is_dir() {
                let message = format!("`{}` is a folder; name the devices in it", line(text));
                return Err(Failure::invalid(message));
            }
            things.push((GrantKind::Device, text.clone()));
        }
        for name in &self.env {
            let is_name = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name {
                let message = format!("`{}` is no name of a variable", line(name));
                return Err(Failure::invalid(message).hint("a grant has the name, not the value"));
            }
            if !policy::may_be_passed(name, policy) {
                let message = format!("`{name}` steers programs, and is not passed on");
                return Err(Failure::new(Exit::Denied, message)
                    .hint("`allow` below `[environment]` in policy.toml can name it"));
            }
            things.push((GrantKind::Env, name.clone()));
        }
        Ok(things)
    }
}

/// A path without links. What is not there yet cannot be granted: nobody knows what it will be.
fn path(text: &str, home: Option<&Home>) -> Result<String, Failure> {
    let found = Path::new(text).canonicalize().map_err(|error| {
        Failure::new(Exit::NotFound, format!("failed to find `{}`", line(text))).cause(error)
    })?;
    if found == Path::new("/") {
        return Err(Failure::invalid("`/` as a whole cannot be granted"));
    }
    if let Some(own) = ["/proc", "/sys", "/dev"].iter().find(|own| found.starts_with(own)) {
        let message = format!("`{}` cannot be granted: a tool has its own `{own}`", line(text));
        let failure = Failure::invalid(message);
        return Err(if *own == "/dev" {
            failure.hint("--device grants a device")
        } else {
            failure
        });
    }
    let home = home.and_then(|home| home.path().canonicalize().ok());
    if home.is_some_and(|home| found.starts_with(home)) {
        let message = format!("`{}` is haft's own, which no tool gets", line(text));
        return Err(Failure::new(Exit::Denied, message));
    }
    found.into_os_string().into_string().map_err(|_| {
        Failure::invalid(format!("`{}` is not text, and cannot be kept as a grant", line(text)))
    })
}

pub(crate) fn run(
    args: &GrantArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let package = args.package.whole(home)?;
    if args.learn {
        return learn(&package, home, json_wanted, printer);
    }
    if args.what.is_nothing() {
        return show(&package, home, json_wanted, printer);
    }
    let policy = owner::policy(home)?;
    let things = args.what.things(&policy, home)?;
    owner::check_presence(home, ask)?;
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let mut done = Done::default();
    // What is granted something is seen from then on.
    done.doubt(Seen::of(&records.state, home, &runtime)?.doubt(&package));
    let declared = Declared::of(&package, &records.state, &runtime);
    let mut granted = Vec::new();
    for (kind, value) in &things {
        let grant = Grant {
            package: package.clone(),
            kind: *kind,
            value: value.clone(),
            by: "terminal".to_owned(),
            created: now(),
        };
        let is_new = runtime
            .block_on(records.state.grant(&grant))
            .map_err(|error| owner::of_state(&error))?;
        let words = if is_new { "Granted" } else { "Already granted" };
        done.note(format!("{words} {package} --{} {}", kind.name(), line(value)));
        done.doubt(doubt(*kind, value, &policy));
        done.doubt(declared.doubt_grant(*kind, value));
        granted.push(json!({ "kind": kind.name(), "value": value, "new": is_new }));
    }
    done.tell(json!({ "package": package, "granted": granted }), json_wanted, printer)
}

/// Something granted, for programs.
fn entry(kind: GrantKind, value: &str) -> Value {
    json!({ "kind": kind.name(), "value": value })
}

/// What a package has.
fn granted(package: &str, home: &Home, runtime: &Runtime) -> Result<Vec<Grant>, Failure> {
    match owner::records_there(home, runtime)? {
        Some(records) => runtime
            .block_on(records.state.grants(Some(package)))
            .map_err(|error| owner::of_state(&error)),
        None => Ok(Vec::new()),
    }
}

/// Shows what is granted.
fn show(package: &str, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let grants = granted(package, home, &owner::runtime()?)?;
    if json_wanted {
        let entry = |one: &Grant| entry(one.kind, &one.value);
        printer.json(&json!(grants.iter().map(entry).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    for one in &grants {
        printer.result(&format!("{} {}\n", one.kind.name(), line(&one.value)))?;
    }
    if grants.is_empty() {
        printer.note(&format!("nothing is granted to {package}"));
    }
    Ok(Exit::Done)
}

/// Shows what a package reached for in vain, as the commands that would allow it.
fn learn(package: &str, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let policy = owner::policy(home)?;
    let runtime = owner::runtime()?;
    let records = owner::records_there(home, &runtime)?;
    let (seen, blocked) = match &records {
        Some(records) => {
            let blocked = runtime
                .block_on(records.state.blocked(package))
                .map_err(|error| owner::of_state(&error))?;
            (Seen::of(&records.state, home, &runtime)?, blocked)
        }
        None => (Seen::default(), Vec::new()),
    };
    if let Some(doubt) = seen.doubt(package) {
        printer.warn(&doubt);
    }
    let denied = host::denied(&policy);
    let all = granted(package, home, &runtime)?;
    let hosts: Rules = all
        .iter()
        .filter(|one| one.kind == GrantKind::Host)
        .filter_map(|one| Some(Rule::parse(&one.value).ok()?.reaching_private()))
        .collect();
    let is_granted = |one: &Attempt| match one.kind {
        // Who asks a name server for a name does not say which port is meant.
        GrantKind::Host => Target::parse_or(one.value.as_bytes(), Port::HTTPS)
            .is_ok_and(|target| !matches!(hosts.decide(&target), Decision::Refused(_))),
        kind => all.iter().any(|had| {
            let is_enough = had.kind == kind || had.kind == GrantKind::Write;
            is_enough && Path::new(&one.value).starts_with(&had.value)
        }),
    };
    let blocked: Vec<_> = blocked.into_iter().filter(|one| !is_granted(one)).collect();
    let useless = |one: &Attempt| match one.kind {
        GrantKind::Host if denied.refuses(&one.value) => {
            Some("your policy refuses it, and no grant helps")
        }
        GrantKind::Read | GrantKind::Write if hiding(&one.value, &policy).is_some() => {
            Some("your policy hides it, and no grant helps")
        }
        GrantKind::Host if Rule::parse(&one.value).is_err() => {
            Some("it is no host that can be granted")
        }
        _ => None,
    };
    let command = |one: &Attempt| granting(package, one.kind.name(), &one.value);
    if json_wanted {
        let entry = |one: &Attempt| {
            let (useless, mut told) = (useless(one), entry(one.kind, &one.value));
            told["count"] = one.count.into();
            told["command"] = useless.is_none().then(|| command(one)).into();
            told["useless"] = useless.into();
            told
        };
        printer.json(&json!(blocked.iter().map(entry).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    for one in &blocked {
        match useless(one) {
            Some(why) => printer.note(&format!("{}: {why}", line(&one.value))),
            None => printer.result(&format!("{}\n", command(one)))?,
        }
    }
    if blocked.is_empty() {
        printer.note(&format!("{package} reached in vain for nothing that a grant would give"));
    }
    Ok(Exit::Done)
}

/// What may not be meant by a grant.
fn doubt(kind: GrantKind, value: &str, policy: &Policy) -> Option<String> {
    let shown = line(value);
    match kind {
        GrantKind::Device if !Path::new(value).exists() => Some(format!("`{shown}` is not there")),
        GrantKind::Env if std::env::var_os(value).is_none() => Some(format!(
            "`{shown}` is not set now; it is passed on as it is when the package is called"
        )),
        GrantKind::Host if host::denied(policy).refuses(value) => {
            Some(format!("your policy refuses `{shown}`, and no grant helps"))
        }
        GrantKind::Read | GrantKind::Write => hiding(value, policy).map(|folder| {
            let folder = line(folder);
            format!(
                "`{shown}` is in `{folder}`, which your policy hides ([folders] deny), and no grant helps"
            )
        }),
        _ => None,
    }
}

/// The folder by which the policy hides a path.
fn hiding<'p>(path: &str, policy: &'p Policy) -> Option<&'p String> {
    let holds = |one: &&String| {
        let expanded = expanded(one);
        Path::new(path).starts_with(expanded.canonicalize().unwrap_or(expanded))
    };
    policy.folders.deny.iter().find(holds)
}

pub(crate) fn ungrant(
    args: &UngrantArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let package = args.package.whole(home)?;
    let runtime = owner::runtime()?;
    let granted = granted(&package, home, &runtime)?;
    let things: Vec<(GrantKind, String)> = if args.all {
        // Where it is called from is nothing it has, and guards what else is kept for it.
        let had = granted.into_iter().filter(|one| one.kind != GrantKind::From);
        had.map(|one| (one.kind, one.value)).collect()
    } else {
        // What was granted may be gone from the disk, or a link by now, and is taken back all the same.
        let is_granted =
            |kind, value: &str| granted.iter().any(|one| one.kind == kind && one.value == value);
        let mut things = Vec::new();
        let what = &args.what;
        for (kind, texts) in [
            (GrantKind::Host, &what.host),
            (GrantKind::Read, &what.read),
            (GrantKind::Write, &what.write),
            (GrantKind::Device, &what.device),
            (GrantKind::Env, &what.env),
            (GrantKind::From, &what.from),
        ] {
            let plain = |text: &String| match kind {
                _ if is_granted(kind, text) => text.clone(),
                GrantKind::Read | GrantKind::Write | GrantKind::From => {
                    let typed = std::path::absolute(text).unwrap_or_else(|_| text.into());
                    let typed = typed.to_string_lossy().into_owned();
                    if is_granted(kind, &typed) { typed } else { path(text, None).unwrap_or(typed) }
                }
                GrantKind::Host => {
                    Rule::parse(text).map_or_else(|_| text.clone(), |rule| rule.to_string())
                }
                GrantKind::Device | GrantKind::Env => text.clone(),
            };
            things.extend(texts.iter().map(|text| (kind, plain(text))));
        }
        things
    };
    if things.is_empty() && !args.all {
        return Err(Failure::invalid("there is nothing to take back")
            .hint("name it as it was granted, or --all"));
    }
    let mut done = Done::default();
    if things.is_empty() {
        done.note(format!("nothing was granted to {package}"));
        done.doubt(Seen::at(home, &runtime)?.doubt(&package));
    }
    let records = owner::records_there(home, &runtime)?;
    for (kind, value) in &things {
        let taking = async {
            let Some(records) = &records else { return Ok(false) };
            // Where it was called last is as good as granted while nothing else is.
            if *kind == GrantKind::From && !args.all {
                records.state.forget_place(&package, value).await?;
            }
            records.state.revoke(&package, *kind, value).await
        };
        let revoked = runtime.block_on(taking).map_err(|error| owner::of_state(&error))?;
        let name = format!("{package} --{} {}", kind.name(), line(value));
        if !revoked {
            let failure = Failure::new(Exit::NotFound, format!("`{name}` is not granted"));
            return Err(match Seen::at(home, &runtime)?.doubt(&package) {
                Some(doubt) => failure.hint(doubt),
                None => {
                    failure.hint(format!("`haft grant {}` shows what is", shell::word(&package)))
                }
            });
        }
        done.note(format!("Took back {name}"));
    }
    let taken: Vec<_> = things.iter().map(|(kind, value)| entry(*kind, value)).collect();
    done.tell(json!({ "package": package, "taken_back": taken }), json_wanted, printer)
}
