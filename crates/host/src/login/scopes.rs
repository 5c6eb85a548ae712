//! What was granted to a sign-in, held against what a package says that its actions need.
//!
//! A manifest names the provider's scopes (`provider_scope`) of the resources that its actions use. Pure.

use manifest::model::{Action, Package, Scope, SideEffects};

use super::metadata::split_scopes;

/// The scope of tokens that can be renewed: it lets nobody do anything.
pub const OFFLINE: &str = "offline_access";

/// Where what was granted differs from what a package names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Scopes that it names and that were not granted.
    pub missing: Vec<Missing>,
    /// Scopes that were granted and that it does not name.
    pub beyond: Vec<String>,
}

/// A scope that was not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The provider's name for it.
    pub scope: String,
    /// Actions that need it.
    pub actions: Vec<String>,
}

/// The provider's scopes that a package names, each once.
pub fn named(package: &Package) -> Vec<String> {
    words(&package.scopes.iter().collect::<Vec<_>>())
}

/// The provider's scopes that an action needs, each once. One that only reads needs of a resource what is for reading it, where
/// the package tells that apart.
pub fn needed(package: &Package, action: &Action) -> Vec<String> {
    let reads = matches!(action.side_effects, Some(SideEffects::None | SideEffects::Read));
    let mut all = Vec::new();
    for resource in &action.scopes_used {
        let of_it: Vec<&Scope> =
            package.scopes.iter().filter(|scope| scope.resource == *resource).collect();
        let for_reading: Vec<&Scope> = of_it
            .iter()
            .copied()
            .filter(|scope| scope.verbs.iter().any(|verb| verb == "read"))
            .collect();
        all.extend(if reads && !for_reading.is_empty() { for_reading } else { of_it });
    }
    words(&all)
}

/// Those of some scopes that were not granted. Where no scope is named at all, nobody knows, and none is missing.
pub fn missing(needed: Vec<String>, granted: &[String]) -> Vec<String> {
    if granted.is_empty() {
        return Vec::new();
    }
    needed.into_iter().filter(|scope| !granted.contains(scope)).collect()
}

/// Compares what was granted with what a package names; nothing where it names nothing, or nothing was granted by name.
pub fn compared(package: &Package, granted: &[String]) -> Difference {
    let named = named(package);
    if named.is_empty() || granted.is_empty() {
        return Difference::default();
    }
    let is_beyond = |scope: &&String| *scope != OFFLINE && !named.contains(scope);
    let beyond = granted.iter().filter(is_beyond).cloned().collect();
    let missing = missing(named.clone(), granted).into_iter().map(|scope| {
        let needs = |action: &&Action| needed(package, action).contains(&scope);
        let actions = package.actions.iter().filter(needs).map(|action| action.name.clone());
        Missing { actions: actions.collect(), scope }
    });
    Difference { missing: missing.collect(), beyond }
}

fn words(scopes: &[&Scope]) -> Vec<String> {
    let texts: Vec<_> = scopes.iter().filter_map(|scope| scope.provider_scope.as_deref()).collect();
    split_scopes(&texts.join(" "))
}

#[cfg(test)]
mod tests {
    use manifest::document::{Options, read};
    use serde_json::json;

    use super::*;

    fn package() -> Package {
        let action = |name: &str, effects: &str, used: &[&str]| {
            json!({
                "name": name, "summary": name, "side_effects": effects, "scopes_used": used,
                "input": {"type": "object"}, "output": {"format": "json"},
                "invocation": {"kind": "mcp-tool", "tool_name": name},
            })
        };
        let scope = |resource: &str, verb: &str, provider: &str| {
            json!({
                "resource": resource, "actions": [verb], "rationale": "why",
                "provider_scope": provider,
            })
        };
        let manifest = json!({
            "manifest_version": "0.2",
            "tool": {
                "id": "mail", "name": "Mail", "version": "1.0.0", "summary": "A test",
                "description": "A test.", "homepage": "https://example.com",
                "author": {"name": "Acme"}, "license": "MIT",
            },
            "runtime": {
                "kind": "mcp-http", "endpoint_url": "https://mail.test/mcp",
                "install": {"method": "npm", "package": "mail"},
            },
            "env": [],
            "scopes": [
                scope("mail.messages", "read", "mail:read"),
                scope("mail.messages", "send", "mail:send"),
                scope("mail.folders", "admin", "mail:admin"),
                {"resource": "net.outbound", "actions": ["execute"], "rationale": "why"},
            ],
            "kill_switch": {"kind": "manual", "instructions_url": "https://example.com"},
            "smoke": {
                "kind": "mcp-tool-call", "tool_name": "list", "arguments": {},
                "success": {"no_error_field": true},
            },
            "actions": [
                action("list", "read", &["mail.messages"]),
                action("send", "write", &["mail.messages"]),
                action("sort", "read", &["mail.folders", "net.outbound"]),
            ],
        });
        let (_, mut packages) = read(manifest.to_string().as_bytes(), &Options::default()).unwrap();
        packages.remove(0)
    }

    fn scopes(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_action_that_reads_needs_what_is_for_reading() {
        let package = package();
        let needed = |at: usize| needed(&package, &package.actions[at]);
        assert_eq!(needed(0), ["mail:read"]);
        assert_eq!(needed(1), ["mail:read", "mail:send"]);
        // The package has nothing for reading it alone.
        assert_eq!(needed(2), ["mail:admin"]);
    }

    #[test]
    fn what_is_missing_and_what_is_more_is_told() {
        let found = compared(&package(), &scopes(&["mail:read", "calendar", OFFLINE]));
        let missing = |scope: &str, actions: &[&str]| Missing {
            scope: scope.to_owned(),
            actions: scopes(actions),
        };
        assert_eq!(
            found.missing,
            [missing("mail:send", &["send"]), missing("mail:admin", &["sort"])]
        );
        assert_eq!(found.beyond, ["calendar"]);
        let all = compared(&package(), &scopes(&["mail:read", "mail:send", "mail:admin"]));
        assert_eq!(all, Difference::default());
    }

    #[test]
    fn where_nobody_names_a_scope_nothing_is_missing() {
        assert_eq!(compared(&package(), &[]), Difference::default());
        assert_eq!(missing(scopes(&["mail:read"]), &[]), [""; 0]);
        let mut package = package();
        package.scopes.clear();
        assert_eq!(compared(&package, &scopes(&["calendar"])), Difference::default());
    }
}
