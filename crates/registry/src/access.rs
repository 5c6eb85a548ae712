//! Tokens, owners and publishers, as an administrator sees them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity;
use crate::read::{Checked, Fault};

/// What is written for everybody's names.
pub const EVERYBODY: &str = "*";

/// Where a version was built, as the issuer of an identity has sworn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Who has sworn it.
    pub issuer: String,
    /// Of whom.
    pub subject: String,
    /// The repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The branch or the tag.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
    /// The workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
}

/// What an administrator asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// Whose names it is for; `*` for everybody's.
    pub namespace: String,
    /// What it is for.
    pub role: String,
    /// How long it is good, in seconds; without it until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

impl Checked for NewToken {
    fn check(&self) -> Result<(), Fault> {
        check_scope(&self.namespace)
    }
}

/// A token without what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// What it is called.
    pub id: String,
    /// Whose names it is for.
    pub namespace: String,
    /// What it is for.
    pub role: String,
    /// When it was made.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub created_at: u64,
    /// When it ends.
    #[serde(default, with = "crate::moment::maybe")]
    #[schemars(schema_with = "crate::moment::maybe::schema")]
    pub expires_at: Option<u64>,
    /// When it was revoked.
    #[serde(default, with = "crate::moment::maybe")]
    #[schemars(schema_with = "crate::moment::maybe::schema")]
    pub revoked_at: Option<u64>,
    /// Whose identity it was given for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl Checked for Token {
    fn check(&self) -> Result<(), Fault> {
        if self.role.is_empty() { Err(Fault::Empty("role")) } else { check_scope(&self.namespace) }
    }
}

/// A token that was made; it is told once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    /// The token itself.
    pub token: String,
    /// What is known of it.
    #[serde(flatten)]
    pub about: Token,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Given").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Checked for Given {
    fn check(&self) -> Result<(), Fault> {
        if self.token.trim().is_empty() { Err(Fault::Empty("token")) } else { Ok(()) }
    }
}

/// All tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// The newest first.
    pub tokens: Vec<Token>,
}

impl Checked for Tokens {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Who may publish a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owners {
    /// The id of the tool.
    pub id: String,
    /// Its own namespace, which always may.
    pub namespace: String,
    /// The other namespaces whose tokens may.
    pub owners: Vec<String>,
}

impl Checked for Owners {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Who is trusted to publish by an identity that an issuer has sworn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPublisher {
    /// The issuer, exactly as its tokens say.
    pub issuer: String,
    /// Where its keys are, when it does not say so itself at its own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
    /// For whom its tokens must be.
    pub audience: String,
    /// What they must say: names of claims, and patterns with `*` for any text.
    pub claims: BTreeMap<String, String>,
    /// How they may be signed.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<String>,
    /// Whose names may be published then.
    pub namespace: String,
}

/// What issuers of today sign with.
pub fn default_algorithms() -> Vec<String> {
    ["RS256", "ES256"].map(str::to_owned).into()
}

impl Checked for NewPublisher {
    fn check(&self) -> Result<(), Fault> {
        for (field, text) in [("issuer", &self.issuer), ("audience", &self.audience)] {
            if text.trim().is_empty() {
                return Err(Fault::Empty(field));
            }
            if text.len() > 1_000 {
                return Err(Fault::Long(field));
            }
            if text.contains(char::is_control) {
                return Err(Fault::Control(field));
            }
        }
        if !self.claims.iter().any(|(name, pattern)| names_somebody(name, pattern)) {
            return Err(Fault::Anybody);
        }
        if self.claims.len() > 20 || self.claims.iter().any(|(k, v)| k.len() + v.len() > 1_000) {
            return Err(Fault::Long("claims"));
        }
        if self.algorithms.is_empty() {
            return Err(Fault::Empty("algorithms"));
        }
        check_scope(&self.namespace)
    }
}

/// The claims by which build services and directories say whom they swear for. What else they say (a branch, an
/// environment, a workflow that others may use) anybody can have sworn of their own builds.
pub const NAMING: [&str; 16] = [
    "sub",
    "repository",
    "repository_id",
    "repository_owner",
    "repository_owner_id",
    "project_path",
    "project_id",
    "namespace_path",
    "namespace_id",
    "user_id",
    "user_login",
    "email",
    "organization_id",
    "organization_slug",
    "client_id",
    "azp",
];

/// Whether a claim leaves no more than one owner. An issuer swears for everybody who uses it: what begins like an
/// owner may be another one, so the name of the owner must be written out, up to the slash behind it.
fn names_somebody(name: &str, pattern: &str) -> bool {
    let is_whole = match pattern.split_once('*') {
        None => !pattern.trim().is_empty(),
        Some((begun, _)) => {
            // In an address it is not the host that is the owner.
            let path = begun.split_once("://").map(|(_, rest)| rest.split_once('/'));
            let path = path.map_or(begun, |found| found.map_or("", |(_, path)| path));
            path.rsplit_once('/').is_some_and(|(owner, _)| !owner.is_empty())
        }
    };
    is_whole && NAMING.contains(&name)
}

/// A publisher that is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Publisher {
    /// What it is called.
    pub id: String,
    /// The issuer.
    pub issuer: String,
    /// Where its keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
    /// For whom its tokens must be.
    pub audience: String,
    /// What they must say.
    pub claims: BTreeMap<String, String>,
    /// How they may be signed.
    pub algorithms: Vec<String>,
    /// Whose names may be published then.
    pub namespace: String,
    /// When it was added.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub created_at: u64,
}

impl Publisher {
    /// A rule that is kept.
    pub fn new(id: String, rule: NewPublisher, created_at: u64) -> Self {
        let NewPublisher { issuer, keys, audience, claims, algorithms, namespace } = rule;
        Self { id, issuer, keys, audience, claims, algorithms, namespace, created_at }
    }
}

impl Checked for Publisher {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// All publishers that are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Publishers {
    /// The oldest first.
    pub publishers: Vec<Publisher>,
}

impl Checked for Publishers {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// An identity, to be exchanged for a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// What the issuer has signed: a JWT.
    pub identity: String,
    /// Whose names it is for, where several could be meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Exchange").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Checked for Exchange {
    fn check(&self) -> Result<(), Fault> {
        if self.identity.trim().is_empty() {
            return Err(Fault::Empty("identity"));
        }
        self.namespace.as_deref().map_or(Ok(()), check_scope)
    }
}

/// Whether something can be the namespace of a tool, which has no prefix.
pub fn check_namespace(name: &str) -> Result<(), Fault> {
    match name {
        "" => Err(Fault::Empty("namespace")),
        EVERYBODY => Err(Fault::Everybody),
        _ if name.len() > identity::LONGEST => Err(Fault::Long("namespace")),
        _ if name.starts_with(identity::PREFIX) || !identity::is_name(name) => {
            Err(Fault::Namespace(name.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Whether something says whose names are meant: those of a namespace, or everybody's.
pub fn check_scope(name: &str) -> Result<(), Fault> {
    if name == EVERYBODY { Ok(()) } else { check_namespace(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = r#"{"issuer":"https://i.example","audience":"registry","namespace":"acme",
        "claims":{"repository":"acme/tools","ref":"refs/tags/*"}}"#;

    #[test]
    fn a_publisher_says_whom_of_the_issuers_users_is_meant() {
        let read = |text: &str| crate::read::<NewPublisher>(text.as_bytes());
        assert_eq!(read(RULE).unwrap().algorithms, ["RS256", "ES256"]);
        for (from, to) in [
            (r#""repository":"acme/tools","ref":"refs/tags/*""#, ""),
            (r#""repository":"acme/tools","ref":"refs/tags/*""#, r#""repository":"*""#),
            (r#""repository":"acme/tools","#, ""),
            ("\"registry\"", "\"\""),
            ("i.example", "i.example/\\u0000"),
            ("\"acme\"", "\"a b\""),
            ("\"audience\"", "\"audiences\""),
        ] {
            let changed = RULE.replace(from, to);
            assert_ne!(changed, RULE);
            assert!(read(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn a_rule_names_somebody_in_particular() {
        for (claim, pattern, names) in [
            ("repository", "acme/tools", true),
            ("repository", "acme/*", true),
            ("repository", "acme/to*", true),
            ("sub", "repo:acme/tools:ref:refs/tags/*", true),
            ("sub", "repo:acme/*", true),
            ("repository_owner", "acme", true),
            ("repository_owner_id", "4711", true),
            ("project_path", "acme/group/*", true),
            ("sub", "https://git.example/acme/*", true),
            ("sub", "https://*", false),
            ("sub", "https://git.example/*", false),
            ("sub", "https://git.example/acme*", false),
            ("repository", "*", false),
            ("repository", "*/tools", false),
            ("repository", "acme*", false),
            ("repository", "/*", false),
            ("sub", "repo:*", false),
            ("sub", "", false),
            ("repository_owner", "acme*", false),
            ("email", "*@acme.example", false),
            ("ref", "refs/heads/main", false),
            ("environment", "production", false),
            ("job_workflow_ref", "acme/flows/.github/workflows/publish.yml@v1", false),
        ] {
            assert_eq!(names_somebody(claim, pattern), names, "{claim}={pattern}");
        }
    }

    #[test]
    fn everybodys_names_are_no_namespace() {
        assert_eq!(check_namespace("acme"), Ok(()));
        assert_eq!(check_namespace(""), Err(Fault::Empty("namespace")));
        assert_eq!(check_namespace("*"), Err(Fault::Everybody));
        for name in ["a b", " ", "a\u{0}", "a*", "**", "tool:acme", "a//b"] {
            assert_eq!(check_namespace(name), Err(Fault::Namespace(name.to_owned())));
        }
        assert_eq!(check_namespace(&"x".repeat(257)), Err(Fault::Long("namespace")));
        assert_eq!((check_scope("*"), check_scope("acme")), (Ok(()), Ok(())));
        assert!(check_scope("a b").is_err() && check_scope("a*").is_err());
    }

    #[test]
    fn secrets_do_not_show_themselves() {
        let exchange = Exchange { identity: "eyJ".into(), namespace: None };
        assert!(!format!("{exchange:?}").contains("eyJ"));
    }
}
