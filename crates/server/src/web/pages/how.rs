//! How a tool is put to use, client by client.
//!
//! Commands are made for a shell and files for a client from what a stranger wrote, so every part is quoted; where a
//! part cannot be quoted so that people see what they paste, there is no command.

use manifest::dialect::Dialect;
use manifest::model::{Acquire, Entry, Input, Package};
use registry::{Describe, identity};
use serde_json::{Value, json};

use super::{inert, link, sample};
use crate::stored::is_run_by_nothing;

/// One way to use a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The client.
    pub(super) client: &'static str,
    /// What is to be known before.
    pub(super) says: String,
    /// What is copied, one of them; where there is nothing to copy, what was said is all.
    pub(super) texts: Vec<Text>,
}

/// Something that is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// What is to be known of this one.
    pub(super) says: String,
    /// What is copied.
    pub(super) text: String,
}

/// One text of which there is nothing more to be known.
fn alone(text: String) -> Vec<Text> {
    vec![Text { says: String::new(), text }]
}

/// The ways to use a version, which is to be had at this origin.
pub(super) fn ways(package: Option<&Package>, describe: &Describe, origin: &str) -> Vec<Way> {
    let plain = describe.id.strip_prefix(identity::PREFIX).unwrap_or(&describe.id);
    let file = file_name(plain, &describe.version);
    let url = format!("{origin}{}/package", link::api(&describe.id, &describe.version));
    let get = format!("curl -fsSL -o {} \\\n  {}", quoted(&file), quoted(&url));
    let is_signed = describe.signature.as_ref().is_some_and(|signature| signature.state == "valid");
    let verify = if is_signed { format!("haft verify {}\n", quoted(&file)) } else { String::new() };
    // Haft itself checks the digest, and shows the token where reading needs one.
    let what = format!("{plain}@{}", describe.version);
    let own = if is_word(&what) {
        let (what, origin) = (quoted(&what), quoted(origin));
        format!("haft registry get {what} -o {} \\\n  --registry {origin}", quoted(&file))
    } else {
        get.clone()
    };
    let call = first_call(package);
    // A server without declared tools is asked for them by the first call.
    let is_server =
        package.is_some_and(|package| package.is_server() && package.actions.is_empty());
    let says = match (&call, is_server) {
        (Some(_), _) => {
            "Fetch it, see what a call would run and with which rights, then call it inside the walls, without --explain."
        }
        (None, true) => {
            "Fetch it and look into it. `haft call --from FILE NAME` calls a tool of it inside the walls."
        }
        (None, false) => "Fetch it and look into it.",
    };
    let call = call.map_or_else(String::new, |call| {
        format!("\nhaft call --from {} --explain{call}", quoted(&file))
    });
    let mut ways = vec![Way {
        client: "Haft",
        says: says.to_owned(),
        texts: alone(format!("{own}\n{verify}haft inspect {}{call}", quoted(&file))),
    }];
    ways.extend(clients(package, plain));
    let check = describe.sha256.as_ref().map_or_else(String::new, |digest| {
        format!("\necho {} \\\n  | sha256sum --check", quoted(&format!("{digest}  {file}")))
    });
    ways.push(Way {
        client: "curl",
        says: "The package file, checked against the digest on this page.".to_owned(),
        texts: alone(format!("{get}{check}")),
    });
    ways
}

/// What the file is called; no program takes it for a flag.
fn file_name(id: &str, version: &str) -> String {
    let name = format!("{}-{}.mcpkg", name_for(id, "._-"), name_for(version, "._-+"));
    name.strip_prefix('-').map_or(name.clone(), |rest| format!("_{rest}"))
}

/// The first action, by its name where there are several, with an input to begin with; none where nothing can be
/// called: a server says only when it runs what it can do, chains are not called yet, and nothing runs what a hub has
/// taken in Python.
fn first_call(package: Option<&Package>) -> Option<String> {
    let is_called = |package: &&Package| package.chain.is_none() && !is_run_by_nothing(package);
    let package = package.filter(is_called)?;
    let action = package.actions.first()?;
    let name = is_word(&action.name).then(|| quoted(&action.name))?;
    Some(match sample::input(action) {
        Some(input) => format!(" \\\n  {name} {}", quoted(&input)),
        None if package.actions.len() > 1 => format!(" {name}"),
        None => String::new(),
    })
}

/// Whether people see what they paste, and a program takes it for no flag.
fn is_word(text: &str) -> bool {
    !text.starts_with('-') && !text.contains(['\n', '\t']) && !text.chars().any(inert::is_hidden)
}

/// What an MCP server is started or reached by.
enum Server {
    Url(String),
    /// A program, the variables it is given, and what is to be done before.
    Command(Vec<String>, Vec<(String, String)>, String),
}

/// The clients that start or reach MCP servers themselves, and where that is written for each.
const CLIENTS: [(&str, &str); 4] = [
    ("Claude Code", "In a terminal."),
    ("Codex", "In ~/.codex/config.toml."),
    ("Cursor", "In ~/.cursor/mcp.json."),
    ("VS Code", "In .vscode/mcp.json."),
];

/// How each client starts or reaches an MCP server, by each of its implementations.
fn clients(package: Option<&Package>, id: &str) -> Vec<Way> {
    let Some(package) = package else { return Vec::new() };
    let found = package.implementations.iter().map(|one| server(package, &one.entry));
    let (servers, unfit): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    let servers: Vec<Server> = servers.into_iter().flatten().collect();
    let why = unfit.into_iter().find_map(Result::err);
    if servers.is_empty() {
        let why = why.unwrap_or(NO_SERVER);
        let way = |(client, _): (&'static str, &str)| Way {
            client,
            says: why.replace("{client}", client),
            texts: Vec::new(),
        };
        return CLIENTS.map(way).to_vec();
    }
    let name = name_for(id, "_-");
    let asked = package.inputs.iter().filter(|input| is_asked(input)).take(MOST_ASKED);
    let asked: Vec<_> = asked.map(|input| inert::short(&input.name, 60)).collect();
    let texts: Vec<[String; 4]> = servers.iter().map(|server| server.texts(&name)).collect();
    let ways = CLIENTS.into_iter().enumerate().map(|(at, (client, place))| {
        let mut says = place.to_owned();
        if servers.len() > 1 {
            says.push_str(&format!(" Take one of {}.", servers.len()));
        }
        if why.is_some() {
            says.push_str(&format!(" Not all its ways to run are for {client}."));
        }
        if !asked.is_empty() {
            says.push_str(&format!(" It asks for what you fill in: {}.", asked.join(", ")));
        }
        let texts = servers
            .iter()
            .zip(&texts)
            .map(|(server, texts)| Text { says: server.says(), text: texts[at].clone() });
        Way { client, says, texts: texts.collect() }
    });
    ways.collect()
}

impl Server {
    fn says(&self) -> String {
        match self {
            Server::Url(_) => String::new(),
            Server::Command(_, _, before) => {
                let first =
                    if before.is_empty() { String::new() } else { format!(" First: {before}") };
                format!("Started like this it runs as you, without Haft's walls.{first}")
            }
        }
    }

    /// What is typed or written, client by client.
    fn texts(&self, name: &str) -> [String; 4] {
        match self {
            Server::Url(url) => for_address(name, url),
            Server::Command(argv, env, _) => for_command(name, argv, env),
        }
    }
}

const NO_SERVER: &str = "It is no MCP server, so {client} cannot start it. \
                         Haft is for it: see above.";

/// What a client starts or reaches, or why it cannot.
fn server(package: &Package, entry: &Entry) -> Result<Server, &'static str> {
    const UNSEEN: &str = "What it is started by cannot be shown as a command for {client}.";
    match entry {
        Entry::McpHttp { url } => {
            let reached = link::outside(url).filter(|url| !url.starts_with("mailto:"));
            reached.map(|url| Server::Url(filled(url, &package.inputs))).ok_or(UNSEEN)
        }
        Entry::McpStdio { argv, env, .. } => {
            let before = prepare(package).ok_or(
                "Its files must be fetched first, so {client} cannot start it by name. \
                 Haft is for it: see above.",
            )?;
            let argv: Vec<_> = argv.iter().map(|part| filled(part, &package.inputs)).collect();
            let env = given(env, &package.inputs);
            let is_seen =
                |part: &String| !part.contains(['\n', '\t']) && !part.chars().any(inert::is_hidden);
            let is_fit = !argv.is_empty() && argv.iter().chain([&before]).all(is_seen);
            if is_fit && env.iter().all(|(name, value)| is_seen(name) && is_seen(value)) {
                Ok(Server::Command(argv, env, before))
            } else {
                Err(UNSEEN)
            }
        }
        _ => Err(NO_SERVER),
    }
}

/// How many values are named that somebody has to fill in.
const MOST_ASKED: usize = 12;

/// Whether somebody has to give a value, because the package has none.
fn is_asked(input: &Input) -> bool {
    input.required && input.default.is_none()
}

/// A text with what stands in braces, where the package says what it is unless somebody says otherwise.
fn filled(text: &str, inputs: &[Input]) -> String {
    let known = inputs.iter().filter(|input| !input.secret);
    known.fold(text.to_owned(), |text, input| match &input.default {
        Some(default) => text.replace(&format!("{{{}}}", input.name), default),
        None => text,
    })
}

/// The variables of a program, and those that somebody has to fill in, by their names in brackets.
fn given(env: &[(String, String)], inputs: &[Input]) -> Vec<(String, String)> {
    let mut given: Vec<_> =
        env.iter().map(|(name, value)| (name.clone(), filled(value, inputs))).collect();
    let is_variable = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    for input in inputs.iter().filter(|input| is_asked(input) && is_variable(&input.name)) {
        if given.iter().all(|(name, _)| *name != input.name) {
            given.push((input.name.clone(), format!("<{}>", input.name)));
        }
    }
    given
}

/// What is typed or written for a server on the network, client by client.
fn for_address(name: &str, url: &str) -> [String; 4] {
    [
        format!("claude mcp add --transport http {} {}", quoted(name), quoted(url)),
        format!("[mcp_servers.{name}]\nurl = {}", Value::from(url)),
        written(&json!({"mcpServers": { name: {"url": url} }})),
        written(&json!({"servers": { name: {"type": "http", "url": url} }})),
    ]
}

/// What is typed or written for a server that is a program.
fn for_command(name: &str, argv: &[String], env: &[(String, String)]) -> [String; 4] {
    let command: Vec<String> = argv.iter().map(|part| quoted(part)).collect();
    let given = env.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
    let given: String = given.map(|pair| format!(" --env {pair}")).collect();
    let mut one = json!({"command": argv[0], "args": argv[1..]});
    // A text in JSON is one in TOML too.
    let mut codex =
        format!("[mcp_servers.{name}]\ncommand = {}\nargs = {}", one["command"], one["args"]);
    if !env.is_empty() {
        let text = |text: &str| Value::from(text);
        let pairs = env.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
        codex.push_str(&format!("\nenv = {{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
        let variables = env.iter().map(|(name, value)| (name.clone(), text(value)));
        one["env"] = Value::Object(variables.collect());
    }
    let mut typed = one.clone();
    typed["type"] = "stdio".into();
    [
        format!("claude mcp add {}{given} -- {}", quoted(name), command.join(" ")),
        codex,
        written(&json!({"mcpServers": { name: one }})),
        written(&json!({"servers": { name: typed }})),
    ]
}

fn written(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// What is to be done before a server can be started by its name; none when that is not enough.
fn prepare(package: &Package) -> Option<String> {
    // What a server.json is started by fetches the package itself.
    if package.dialect == Dialect::ServerJson {
        return Some(String::new());
    }
    match &package.acquire {
        Acquire::Nothing | Acquire::Preinstalled { .. } => Some(String::new()),
        Acquire::Npm { package, version_spec } => {
            let version = version_spec.as_ref().map_or_else(String::new, |spec| format!("@{spec}"));
            Some(format!("npm install --global {}", quoted(&format!("{package}{version}"))))
        }
        Acquire::Pip { package, version_spec } => {
            let version = version_spec.as_deref().unwrap_or_default();
            Some(format!("pipx install {}", quoted(&format!("{package}{version}"))))
        }
        Acquire::Bundle
        | Acquire::Git { .. }
        | Acquire::Container { .. }
        | Acquire::Url { .. }
        | Acquire::LocalPath { .. } => None,
    }
}

/// A text for a shell: as it is where that is plain, else in quotes.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn name_for(text: &str, also: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() || also.contains(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_pasted_into_a_shell_stays_one_word() {
        for (text, shown) in [
            ("plain-1.0_a/b", "plain-1.0_a/b"),
            ("--flag=x", "--flag=x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm -rf ~)", "'$(rm -rf ~)'"),
            ("a'; rm -rf ~; '", r"'a'\''; rm -rf ~; '\'''"),
            ("`x`", "'`x`'"),
            ("a&b", "'a&b'"),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }

    #[test]
    fn what_somebody_has_to_fill_in_is_seen() {
        let place = Input {
            required: true,
            default: Some("Bern".into()),
            secret: false,
            ..Input::secret("place")
        };
        let key = Input { required: true, ..Input::secret("KEY") };
        let token = Input { required: true, ..Input::secret("token") };
        let inputs = [place, key, token];
        assert_eq!(filled("--at={place} {token}", &inputs), "--at=Bern {token}");
        let set = [("AT".to_owned(), "{place}".to_owned())];
        let pairs = [("AT", "Bern"), ("KEY", "<KEY>")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(given(&set, &inputs), pairs);
    }

    #[test]
    fn no_file_is_taken_for_a_flag() {
        assert_eq!(file_name("acme.pdf", "1.0.0+x"), "acme.pdf-1.0.0+x.mcpkg");
        assert_eq!(file_name("a/b c", "1.0.0"), "a_b_c-1.0.0.mcpkg");
        assert_eq!(file_name("--home", "1.0.0"), "_-home-1.0.0.mcpkg");
    }

    #[test]
    fn every_client_is_told_in_its_own_words() {
        let argv = ["npx".to_owned(), "a b".to_owned(), "\"q\"".to_owned()];
        let env = [("KEY".to_owned(), "it's".to_owned())];
        let [claude, codex, cursor, code] = for_command("a_b", &argv, &env);
        assert_eq!(claude, r#"claude mcp add a_b --env 'KEY=it'\''s' -- npx 'a b' '"q"'"#);
        let expected = r#"[mcp_servers.a_b]
command = "npx"
args = ["a b","\"q\""]
env = { "KEY" = "it's" }"#;
        assert_eq!(codex, expected);
        let cursor: Value = serde_json::from_str(&cursor).unwrap();
        assert_eq!(cursor["mcpServers"]["a_b"]["args"], json!(["a b", "\"q\""]));
        let code: Value = serde_json::from_str(&code).unwrap();
        assert_eq!(code["servers"]["a_b"]["type"], "stdio");
        assert_eq!(code["servers"]["a_b"]["env"]["KEY"], "it's");
    }
}
