//! Servers for tests, and calls of their tools.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use host::{
    Blocked, Call, CallError, Era, Eras, Host, Output, Progress, Records, Settings, Tool, Warmth,
};
use manifest::document::{Options, read};
use manifest::model::{Invocation, Json, OutputFormat, Trust};
use policy::{Consent, Grants, Policy, Surface};
use sandbox::Launcher;
use serde_json::{Value, json};

use crate::kit;

/// A server, and the host that calls its tools.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) tool: Tool,
    pub(crate) records: Arc<Records>,
    pub(crate) grants: Grants,
    pub(crate) eras: Arc<Found>,
    pub(crate) vault: Arc<vault::FileVault>,
    pub(crate) home: PathBuf,
}

/// What eras were found, in that order.
#[derive(Debug, Default)]
pub(crate) struct Found(Mutex<Vec<(String, Era)>>);

impl Found {
    /// The era that was found last.
    pub(crate) fn last(&self) -> Option<Era> {
        self.0.lock().unwrap().last().map(|(_, era)| *era)
    }
}

impl Eras for Found {
    fn known<'e>(&'e self, server: &'e str) -> BoxFuture<'e, Option<Era>> {
        let found = self.0.lock().unwrap();
        let known = found.iter().rev().find(|(known, _)| known == server).map(|(_, era)| *era);
        std::future::ready(known).boxed()
    }

    fn remember<'e>(&'e self, server: &'e str, era: Option<Era>) -> BoxFuture<'e, ()> {
        let mut found = self.0.lock().unwrap();
        match era {
            Some(era) => found.push((server.to_owned(), era)),
            None => found.retain(|(known, _)| known != server),
        }
        std::future::ready(()).boxed()
    }
}

/// A host that knows nothing of this machine but where programs are, and finds eras as its home remembers
/// them.
pub(crate) fn host_of(home: &Path, vault: &Arc<vault::FileVault>, records: &Arc<Records>) -> Host {
    let launcher = Launcher::start(Path::new(env!("CARGO_BIN_EXE_host-launcher"))).unwrap();
    let settings = Settings {
        policy: Policy::default(),
        home: home.to_owned(),
        user_home: None,
        search_path: std::env::var_os("PATH").unwrap(),
        environment: Vec::new(),
    };
    Host::new(settings, launcher, Arc::clone(vault), Arc::clone(records))
}

/// A manifest that says how a server is run and no more, in the folder with its files.
pub(crate) fn tool(root: &Path, runtime: &Value) -> Tool {
    let manifest = json!({
        "manifest_version": "0.1",
        "tool": {
            "id": "trial",
            "version": "1.0.0",
            "name": "Trial",
            "summary": "Tries a server.",
            "homepage": "https://example.com/trial",
            "author": { "name": "Nobody" },
            "license": "MIT",
            "tags": ["trial"],
        },
        "runtime": runtime,
        "env": [{
            "name": "TRIAL_SPACE", "prompt": "Which space?", "secret": false, "required": false,
            "default": "main",
        }],
        "smoke": {
            "kind": "mcp-tool-call",
            "tool_name": "none",
            "arguments": {},
            "timeout_seconds": 10,
            "success": { "no_error_field": true },
        },
        "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/trial" },
        "cost": { "install_fee_cents": 0, "monthly_fee_cents": 0, "usage_model": "none" },
    });
    let options = Options::default();
    let text = manifest.to_string();
    let (checked, mut packages) = read(text.as_bytes(), &options).unwrap();
    assert!(!packages.is_empty(), "{checked:?}");
    Tool {
        package: packages.remove(0),
        root: root.canonicalize().unwrap(),
        place: root.canonicalize().unwrap(),
        consent: Consent::ByPath,
        source_trust: Trust::Local,
        given: host::Given::default(),
        surface: None,
        brought: host::Brought::default(),
        links: None,
        digest: None,
    }
}

impl Bench {
    /// A package, and a host that knows nothing yet.
    pub(crate) fn of(tool: Tool) -> Self {
        let eras = Arc::<Found>::default();
        let (home, vault, records) = kit::stores();
        let host = host_of(&home, &vault, &records).remembering(Arc::<Found>::clone(&eras));
        Self { host, tool, records, grants: Grants::default(), eras, vault, home }
    }

    /// A server that is a command, with its files in a folder.
    pub(crate) fn command(root: &Path, command: &[&str]) -> Self {
        let runtime = json!({
            "kind": "mcp-stdio",
            "install": { "method": "npm", "package": "trial", "version_spec": "1.0.0" },
            "entrypoint": { "command": command },
        });
        Self::of(tool(root, &runtime))
    }

    /// A server in Python, by its text.
    pub(crate) fn script(text: &str) -> Self {
        let folder = env!("CARGO_TARGET_TMPDIR");
        let empty = tempfile::tempdir_in(folder).unwrap().keep();
        Self::command(&empty, &["python3", "-c", text])
    }

    /// How long a call may take.
    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.tool.package.timeout_ms = Some(time.as_millis().try_into().unwrap());
        self
    }

    /// What the owner granted.
    pub(crate) fn granting(mut self, grants: Grants) -> Self {
        self.grants = grants;
        self
    }

    /// Asks the server for its tools, which can then be called.
    pub(crate) async fn discover(&mut self) -> Vec<String> {
        kit::set_grants(&self.records, &self.tool.package.canonical_id(), &self.grants).await;
        let off = host::CancellationToken::new();
        let found = self.host.discover(&self.tool, &Surface::Terminal, None, &off).await;
        let found = found.unwrap_or_else(|error| panic!("{}", error.to_value()));
        self.tool.package.actions = found.actions;
        self.tool.package.actions.iter().map(|one| one.name.clone()).collect()
    }

    /// Declares a tool without asking the server.
    pub(crate) fn declaring(mut self, name: &str) -> Self {
        let schema = json!({ "type": "object" });
        let tool = json!({ "name": name, "command": ["./tools/bin/x"], "schema": schema });
        let text = json!({ "tools": [tool] }).to_string();
        let options = Options { fallback_id: Some("demo"), ..Options::default() };
        let (_, mut packages) = read(text.as_bytes(), &options).unwrap();
        let mut action = packages.remove(0).actions.remove(0);
        action.invocation = Invocation::McpTool { tool_name: name.to_owned() };
        action.output_format = None;
        action.timeout_ms = None;
        self.tool.package.actions.push(action);
        self
    }

    /// What the first of its tools is said to answer with.
    pub(crate) fn promising(
        mut self,
        format: Option<OutputFormat>,
        schema: Option<&Value>,
    ) -> Self {
        let action = &mut self.tool.package.actions[0];
        action.output_format = format;
        action.output = schema.map(|schema| {
            let text = schema.to_string();
            Json::of(&manifest::json::parse(&text).root.unwrap(), &text)
        });
        self
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, name: &str, input: Value) -> Result<Output, CallError> {
        self.ask(name, input, Warmth::Warm, None).await.0
    }

    /// Calls a tool, and says all that came back.
    pub(crate) async fn ask(
        &self,
        name: &str,
        input: Value,
        warmth: Warmth,
        progress: Option<Arc<dyn Progress>>,
    ) -> (Result<Output, CallError>, Vec<Blocked>) {
        let call = Call {
            action: name.to_owned(),
            input: input.to_string(),
            surface: Surface::Terminal,
            approver: None,
            ticket: None,
            within: None,
            folder: PathBuf::from("/"),
            progress,
            implementation: None,
            peer: None,
            resumed: None,
            context: None,
            called_off: host::CancellationToken::new(),
        };
        kit::set_grants(&self.records, &self.tool.package.canonical_id(), &self.grants).await;
        let made = self.host.call(&self.tool, &call, warmth).await;
        (made.reply, made.blocked)
    }
}

/// A folder that `./test` installs, or one that a variable names.
pub(crate) fn installed(variable: &str, below: &str, how: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here = repository.join("target/tools").join(below);
    let path = std::env::var_os(variable).map_or(here, PathBuf::from);
    assert!(
        path.is_dir(),
        "nothing is at `{}`: run `./test`, or `{how}`, or name it in {variable}",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// The servers of the protocol's own authors, in Node.
pub(crate) fn node_servers() -> PathBuf {
    let how = "npm install --prefix target/tools/mcp @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem";
    installed("HAFT_MCP_NODE", "mcp", how)
}

/// The protocol's own library for Python, in one of its two releases.
pub(crate) fn python_library(release: &str) -> PathBuf {
    let how = "pip install --target target/tools/mcp-python/1 'mcp<2', and .../2 'mcp>=2'";
    installed("HAFT_MCP_PYTHON", "mcp-python", how).join(release)
}
