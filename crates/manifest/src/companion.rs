//! `haft.json`: what the author of a dialect that cannot say it claims to need.
//!
//! It grants nothing. It is shown on the consent card, and the owner decides.

use std::sync::LazyLock;

use crate::dialect::Dialect;
use crate::json::Node;
use crate::model::{Input, InputSource, Package, Permissions};
use crate::shape::{
    Pattern, Shape, closed, filled_text, list, may, must, patterns, text, text_like, word,
};

static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    closed(vec![
        must("haft", "The version of this format.", word(&["1"])),
        may(
            "permissions",
            "What the tool needs to touch.",
            closed(vec![
                may("network", "Hosts it reaches.", list(text_like(&patterns::HOST))),
                may("read", "Folders it reads.", list(filled_text())),
                may("write", "Folders it writes.", list(filled_text())),
                may("devices", "Devices it uses.", list(filled_text())),
            ]),
        ),
        may("env", "Names of variables it reads.", list(text_like(&VARIABLE))),
        may(
            "secrets",
            "Secrets it needs.",
            list(closed(vec![
                must("name", "Its name.", filled_text()),
                may("description", "What it is for.", text()),
            ])),
        ),
        may(
            "dependencies",
            "Packages it needs beside it.",
            list(closed(vec![
                must("manager", "Which package manager.", word(&["pip", "npm"])),
                must("package", "Name of the package.", filled_text()),
                must("version", "Exact version.", filled_text()),
            ])),
        ),
    ])
});

static VARIABLE: Pattern = Pattern {
    text: "^[A-Z_][A-Z0-9_]*$",
    matches: |s| {
        s.bytes().next().is_some_and(|b| b.is_ascii_uppercase() || b == b'_')
            && s.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    },
    noun: "variable name",
    words: "upper-case letters, digits and underscores",
    code: crate::finding::Code::BadPattern,
};

/// The shape of a companion.
pub fn shape() -> &'static Shape {
    &SHAPE
}

/// A companion, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Companion {
    /// What the tool needs to touch.
    pub permissions: Permissions,
    /// Variables it reads.
    pub env: Vec<String>,
    /// The secrets it needs: their names, and what each is.
    pub secrets: Vec<(String, Option<String>)>,
    /// Packages it needs, as `manager:package==version`.
    pub dependencies: Vec<String>,
}

/// Reads a companion that has passed its checks.
pub fn read(document: &Node<'_>) -> Companion {
    let texts = |node: Option<&Node<'_>>| -> Vec<String> {
        node.map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_text)
            .map(str::to_owned)
            .collect()
    };
    let needs = document.get("permissions");
    let named = |field: &str| texts(needs.and_then(|needs| needs.get(field)));
    let dependency = |entry: &Node<'_>| {
        let text = |field| entry.text_at(field).unwrap_or_default();
        format!("{}:{}=={}", text("manager"), text("package"), text("version"))
    };
    Companion {
        permissions: Permissions {
            declared: needs.is_some(),
            hosts: named("network"),
            domains: named("network"),
            read: named("read"),
            write: named("write"),
            devices: named("devices"),
            filesystem: None,
        },
        env: texts(document.get("env")),
        secrets: document
            .list_at("secrets")
            .iter()
            .filter_map(|secret| {
                let words = secret.text_at("description").map(str::to_owned);
                Some((secret.text_at("name")?.to_owned(), words))
            })
            .collect(),
        dependencies: document.list_at("dependencies").iter().map(dependency).collect(),
    }
}

/// Adds what a companion claims to a package whose dialect cannot say it.
pub fn apply(companion: &Companion, package: &mut Package) {
    let says_nothing = matches!(
        package.dialect,
        Dialect::Mcpkg
            | Dialect::Agentcli
            | Dialect::Jumith
            | Dialect::Mcpb
            | Dialect::ServerJson
            | Dialect::Skill
    );
    if !says_nothing {
        return;
    }
    let mut permissions = companion.permissions.clone();
    permissions.hosts.extend(package.permissions.hosts.iter().cloned());
    permissions.hosts.sort();
    permissions.hosts.dedup();
    package.permissions = permissions;
    let mut add = |input: Input| match package.inputs.iter_mut().find(|one| one.name == input.name)
    {
        Some(known) => known.prompt = known.prompt.take().or(input.prompt),
        None => package.inputs.push(input),
    };
    for (name, words) in &companion.secrets {
        add(Input { prompt: words.clone(), ..Input::secret(name) });
    }
    for name in &companion.env {
        add(Input {
            secret: false,
            required: false,
            source: InputSource::Caller,
            ..Input::secret(name)
        });
    }
    package.dependencies.clone_from(&companion.dependencies);
}
