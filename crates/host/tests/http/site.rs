//! A server, and a host that may reach it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use host::{Blocked, CallError, Host, Made, Output, Records, Settings, Tool, Warmth};
use manifest::document::{self, Options};
use manifest::model::Trust;
use policy::{Consent, Grant, GrantKind, Grants, Policy};
use sandbox::Launcher;
use serde_json::{Value, json};
use vault::FileVault;

use super::kit;
use super::kit::call_of;

pub(super) fn host_of(settings: &Settings, vault: &Arc<FileVault>, records: &Arc<Records>) -> Host {
    let launcher = Launcher::start(env!("CARGO_BIN_EXE_host-launcher").as_ref()).unwrap();
    Host::new(settings.clone(), launcher, Arc::clone(vault), Arc::clone(records))
}

/// A server, and a host that may reach it.
pub(super) struct Site {
    server: Child,
    pub(super) origin: String,
    pub(super) host: Host,
    pub(super) records: Arc<Records>,
    pub(super) settings: Settings,
    pub(super) vault: Arc<FileVault>,
    pub(super) grants: Grants,
    pub(super) runtime: tokio::runtime::Runtime,
}

const VARIABLES: [(&str, &str); 10] = [
    ("DEMO_KEY", "s3cret-key"),
    ("ME_CLIENT_ID", "me"),
    ("ME_CLIENT_SECRET", "p@ss:w rd"),
    ("ME_REFRESH_TOKEN", "r0"),
    ("POSTER_CLIENT_ID", "poster"),
    ("POSTER_CLIENT_SECRET", "posted"),
    ("BAD_CLIENT_ID", "me"),
    ("BAD_CLIENT_SECRET", "wrong"),
    ("PUBLIC_CLIENT_ID", "public"),
    ("SECRET_OF_THE_OWNER", "not for tools"),
];

impl Site {
    /// Our own API.
    pub(super) fn open() -> Self {
        Self::serving("server.py", None)
    }

    /// Servers we did not write, where they are installed.
    pub(super) fn peers() -> Option<Self> {
        let installed = std::env::var("HAFT_HTTP_PEERS").ok()?;
        Some(Self::serving("peers.py", Some(&installed)))
    }

    fn serving(script: &str, installed: Option<&str>) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(script);
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.envs(installed.map(|folder| ("PYTHONPATH", folder)));
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let port = port.trim();
        let origin = format!("http://127.0.0.1:{port}");
        let mut environment: Vec<(String, String)> =
            VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for prefix in ["ME", "POSTER", "BAD", "PUBLIC"] {
            environment.push((format!("{prefix}_TOKEN_URL"), format!("{origin}/token")));
        }
        environment
            .push(("FAR_TOKEN_URL".to_owned(), "https://auth.example.invalid/token".to_owned()));
        environment.extend([("basic", "b s3cret:&"), ("post", "p s3cret")].into_iter().flat_map(
            |(id, secret)| {
                let name = id.to_uppercase();
                [
                    (format!("{name}_TOKEN_URL"), format!("{origin}/oauth/token")),
                    (format!("{name}_CLIENT_ID"), id.to_owned()),
                    (format!("{name}_CLIENT_SECRET"), secret.to_owned()),
                    (format!("{name}_REFRESH_TOKEN"), "first".to_owned()),
                ]
            },
        ));
        let own = environment.iter().map(|(name, _)| name.clone());
        let granted = own.filter(|name| name != "SECRET_OF_THE_OWNER");
        let grants = granted
            .map(|value| Grant { kind: GrantKind::Environment, value })
            .chain([Grant { kind: GrantKind::Host, value: format!("127.0.0.1:{port}") }])
            .collect();
        let (home, vault, records) = kit::stores();
        let settings = Settings {
            policy: Policy::default(),
            home: home.clone(),
            user_home: None,
            search_path: "/usr/bin:/bin".into(),
            environment,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let host = host_of(&settings, &vault, &records);
        Self { server, origin, host, records, settings, vault, grants, runtime }
    }

    /// What another program with the same home would be.
    pub(super) fn another_host(&self) -> Host {
        host_of(&self.settings, &self.vault, &self.records)
    }

    /// An mcpkg tool of this site.
    pub(super) fn mcpkg(&self, method: &str, path: &str, more: Value) -> Tool {
        let mut manifest = json!({
            "toolId": "demo.web.tool",
            "name": "Demo",
            "version": "1.0.0",
            "description": "Asks a server.",
            "capabilities": ["demo"],
            "endpoint": { "type": "http", "method": method, "url": format!("{}{path}", self.origin), "timeoutMs": 20000 },
            "input_schema": { "type": "object" },
            "output_schema": {},
        });
        if let (Value::Object(members), Value::Object(more)) = (&mut manifest, more) {
            members.extend(more);
        }
        tool(&manifest)
    }

    /// An install-manifest of this site with one action.
    pub(super) fn manifest(&self, invocation: &Value, more: Value) -> Tool {
        let mut action = json!({
            "name": "ask",
            "summary": "Asks a server.",
            "invocation": invocation,
            "input": {
                "type": "object",
                "properties": { "id": { "type": ["string", "integer"] } },
                "additionalProperties": true,
            },
            "output": { "format": "json" },
            "side_effects": "read",
        });
        action["invocation"]["kind"] = "http".into();
        if let (Value::Object(members), Value::Object(more)) = (&mut action, more) {
            members.extend(more);
        }
        tool(&json!({
            "manifest_version": "0.2",
            "tool": {
                "id": "demo-tool",
                "version": "1.0.0",
                "name": "Demo Tool",
                "summary": "Asks a server.",
                "homepage": "https://example.com/demo-tool",
            },
            "runtime": {
                "kind": "mcp-http",
                "install": {
                    "method": "url",
                    "url": "https://example.com/demo-tool/demo",
                    "sha256": "5f".repeat(32),
                },
                "endpoint_url": self.origin,
            },
            "env": [{ "name": "DEMO_KEY", "required": false, "secret": true, "prompt": "The key." }],
            "actions": [action],
            "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
        }))
    }

    pub(super) fn call(
        &self,
        tool: &Tool,
        input: Value,
    ) -> (Result<Output, CallError>, Vec<Blocked>) {
        let made = self.make(tool, &input, &self.grants);
        (made.reply, made.blocked)
    }

    pub(super) fn make(&self, tool: &Tool, input: &Value, grants: &Grants) -> Made {
        let call = call_of(tool, input);
        self.runtime.block_on(async {
            kit::set_grants(&self.records, &tool.package.canonical_id(), grants).await;
            self.host.call(tool, &call, Warmth::Cold).await
        })
    }

    pub(super) fn ok(&self, tool: &Tool, input: Value) -> Output {
        let (reply, blocked) = self.call(tool, input);
        assert_eq!(blocked, []);
        reply.unwrap()
    }

    pub(super) fn json(&self, tool: &Tool, input: Value) -> Value {
        self.ok(tool, input).into_value()
    }

    pub(super) fn error(&self, tool: &Tool, input: Value) -> CallError {
        self.call(tool, input).0.unwrap_err()
    }

    /// How often something was counted by the server.
    pub(super) fn count(&self, key: &str) -> u64 {
        let counted = self.json(&self.mcpkg("GET", "/count", json!({})), json!({ "key": key }));
        counted["count"].as_u64().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

pub(super) fn tool(manifest: &Value) -> Tool {
    let text = manifest.to_string();
    let (_, mut packages) = document::read(text.as_bytes(), &Options::default())
        .unwrap_or_else(|report| panic!("{report:?}"));
    let package = packages.remove(0);
    Tool {
        package,
        root: "/usr/share".into(),
        place: "/usr/share".into(),
        consent: Consent::ByPath,
        source_trust: Trust::Local,
        given: host::Given::default(),
        surface: None,
        brought: host::Brought::default(),
        links: None,
        digest: None,
    }
}

pub(super) fn auth(kind: &str, names: &[&str]) -> Value {
    json!({ "auth": { "type": kind, "scopes": ["read", "write"], "configHints": { "env": names } } })
}
