//! Small tools, and chains of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use host::chain::link;
use host::{Approver, CallError, Kind, Matter, Said, Tool};
use ledger::audit;
use serde_json::{Value, json};

use crate::kit::Folder;

/// Tools that a chain may call, each in a folder of its own.
#[derive(Default)]
pub(crate) struct Tools(Vec<(Folder, Tool)>);

impl Tools {
    /// One more: a Python function `run` that is called with the input.
    pub(crate) fn add(&mut self, id: &str, body: &str) -> &mut Self {
        let manifest = json!({
            "id": id, "type": "tool", "version": "1.0.0", "description": "A test",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"},
                "timeout_seconds": 20},
            "trust_level": "local",
            "implementation": {"kind": "python", "python": {"callable": "demo:run"}}
        });
        let files = [("manifest.json", manifest.to_string()), ("demo.py", body.to_owned())];
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let folder = Folder::with(&files);
        let tool = folder.tool("manifest.json");
        self.0.push((folder, tool));
        self
    }

    /// One that answers with its input and what it is called.
    pub(crate) fn add_echo(&mut self, id: &str) -> &mut Self {
        self.add(id, &format!("def run(given):\n    return {{'by': '{id}', 'got': given}}\n"))
    }

    /// Changes what is known of a tool.
    pub(crate) fn change(&mut self, id: &str, change: impl FnOnce(&mut Tool)) -> &mut Self {
        let (_, tool) = self.0.iter_mut().find(|(_, tool)| tool.package.id == id).unwrap();
        change(tool);
        self
    }

    /// One more chain, which others may call.
    pub(crate) fn add_chain(&mut self, id: &str, steps: &Value) -> &mut Self {
        let (folder, tool) = chain_of(id, steps, &json!({}));
        self.0.push((folder, tool));
        self
    }

    fn find(&self, id: &str) -> Result<Tool, CallError> {
        let found = self.0.iter().find(|(_, tool)| tool.package.id == id);
        let missing = || CallError::new(Kind::Unknown, "it is not installed");
        found.map(|(_, tool)| tool.clone()).ok_or_else(missing)
    }

    /// A chain of these tools.
    pub(crate) fn chain(&self, steps: &Value) -> Chain {
        self.chain_with(steps, &json!({}))
    }

    /// The same, with more in its manifest.
    pub(crate) fn chain_with(&self, steps: &Value, more: &Value) -> Chain {
        let (folder, mut tool) = chain_of("demo.test.chain", steps, more);
        tool.links = link(&tool, &mut |id| self.find(id));
        Chain { tool, _folder: folder }
    }
}

/// A chain that can be called.
pub(crate) struct Chain {
    pub(crate) tool: Tool,
    _folder: Folder,
}

fn chain_of(id: &str, steps: &Value, more: &Value) -> (Folder, Tool) {
    let mut manifest = json!({
        "toolId": id, "name": "A Chain", "version": "1.0.0", "description": "A test.",
        "capabilities": ["test"], "chain": steps,
        "input_schema": {"type": "object"}, "output_schema": {},
    });
    for (name, value) in more.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    let folder = Folder::with(&[("manifest.json", &manifest.to_string())]);
    let tool = folder.tool("manifest.json");
    (folder, tool)
}

/// Says the same to every question, and keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Owner(Option<Said>, Mutex<Vec<Matter>>);

impl Owner {
    pub(crate) fn who_says(says: Option<Said>) -> Arc<Self> {
        Arc::new(Self(says, Mutex::default()))
    }

    pub(crate) fn matters(&self) -> Vec<Matter> {
        self.1.lock().unwrap().clone()
    }
}

impl Approver for Owner {
    fn ask(&self, matter: &Matter) -> Result<Option<Said>, CallError> {
        self.1.lock().unwrap().push(matter.clone());
        Ok(self.0)
    }

    fn is_there(&self) -> bool {
        self.0.is_some()
    }
}

/// What the log of a home says, the first record first.
pub(crate) fn logged(home: &Path) -> Vec<audit::Record> {
    let page = audit::page(&home.join("audit"), &audit::Filter::default(), None, 10_000);
    let mut records = page.unwrap().records;
    records.reverse();
    records
}
