//! The catalogs of a home: a base that is never written, and a local one above it.
//!
//! The local catalog is a capability catalog that others can read too: it has an entry for every installed package,
//! and what somebody wrote into it by hand stays there.

use manifest::dialect::Dialect;
use manifest::model::{
    Action, Channel, Entry, Input, InputSource, Json, Kind, Package, Sandbox, Trust,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::pinned::{Pinned, Source};

/// The baseline.
pub const BASE: &str = manifest::folder::LAYERS.0;
/// The one that is changed.
pub const LOCAL: &str = manifest::folder::LAYERS.1;
/// The longest that is read.
pub const MOST: u64 = 16 << 20;

const ENTRIES: &str = "capabilities";

/// An entry, as far as a list of many needs it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Brief {
    /// Its id in the catalog.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What kind of capability it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// How far it is trusted.
    pub trust_level: String,
    /// Whether it may be called.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

impl Brief {
    /// How far it is trusted.
    pub fn trust(&self) -> Trust {
        Trust::named(&self.trust_level).unwrap_or(Trust::Untrusted)
    }
}

/// The entries of a catalog; why it is none, otherwise.
pub fn briefs(bytes: &[u8]) -> Result<Vec<Brief>, String> {
    #[derive(Deserialize)]
    struct Catalog {
        capabilities: Vec<Brief>,
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(format!("a catalog is an object with a list `{ENTRIES}`"));
    }
    let catalog: Catalog = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(catalog.capabilities)
}

/// The local catalog, to be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Local(Map<String, Value>);

impl Default for Local {
    fn default() -> Self {
        Self(Map::from_iter([(ENTRIES.to_owned(), Value::Array(Vec::new()))]))
    }
}

impl Local {
    /// Reads one; why it is none, otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match document {
            Value::Object(fields) if fields.get(ENTRIES).is_some_and(Value::is_array) => {
                Ok(Self(fields))
            }
            _ => Err(format!("a catalog is an object with a list `{ENTRIES}`")),
        }
    }

    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.0).expect("a catalog is plain data");
        bytes.push(b'\n');
        bytes
    }

    fn entries(&mut self) -> &mut Vec<Value> {
        let entries = self.0.get_mut(ENTRIES).and_then(Value::as_array_mut);
        entries.expect("a catalog has a list of entries")
    }

    /// The entry of an id.
    pub fn get(&self, id: &str) -> Option<&Value> {
        self.0.get(ENTRIES)?.as_array()?.iter().find(|entry| entry["id"] == id)
    }

    /// Puts an entry in, for the one of its id.
    pub fn put(&mut self, entry: Value) {
        let at = self.entries().iter().position(|known| known["id"] == entry["id"]);
        match at {
            Some(at) => self.entries()[at] = entry,
            None => self.entries().push(entry),
        }
    }

    /// Takes an entry out; whether there was one.
    pub fn take(&mut self, id: &str) -> bool {
        let before = self.entries().len();
        self.entries().retain(|entry| entry["id"] != id);
        self.entries().len() < before
    }

    /// Switches an entry on or off; whether there is one.
    pub fn switch(&mut self, id: &str, enabled: bool) -> bool {
        let Some(entry) = self.entries().iter_mut().find(|entry| entry["id"] == id) else {
            return false;
        };
        // What says nothing is switched on.
        match entry.as_object_mut() {
            Some(fields) if enabled => drop(fields.shift_remove("enabled")),
            Some(fields) => drop(fields.insert("enabled".into(), enabled.into())),
            None => return false,
        }
        true
    }
}

/// The id that a package has in a catalog: its own, where the catalog's dialect is its own.
pub fn id_in_catalog(pinned: &Pinned) -> &str {
    match pinned.parted() {
        Some((Dialect::Capability, id)) => id,
        _ => &pinned.id,
    }
}

/// An installed package as an entry of the local catalog. What it says of itself in the dialect of catalogs stays; of
/// any other dialect that is said which has a place there, and others may call it by way of `haft`.
pub fn entry(
    package: &Package,
    manifest: &[u8],
    pinned: &Pinned,
    trust: Trust,
    memory: u64,
) -> Value {
    let own = (package.dialect == Dialect::Capability)
        .then(|| own_entry(manifest, &package.id))
        .flatten();
    let mut entry = own.unwrap_or_else(|| projected(package, pinned, memory));
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("trust_level".into(), trust.name().into());
    }
    entry
}

/// What a manifest of a capability, or the entry of a catalog, says itself.
fn own_entry(manifest: &[u8], id: &str) -> Option<Value> {
    let document: Value = serde_json::from_slice(manifest).ok()?;
    match document.get(ENTRIES) {
        Some(entries) => entries.as_array()?.iter().find(|entry| entry["id"] == id).cloned(),
        None => Some(document),
    }
}

/// What a package takes and answers, may touch and runs in, as a catalog says it. What takes no more than a call of anybody takes this
/// much memory.
pub fn described(package: &Package, memory: u64) -> Value {
    let only = the_only(package);
    let schema =
        |schema: Option<&Json>| schema.map_or_else(|| json!({"type": "object"}), Json::value);
    let permissions = &package.permissions;
    let network = match permissions.hosts.as_slice() {
        [] => json!({"network": "deny"}),
        hosts => json!({"network": "allowlist", "network_allowlist": hosts}),
    };
    let filesystem = match (
        &permissions.filesystem,
        permissions.write.is_empty(),
        permissions.read.is_empty(),
    ) {
        (Some(ceiling), _, _) => ceiling.as_str(),
        (None, false, _) => "write",
        (None, true, false) => "read",
        (None, true, true) => "none",
    };
    let mut rights = network;
    rights["filesystem"] = filesystem.into();
    rights["devices"] = json!(permissions.devices);
    let sandbox = match package.sandbox {
        Some(Sandbox::Container) => "container",
        Some(Sandbox::Process) | None => "process",
    };
    json!({
        "type": package.kind.name(),
        "description": package.blurb().unwrap_or(&package.id),
        "interfaces": {
            "inputs": schema(only.and_then(|action| action.input.as_ref())),
            "outputs": only.and_then(|action| action.output.as_ref()).map_or_else(|| json!({}), Json::value),
        },
        "permissions": rights,
        "runtime": {
            "sandbox": sandbox,
            "resources": {
                "cpu": package.resources.cpu.as_deref().unwrap_or("1"),
                "memory": package.resources.memory.clone().unwrap_or_else(|| format!("{}Mi", (memory >> 20).max(1))),
            },
        },
    })
}

fn the_only(package: &Package) -> Option<&Action> {
    match package.actions.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

fn projected(package: &Package, pinned: &Pinned, memory: u64) -> Value {
    let origin = match &pinned.source {
        Source::Path(path) | Source::Listed(path) | Source::Imported(path) => {
            json!({"source": "local", "digest": pinned.package, "path": path})
        }
        Source::Registry(url) | Source::Url(url) => {
            json!({"source": "url", "digest": pinned.package, "url": url})
        }
    };
    let mut said = described(package, memory);
    let mut take = |key: &str| said[key].take();
    let mut entry = json!({
        "id": id_in_catalog(pinned),
        "type": take("type"),
        "version": pinned.version,
        "description": take("description"),
        "origin": origin,
        "interfaces": take("interfaces"),
        "permissions": take("permissions"),
        "runtime": take("runtime"),
        "trust_level": Trust::Untrusted.name(),
    });
    let secrets: Vec<_> =
        package.inputs.iter().filter(|input| is_secret(input)).map(reference).collect();
    if !secrets.is_empty() {
        entry["secrets"] = secrets.into();
    }
    if package.requires_oauth {
        entry["requires_oauth"] = true.into();
    }
    if package.channel == Channel::VdiVpn {
        entry["execution"] = json!({"channel": "vdi_vpn"});
    }
    if the_only(package).is_some() && can_be_called(package) {
        let argv = ["haft", "call", pinned.id.as_str(), "-"];
        entry["implementation"] = json!({"kind": "command", "command": {"argv": argv}});
    }
    entry
}

fn is_secret(input: &Input) -> bool {
    input.secret && input.source == InputSource::Owner
}

fn reference(input: &Input) -> Value {
    let own = format!("secret://{}", input.name);
    json!({"name": input.name, "ref": input.reference.as_deref().unwrap_or(&own)})
}

fn can_be_called(package: &Package) -> bool {
    let is_undeclared = |entry: &Entry| *entry == Entry::Undeclared;
    package.kind != Kind::SkillPack
        && !package.implementations.iter().all(|one| is_undeclared(&one.entry))
        || package.chain.is_some()
}
