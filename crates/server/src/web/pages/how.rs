//! How a tool is put to use, client by client.
//!
//! Commands are made for a shell and files for a client from what a stranger wrote, so every part is quoted; where a
//! part cannot be quoted so that people see what they paste, there is no command.

use manifest::dialect::Dialect;
use manifest::model::{Acquire, Entry, Input, Package};
use registry::{Describe, identity};
use serde_json::{Value, json};

use super::{inert, link, sample};
use crate::settings::Reading;
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

/// The ways to use a version, which is to be had at this origin by those who may read there.
pub(super) fn ways(
    package: Option<&Package>,
    describe: &Describe,
    origin: &str,
    reading: Reading,
) -> Vec<Way> {
    // The shell fills in the token, so that none is on the page.
    let (token, first) = match reading {
        Reading::Everybody => ("", String::new()),
        Reading::Tokens => (
            " \\\n  -H \"Authorization: Bearer $HAFT_TOKEN\"",
            format!(
                " This registry is read with a token: `haft registry login {}` first, or put it in HAFT_TOKEN.",
                quoted(origin)
            ),
        ),
    };
    let plain = describe.id.strip_prefix(identity::PREFIX).unwrap_or(&describe.id);
    let file = file_name(plain, &describe.version);
    let url = format!("{origin}{}/package", link::api(&describe.id, &describe.version));
    let get = format!("curl -fsSL -o {}{token} \\\n  {}", quoted(&file), quoted(&url));
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
        (None, true) if package.is_some_and(|package| package.acquire != Acquire::Bundle) => {
            "Fetch it and look into it. What it runs comes from elsewhere, so nothing of it is called before it is installed."
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
        says: format!("{says}{first}"),
        texts: alone(format!("{own}\n{verify}haft inspect {}{call}", quoted(&file))),
    }];
    ways.extend(clients(package, plain));
    let says = match reading {
        Reading::Everybody => "The package file, checked against the digest on this page.",
        Reading::Tokens => {
            "The package file, with a token in HAFT_TOKEN, checked against the digest on this page."
        }
    };
    let check = describe.sha256.as_ref().map_or_else(String::new, |digest| {
        format!("\necho {} \\\n  | sha256sum --check", quoted(&format!("{digest}  {file}")))
    });
    ways.push(Way { client: "curl", says: says.to_owned(), texts: alone(format!("{get}{check}")) });
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
    /// An address, and the headers of every request.
    Url(String, Vec<(String, String)>),
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
            Server::Url(..) => String::new(),
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
            Server::Url(url, headers) => for_address(name, url, headers),
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
        Entry::McpHttp { url, headers } => {
            let reached = link::outside(url).filter(|url| !url.starts_with("mailto:"));
            let url = filled(reached.ok_or(UNSEEN)?, &package.inputs);
            let headers = sent(headers, &package.inputs);
            let is_fit = headers.iter().all(|(name, value)| is_seen(name) && is_seen(value));
            if is_fit { Ok(Server::Url(url, headers)) } else { Err(UNSEEN) }
        }
        Entry::McpStdio { argv, env, .. } => {
            let before = prepare(package).ok_or(
                "Its files must be fetched first, so {client} cannot start it by name. \
                 Haft is for it: see above.",
            )?;
            let argv: Vec<_> = argv.iter().map(|part| filled(part, &package.inputs)).collect();
            let env = given(env, &package.inputs);
            let is_fit = !argv.is_empty() && argv.iter().chain([&before]).all(|part| is_seen(part));
            if is_fit && env.iter().all(|(name, value)| is_seen(name) && is_seen(value)) {
                Ok(Server::Command(argv, env, before))
            } else {
                Err(UNSEEN)
            }
        }
        _ => Err(NO_SERVER),
    }
}

/// Whether people see what they paste.
fn is_seen(part: &str) -> bool {
    !part.contains(['\n', '\t']) && !part.chars().any(inert::is_hidden)
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

/// The headers of a server, with what somebody has to fill in by its name in brackets. One that may be left out is.
fn sent(headers: &[(String, String)], inputs: &[Input]) -> Vec<(String, String)> {
    let known = inputs.iter().filter(|input| is_asked(input));
    let known: Vec<_> = known.map(|input| format!("{{{}}}", input.name)).collect();
    let open = |value: String| {
        let asked = |text: String, one: &String| {
            text.replace(one.as_str(), &format!("<{}>", &one[1..one.len() - 1]))
        };
        known.iter().fold(value, asked)
    };
    let sent = headers.iter().map(|(name, value)| (name.clone(), open(filled(value, inputs))));
    sent.filter(|(_, value)| !value.contains('{')).collect()
}

/// What is typed or written for a server on the network, client by client.
fn for_address(name: &str, url: &str, headers: &[(String, String)]) -> [String; 4] {
    let given = headers.iter().map(|(name, value)| quoted(&format!("{name}: {value}")));
    let given: String = given.map(|header| format!(" \\\n  --header {header}")).collect();
    let mut one = json!({"url": url});
    let mut codex = format!("[mcp_servers.{name}]\nurl = {}", one["url"]);
    if !headers.is_empty() {
        codex.push_str(&format!("\nhttp_headers = {{ {} }}", pairs(headers)));
        one["headers"] = members(headers);
    }
    let mut typed = one.clone();
    typed["type"] = "http".into();
    [
        format!("claude mcp add --transport http {} {}{given}", quoted(name), quoted(url)),
        codex,
        written(&json!({"mcpServers": { name: one }})),
        written(&json!({"servers": { name: typed }})),
    ]
}

/// Names and values for TOML: a text in JSON is one there too.
fn pairs(pairs: &[(String, String)]) -> String {
    let text = |text: &String| Value::from(text.as_str());
    let pairs = pairs.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// Names and values for JSON.
fn members(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

/// What is typed or written for a server that is a program.
fn for_command(name: &str, argv: &[String], env: &[(String, String)]) -> [String; 4] {
    let command: Vec<String> = argv.iter().map(|part| quoted(part)).collect();
    let given = env.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
    let given: String = given.map(|pair| format!(" --env {pair}")).collect();
    let mut one = json!({"command": argv[0], "args": argv[1..]});
    let mut codex =
        format!("[mcp_servers.{name}]\ncommand = {}\nargs = {}", one["command"], one["args"]);
    if !env.is_empty() {
        codex.push_str(&format!("\nenv = {{ {} }}", pairs(env)));
        one["env"] = members(env);
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
    fn headers_that_a_server_wants_are_for_every_client() {
        let inputs = [
            Input { required: true, ..Input::secret("token") },
            Input { required: false, ..Input::secret("X-Trace") },
        ];
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [
            text("Authorization", "Bearer {token}"),
            text("X-Trace", "{X-Trace}"),
            text("X-Kind", "a"),
        ];
        let headers = sent(&headers, &inputs);
        assert_eq!(headers, [text("Authorization", "Bearer <token>"), text("X-Kind", "a")]);
        let [claude, codex, cursor, code] = for_address("a", "https://a.test/", &headers[..1]);
        let expected = "claude mcp add --transport http a https://a.test/ \\\n  --header 'Authorization: Bearer <token>'";
        assert_eq!(claude, expected);
        assert!(codex.ends_with("\nhttp_headers = { \"Authorization\" = \"Bearer <token>\" }"));
        let cursor: Value = serde_json::from_str(&cursor).unwrap();
        assert_eq!(cursor["mcpServers"]["a"]["headers"]["Authorization"], "Bearer <token>");
        let code: Value = serde_json::from_str(&code).unwrap();
        assert_eq!(code["servers"]["a"]["headers"]["Authorization"], "Bearer <token>");
        assert_eq!(code["servers"]["a"]["type"], "http");
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
