//! A store with many made-up tools, written the way a backup is restored: manifests are read as they would be when they
//! are published, only the package files are not there.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::document::{Options, read};
use manifest::look::look;
use package::digest::Digest;
use registry::{Describe, Found};
use serde_json::{Map, Value, json};
use server::doors::Doors;
use server::{Blobs, Registry, Settings, Store};

use crate::data::{self, Tool};

/// How many namespaces the tools are spread over.
const NAMESPACES: usize = 500;

/// The database in a home, where `haft registry serve` has it.
pub(crate) fn database(home: &Path) -> PathBuf {
    home.join("registry/registry.db")
}

/// Waits until a registry that is served from a home has saved its index.
pub(crate) fn wait_for_index(home: &Path) {
    let file = home.join("registry/index");
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A registry on what is in a home.
pub(crate) async fn open(home: &Path) -> Registry {
    let store = Store::file(&database(home)).await.unwrap();
    let blobs = Blobs::folder(&home.join("registry/blobs")).unwrap();
    Registry::open(store, blobs, Settings::default()).await.unwrap()
}

/// Makes a home with a registry of so many tools.
pub(crate) fn fill(home: &Path, tools: usize) {
    std::fs::create_dir_all(home.join("registry")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::file(&database(home)).await.unwrap();
        let feed = json!({"table": "feed", "row": {"number": tools}}).to_string();
        let made = data::made_up(tools, 1);
        let rows = made.iter().enumerate().flat_map(|(at, tool)| rows(at, tool));
        store.load(std::iter::once(feed).chain(rows).map(Ok)).await.unwrap();
        store.close().await;
    });
}

/// The rows of a tool and its one version.
fn rows(at: usize, tool: &Tool) -> [String; 2] {
    let manifest = manifest(at, tool);
    let (_, mut packages) = read(&manifest, &Options::default()).unwrap();
    let package = packages.remove(0);
    let digest = Digest::of(&manifest).to_string();
    let mut describe = Describe::of_package(&package);
    describe.sha256 = Some(digest.clone());
    describe.size = Some(10_000);
    let entry = search::Entry::of_package(&describe.id, &package).unwrap();
    let doors = Doors::of(&package, &manifest, None);
    let now = 1_790_000_000_000_u64 + at as u64;
    let packages = json!({"table": "packages", "row": {
        "id": describe.id, "name": describe.name, "look": look(&describe.id),
        "look_of_name": look(&describe.name),
        "namespace": registry::identity::namespace(&package), "dialect": package.dialect.name(),
        "server_name": doors.server_name, "latest": describe.version,
        "latest_beta": describe.version, "changed": at + 1
    }});
    let versions = json!({"table": "versions", "row": {
        "package": describe.id, "version": describe.version, "digest": digest, "size": 10_000,
        "manifest_path": "manifest.json", "manifest": STANDARD.encode(&manifest),
        "describe": serde_json::to_string(&describe).unwrap(),
        "found": serde_json::to_string(&Found::from(&describe)).unwrap(),
        "entry": STANDARD.encode(postcard::to_stdvec(&entry).unwrap()),
        "runtime": describe.entry.runtime, "signature": "none", "signers": "", "publisher": "bench",
        "published_at": now, "updated_at": now, "channel": "stable", "server": doors.server,
        "listed": doors.listed, "capability": doors.capability
    }});
    [packages.to_string(), versions.to_string()]
}

/// The manifest of a made-up tool, in the dialect mcpkg.
fn manifest(at: usize, tool: &Tool) -> Vec<u8> {
    let mut texts = tool.parameter_texts.split(' ');
    let mut properties = Map::new();
    for name in tool.parameters.split('\n').filter(|name| !name.is_empty()) {
        let description = texts.by_ref().take(6).collect::<Vec<_>>().join(" ");
        properties.insert(name.into(), json!({"type": "string", "description": description}));
    }
    let tags: Vec<Value> =
        tool.tags.split('\n').filter(|tag| !tag.is_empty()).map(Value::from).collect();
    json!({
        "toolId": format!("made{}.{}-{at}", at % NAMESPACES, tool.name.replace('_', "-")),
        "name": tool.name, "version": "1.0.0", "description": tool.description,
        "capabilities": tags, "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {"type": "object", "properties": properties},
        "output_schema": {"type": "object"}
    })
    .to_string()
    .into_bytes()
}
