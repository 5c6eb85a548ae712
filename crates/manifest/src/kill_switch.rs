//! How a package is revoked.

use crate::dialect::lowering::{text, texts};
use crate::json;
use crate::model::Package;

/// A kill switch, as its author wrote it: texts may hold `${…}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillSwitch {
    /// A DELETE to this address revokes.
    Url(String),
    /// This command revokes: the program and its arguments.
    Shell(Vec<String>),
    /// The owner revokes.
    Manual(ByHand),
    /// There is nothing to revoke.
    None,
}

/// How the owner revokes by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByHand {
    /// On this page.
    Url(String),
    /// As these words say.
    Instructions(String),
}

impl KillSwitch {
    /// The kill switch of a package, where it has one.
    pub fn of(package: &Package) -> Option<Self> {
        let written = package.kill_switch.as_ref()?;
        let parsed = json::parse(written.text());
        let switch = parsed.root?;
        Some(match switch.text_at("kind")? {
            "url" => Self::Url(text(&switch, "url")?),
            "shell" => Self::Shell(texts(&switch, "command")),
            "manual" => Self::Manual(match text(&switch, "instructions") {
                Some(words) => ByHand::Instructions(words),
                None => ByHand::Url(text(&switch, "instructions_url")?),
            }),
            "none" => Self::None,
            _ => return None,
        })
    }

    /// Its name in manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Shell(_) => "shell",
            Self::Manual(_) => "manual",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::document::{Options, read};

    fn switch(written: &Value) -> KillSwitch {
        let manifest = json!({
            "manifest_version": "0.4",
            "tool": {
                "id": "demo-tool", "version": "1.0.0", "name": "Demo", "summary": "A test.",
                "homepage": "https://example.com/",
            },
            "runtime": {
                "kind": "shell-binary",
                "install": { "method": "preinstalled", "locator": { "kind": "binary-on-path", "binary": "demo" } },
                "entrypoint": { "command": ["demo"] },
            },
            "env": [],
            "actions": [{
                "name": "look", "summary": "Looks.", "side_effects": "read",
                "invocation": { "kind": "subcommand", "argv_template": ["look"] },
            }],
            "smoke": { "kind": "shell", "command": ["demo"], "success": {} },
            "kill_switch": written,
        });
        let text = manifest.to_string();
        let (_, packages) = read(text.as_bytes(), &Options::default())
            .unwrap_or_else(|report| panic!("{:?}", report.findings));
        KillSwitch::of(&packages[0]).unwrap()
    }

    #[test]
    fn every_kind_is_read() {
        let page = "https://example.com/revoke";
        for (written, read) in [
            (json!({ "kind": "url", "url": page }), KillSwitch::Url(page.into())),
            (
                json!({ "kind": "shell", "command": ["demo", "stop"] }),
                KillSwitch::Shell(vec!["demo".into(), "stop".into()]),
            ),
            (
                json!({ "kind": "manual", "instructions_url": page }),
                KillSwitch::Manual(ByHand::Url(page.into())),
            ),
            (
                json!({ "kind": "manual", "instructions": "Press it." }),
                KillSwitch::Manual(ByHand::Instructions("Press it.".into())),
            ),
            (json!({ "kind": "none" }), KillSwitch::None),
        ] {
            let found = switch(&written);
            assert_eq!((written["kind"].as_str(), &found), (Some(found.name()), &read));
        }
    }
}
