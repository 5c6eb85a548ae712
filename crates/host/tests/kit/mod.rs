//! Tools in folders of their own, and a host that calls them.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use std::sync::Arc;

use host::{Blocked, Call, CallError, Host, Output, Records, Settings, Tool, Warmth};
use manifest::document::{Options, read};
use manifest::model::Trust;
use policy::{Consent, Policy, Surface};
use serde_json::Value;

/// A folder with the files of one package.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with these files; those in `tools/bin` can be executed.
    pub fn with(files: &[(&str, &str)]) -> Self {
        // No folder that a room has of its own, as `/tmp` is.
        let folder = tempfile::Builder::new().prefix("haft-call-").tempdir_in("/var/tmp").unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let mode = if name.starts_with("tools/bin/") { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The tool that a manifest in it describes.
    pub fn tool(&self, manifest: &str) -> Tool {
        let bytes = std::fs::read(self.path().join(manifest)).unwrap();
        let options = Options { fallback_id: Some("demo"), ..Options::default() };
        let (_, mut packages) = read(&bytes, &options).unwrap_or_else(|report| {
            panic!("{:?}", report.findings);
        });
        Tool {
            package: packages.remove(0),
            root: self.path().canonicalize().unwrap(),
            place: self.path().canonicalize().unwrap(),
            consent: Consent::ByPath,
            source_trust: Trust::Local,
            given: host::Given::default(),
            surface: None,
            brought: host::Brought::default(),
            links: None,
            digest: None,
        }
    }
}

/// A Node tool whose object is this text.
pub fn node_tool(object: &str) -> Folder {
    node_module("dist/index.mjs", &format!("export const tool = {object};\n"))
}

/// A Node tool in a file with this text.
pub fn node_module(main: &str, text: &str) -> Folder {
    let manifest = serde_json::json!({
        "id": "tool:demo.node", "name": "demo.node", "version": "1.0.0", "summary": "A test",
        "description": "A test", "tags": [], "provider": "tests",
        "entry": { "runtime": "node", "main": main }
    });
    Folder::with(&[("tool.json", &manifest.to_string()), (main, text)])
}

/// A Python function `run` in a module with this text.
pub fn python_tool(text: &str) -> Folder {
    let manifest = serde_json::json!({
        "id": "demo.python", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"},
            "timeout_seconds": 5},
        "trust_level": "local",
        "implementation": {"kind": "python", "python": {"callable": "demo:run"}}
    });
    Folder::with(&[("manifest.json", &manifest.to_string()), ("demo.py", text)])
}

/// A home of its own; gone with it.
pub fn home() -> tempfile::TempDir {
    let folder = env!("CARGO_TARGET_TMPDIR");
    tempfile::Builder::new().prefix("haft-home-").tempdir_in(folder).unwrap()
}

/// A host with a policy, and a home that is left to the test's end.
pub async fn host_with(policy: &str) -> Host {
    let home = home().keep();
    host_in(&home, policy).await
}

/// Waits for something, also where a runtime is waiting already.
pub fn wait_for<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(wait).join().unwrap())
}

/// The vault and the ledger of a new home, which is left to the test's end.
pub fn stores() -> (std::path::PathBuf, Arc<vault::FileVault>, Arc<Records>) {
    let home = home().keep();
    let vault = vault::FileVault::open(home.join("vault"), || None).unwrap();
    let records = wait_for(Records::open(&home)).unwrap();
    (home, Arc::new(vault), Arc::new(records))
}

/// Grants exactly this to a package.
pub async fn set_grants(records: &Records, package: &str, grants: &policy::Grants) {
    use ledger::state::grants::{Grant, GrantKind};
    for one in records.state.grants(Some(package)).await.unwrap() {
        records.state.revoke(package, one.kind, &one.value).await.unwrap();
    }
    for one in grants.iter() {
        let kind = GrantKind::ALL.into_iter().find(|kind| kind.name() == one.kind.name()).unwrap();
        let grant = Grant {
            package: package.to_owned(),
            kind,
            value: one.value.clone(),
            by: "test".to_owned(),
            created: host::records::now(),
        };
        records.state.grant(&grant).await.unwrap();
    }
}

/// A host with a home and a policy.
pub async fn host_in(home: &Path, policy: &str) -> Host {
    let vault = vault::FileVault::open(home.join("vault"), || None).unwrap();
    let records = Records::open(home).await.unwrap();
    host_of(home, policy, vault, Arc::new(records))
}

/// A host with a home, a policy, and what is kept.
pub fn host_of(home: &Path, policy: &str, vault: vault::FileVault, records: Arc<Records>) -> Host {
    Host::new(settings_of(home, policy), launcher(), Arc::new(vault), records)
}

fn settings_of(home: &Path, policy: &str) -> Settings {
    Settings {
        policy: Policy::parse(policy).unwrap(),
        home: home.to_owned(),
        user_home: None,
        search_path: "/usr/local/bin:/usr/bin:/bin".into(),
        environment: Vec::new(),
    }
}

fn launcher() -> sandbox::Launcher {
    host::judge::set_program(env!("CARGO_BIN_EXE_host-launcher").into());
    sandbox::Launcher::start(Path::new(env!("CARGO_BIN_EXE_host-launcher"))).unwrap()
}

/// A host that looks for programs in these folders.
pub async fn host_searching(folders: &[&Path]) -> Host {
    let home = home().keep();
    let records = Records::open(&home).await.unwrap();
    let vault = vault::FileVault::open(home.join("vault"), || None).unwrap();
    let settings =
        Settings { search_path: std::env::join_paths(folders).unwrap(), ..settings_of(&home, "") };
    Host::new(settings, launcher(), Arc::new(vault), Arc::new(records))
}

pub async fn host() -> Host {
    host_with("").await
}

/// A call from the owner's terminal.
pub fn call_of(tool: &Tool, input: &Value) -> Call {
    Call {
        action: tool.package.actions[0].name.clone(),
        input: input.to_string(),
        surface: Surface::Terminal,
        approver: None,
        ticket: None,
        within: None,
        folder: "/".into(),
        progress: None,
        implementation: None,
        peer: None,
        resumed: None,
        context: None,
        called_off: host::CancellationToken::new(),
    }
}

/// Makes a call.
pub async fn call(
    host: &Host,
    tool: &Tool,
    input: &Value,
    warmth: Warmth,
) -> (Result<Output, CallError>, Vec<Blocked>) {
    let made = host.call(tool, &call_of(tool, input), warmth).await;
    assert_eq!(made.unwritten, Vec::<String>::new());
    (made.reply, made.blocked)
}

/// The result of a warm call that must succeed.
pub async fn result(host: &Host, tool: &Tool, input: Value) -> Value {
    let (reply, _) = call(host, tool, &input, Warmth::Warm).await;
    reply.unwrap_or_else(|error| panic!("{error}: {}", error.details)).into_value()
}

/// The error of a warm call that must fail.
pub async fn error(host: &Host, tool: &Tool, input: Value) -> CallError {
    let (reply, _) = call(host, tool, &input, Warmth::Warm).await;
    reply.expect_err("the call must fail")
}
