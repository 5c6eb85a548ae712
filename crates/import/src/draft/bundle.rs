//! A program on this machine as a bundle: it stays where it is, and the bundle says how it is started.

use serde_json::{Map, Value, json};

use super::asked::{Asked, Part, Sink, Want};
use super::command::check_argument;
use super::place::{absolute, is_script, needed};
use super::{Around, Draft, Mark, bytes_of, read_back, versioned};

/// How a program is started.
pub(super) struct Started<'s> {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: &'s [(String, String)],
    pub(super) cwd: Option<&'s str>,
}

/// The file of a bundle that says what is started; the format wants one to be named.
const ENTRY_POINT: &str = "server/started.json";

pub(super) fn draft(
    name: &str,
    started: &Started<'_>,
    mut asked: Asked<'_>,
    around: &Around<'_>,
) -> Result<Draft, String> {
    let folder = started.cwd.or(around.folder);
    let written_out =
        |text: &str| absolute(text, folder, around.machine).unwrap_or_else(|| text.to_owned());
    let program = asked.written_out(&started.command)?;
    if program.contains('/') && there(&program, folder, around).is_none() {
        return Err(format!("there is no program `{program}`"));
    }
    let command = written_out(&program);
    let mut args = Vec::new();
    for argument in &started.args {
        check_argument(argument, args.last())?;
        args.push(written_out(&asked.written_out(argument)?));
    }
    let mut reads: Vec<String> = Vec::new();
    let scripts = args.iter().filter(|argument| is_script(argument));
    for needed in
        std::iter::once(&command).chain(scripts).filter_map(|one| needed(one, around.machine))
    {
        if !reads.contains(&needed) {
            reads.push(needed);
        }
    }
    if started.cwd.is_some() {
        let message =
            "the folder that it is started in is not carried; paths below it were written out";
        asked.warnings.push(message.to_owned());
    }
    for argument in args.iter().filter(|argument| !is_script(argument)) {
        let path = std::path::Path::new(argument);
        if path.is_absolute() && around.machine.at(path).is_some() {
            let message = format!("it is told of `{argument}`, which it gets when you grant it");
            asked.warnings.push(message);
        }
    }
    let mut filled = Vec::new();
    for text in std::iter::once(&command).chain(&args) {
        filled.push(template(&asked.parts(text, Sink::Open("its command line"))?));
    }
    let mut env = Map::new();
    for (name, value) in started.env {
        let value = template(&asked.variable(name, value)?);
        env.insert(name.clone(), value.into());
    }
    asked.check_open()?;
    let Asked { wanted, secrets, warnings, .. } = asked;
    let program = filled.remove(0);
    let mut config = json!({"command": program, "args": filled});
    if !env.is_empty() {
        config["env"] = env.into();
    }
    let mut document = json!({
        "manifest_version": "0.3",
        "name": name,
        "version": "",
        "description": "A server that was started by a client, from the client's settings.",
        "author": {"name": "unknown"},
        "server": {"type": kind_of(&started.command), "entry_point": ENTRY_POINT, "mcp_config": config},
    });
    if !wanted.is_empty() {
        document["user_config"] =
            wanted.iter().map(|one| (one.name.clone(), setting(one))).collect();
    }
    let document = versioned(document, "0.0.0", "/version", Mark::Build);
    let bytes = bytes_of(&document);
    let package = read_back(&bytes)?;
    let started = [&[command][..], &args].concat();
    let point = json!({"started": started});
    let mut files =
        vec![("manifest.json".to_owned(), bytes), (ENTRY_POINT.to_owned(), bytes_of(&point))];
    if !reads.is_empty() {
        let companion = json!({"haft": "1", "permissions": {"read": &reads}});
        files.push(("haft.json".to_owned(), bytes_of(&companion)));
    }
    let name = name.to_owned();
    Ok(Draft { name, package, files, secrets, reads, private_host: None, warnings })
}

/// The path of a program that is there.
fn there(command: &str, folder: Option<&str>, around: &Around<'_>) -> Option<String> {
    match absolute(command, folder, around.machine) {
        Some(path) => Some(path),
        None if command.contains("${") => Some(command.to_owned()),
        None => {
            let path = std::path::Path::new(command);
            around.machine.at(path).filter(|_| path.is_absolute())?;
            Some(command.to_owned())
        }
    }
}

fn template(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Wanted(name) => format!("${{user_config.{name}}}"),
        })
        .collect()
}

fn setting(want: &Want) -> Value {
    let mut setting = json!({
        "type": "string", "title": want.prompt, "description": "", "required": want.required,
    });
    if want.secret {
        setting["sensitive"] = true.into();
    }
    if let Some(default) = &want.default {
        setting["default"] = default.as_str().into();
    }
    setting
}

/// What runs it, in the words of the format.
fn kind_of(command: &str) -> &'static str {
    let program = command.rsplit('/').next().unwrap_or(command);
    let is = |start: &str| {
        program
            .strip_prefix(start)
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    if is("python") || is("pypy") {
        "python"
    } else if is("node") {
        "node"
    } else {
        "binary"
    }
}
