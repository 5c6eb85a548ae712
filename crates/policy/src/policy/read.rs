//! The text of a policy, read strictly.

use std::collections::BTreeMap;
use std::fmt;

use manifest::dialect::Dialect;
use manifest::model::Trust;
use serde::Deserialize;

use super::{
    Budget, ContainerWay, Level, PackageRules, Policy, Presence, Rule, Store, VaultServer,
};

/// The largest policy that is read.
const LARGEST: usize = 256 * 1024;

/// The least memory a call can have: with less, no program starts inside the walls.
const LEAST_MEMORY: u64 = 8 << 20;

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The line, from one, where it can be told.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: {}", self.message),
            None => out.write_str(&self.message),
        }
    }
}

impl std::error::Error for PolicyError {}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    trust: Option<TrustTable>,
    network: Option<NetworkTable>,
    folders: Option<FolderTable>,
    approval: Option<ApprovalTable>,
    budget: Option<BudgetTable>,
    sandbox: Option<SandboxTable>,
    environment: Option<EnvironmentTable>,
    secrets: Option<SecretTable>,
    containers: Option<ContainerTable>,
    package: BTreeMap<String, PackageTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustTable {
    allow: Vec<toml::Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct NetworkTable {
    allow: Vec<String>,
    deny: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct FolderTable {
    read: Vec<toml::Spanned<String>>,
    write: Vec<toml::Spanned<String>>,
    deny: Vec<toml::Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ApprovalTable {
    none: Option<toml::Spanned<String>>,
    read: Option<toml::Spanned<String>>,
    write: Option<toml::Spanned<String>>,
    destructive: Option<toml::Spanned<String>>,
    undeclared: Option<toml::Spanned<String>>,
    expires: Option<toml::Spanned<String>>,
    owner_presence: Option<toml::Spanned<String>>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default, deny_unknown_fields)]
struct BudgetTable {
    calls_per_day: Option<u64>,
    cents_per_day: Option<u64>,
    calls_per_minute: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SandboxTable {
    level: Option<toml::Spanned<String>>,
    timeout: Option<toml::Spanned<String>>,
    max_timeout: Option<toml::Spanned<String>>,
    memory: Option<toml::Spanned<String>>,
    max_memory: Option<toml::Spanned<String>>,
    processes: Option<toml::Spanned<u32>>,
    scratch: Option<toml::Spanned<String>>,
    output: Option<toml::Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct EnvironmentTable {
    allow: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SecretTable {
    environment: Vec<String>,
    references: Vec<toml::Spanned<String>>,
    vault_address: Option<toml::Spanned<String>>,
    vault_token_file: Option<toml::Spanned<String>>,
    vault_namespace: Option<toml::Spanned<String>>,
    vault_version: Option<toml::Spanned<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContainerTable {
    order: Option<Vec<toml::Spanned<String>>>,
    engine_secrets: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct PackageTable {
    allow: Option<bool>,
    level: Option<toml::Spanned<String>>,
    timeout: Option<toml::Spanned<String>>,
    memory: Option<toml::Spanned<String>>,
    budget: Option<BudgetTable>,
    cents_per_call: u64,
    approval: Option<toml::Spanned<String>>,
    actions: BTreeMap<String, toml::Spanned<String>>,
}

pub(super) fn parse(text: &str) -> Result<Policy, PolicyError> {
    if text.len() > LARGEST {
        let message = format!("a policy has at most {} KiB", LARGEST / 1024);
        return Err(PolicyError { line: None, message });
    }
    let file: File = toml::from_str(text).map_err(|error| PolicyError {
        line: error.span().map(|span| line_of(text, span.start)),
        message: error.message().to_owned(),
    })?;
    Reader { text }.policy(file)
}

struct Reader<'t> {
    text: &'t str,
}

type Read<T> = Result<T, PolicyError>;

impl Reader<'_> {
    fn policy(&self, file: File) -> Read<Policy> {
        let mut policy = Policy::default();
        if let Some(trust) = file.trust {
            let level = |word: &toml::Spanned<String>| {
                let known = Trust::named(word.get_ref());
                known.ok_or_else(|| self.unknown(word, "untrusted, community, verified, local"))
            };
            policy.trust.allow = trust.allow.iter().map(level).collect::<Read<_>>()?;
        }
        if let Some(network) = file.network {
            (policy.network.allow, policy.network.deny) = (network.allow, network.deny);
        }
        if let Some(folders) = file.folders {
            policy.folders.read = self.folders(&folders.read)?;
            policy.folders.write = self.folders(&folders.write)?;
            policy.folders.deny = self.folders(&folders.deny)?;
        }
        if let Some(approval) = file.approval {
            self.approval(&approval, &mut policy)?;
        }
        if let Some(budget) = file.budget {
            policy.budget = budget.into();
        }
        if let Some(sandbox) = file.sandbox {
            self.sandbox(&sandbox, &mut policy)?;
        }
        if let Some(environment) = file.environment {
            policy.environment.allow = environment.allow;
        }
        if let Some(secrets) = file.secrets {
            policy.secrets.references = self.references(&secrets.references)?;
            policy.secrets.server = self.vault_server(&secrets)?;
            policy.secrets.environment = secrets.environment;
        }
        if let Some(containers) = file.containers {
            let way = |word: &toml::Spanned<String>| {
                let known = ContainerWay::ALL.into_iter().find(|(_, name)| name == word.get_ref());
                known.map(|(way, _)| way).ok_or_else(|| self.unknown(word, "image, engine"))
            };
            if let Some(order) = &containers.order {
                policy.containers.order = order.iter().map(way).collect::<Read<_>>()?;
            }
            policy.containers.engine_secrets = containers.engine_secrets.unwrap_or_default();
        }
        for (id, table) in file.package {
            self.check_dialect(&id)?;
            let rules = self.package(&table)?;
            policy.packages.insert(id, rules);
        }
        Ok(policy)
    }

    fn approval(&self, table: &ApprovalTable, policy: &mut Policy) -> Read<()> {
        let approval = &mut policy.approval;
        for (word, rule) in [
            (&table.none, &mut approval.none),
            (&table.read, &mut approval.read),
            (&table.write, &mut approval.write),
            (&table.destructive, &mut approval.destructive),
            (&table.undeclared, &mut approval.undeclared),
        ] {
            if let Some(word) = word {
                *rule = self.rule(word)?;
            }
        }
        if let Some(word) = &table.expires {
            approval.expires_seconds = self.milliseconds(word)?.div_ceil(1000);
        }
        if let Some(word) = &table.owner_presence {
            approval.owner_presence = match &**word.get_ref() {
                "any" => Presence::Any,
                "terminal" => Presence::Terminal,
                "passphrase" => Presence::Passphrase,
                _ => return Err(self.unknown(word, "any, terminal, passphrase")),
            };
        }
        Ok(())
    }

    fn sandbox(&self, table: &SandboxTable, policy: &mut Policy) -> Read<()> {
        let rules = &mut policy.sandbox;
        if let Some(word) = &table.level {
            rules.level = self.level(word)?;
        }
        for (word, time) in [
            (&table.timeout, &mut rules.timeout_ms),
            (&table.max_timeout, &mut rules.max_timeout_ms),
        ] {
            if let Some(word) = word {
                *time = self.milliseconds(word)?;
            }
        }
        for (word, size) in
            [(&table.memory, &mut rules.memory), (&table.max_memory, &mut rules.max_memory)]
        {
            if let Some(word) = word {
                *size = self.memory(word)?;
            }
        }
        for (word, size) in
            [(&table.scratch, &mut rules.scratch), (&table.output, &mut rules.output)]
        {
            if let Some(word) = word {
                *size = self.bytes(word)?;
            }
        }
        if let Some(number) = &table.processes {
            if !(1..=32_000).contains(number.get_ref()) {
                return Err(self.at(number.span().start, "write a number from 1 to 32000".into()));
            }
            rules.processes = *number.get_ref();
        }
        Ok(())
    }

    /// References are compared as texts, so those that can never be asked for are told here.
    fn references(&self, words: &[toml::Spanned<String>]) -> Read<Vec<String>> {
        let check = |word: &toml::Spanned<String>| {
            let text = word.get_ref();
            if ["vault://", "keyring://"].iter().any(|scheme| text.starts_with(scheme)) {
                return Ok(text.clone());
            }
            let message = format!("`{text}` begins with neither `vault://` nor `keyring://`");
            Err(self.at(word.span().start, message))
        };
        words.iter().map(check).collect()
    }

    fn vault_server(&self, table: &SecretTable) -> Read<Option<VaultServer>> {
        let (file, namespace) = (&table.vault_token_file, &table.vault_namespace);
        let version = &table.vault_version;
        let Some(address) = &table.vault_address else {
            let spans = [
                file.as_ref().map(toml::Spanned::span),
                namespace.as_ref().map(toml::Spanned::span),
            ];
            let span =
                spans.into_iter().flatten().chain(version.as_ref().map(toml::Spanned::span)).next();
            return match span {
                Some(span) => Err(self.at(span.start, "there is no `vault_address`".to_owned())),
                None => Ok(None),
            };
        };
        let store = match version.as_ref().map(|word| (*word.get_ref(), word.span().start)) {
            Some((1, _)) => Store::First,
            Some((2, _)) | None => Store::Second,
            Some((_, at)) => return Err(self.at(at, "write 1 or 2".to_owned())),
        };
        let files = self.folders(file.as_slice())?;
        Ok(Some(VaultServer {
            address: address.get_ref().clone(),
            token_file: files.into_iter().next(),
            namespace: namespace.as_ref().map(|word| word.get_ref().clone()),
            store,
        }))
    }

    fn package(&self, table: &PackageTable) -> Read<PackageRules> {
        let mut actions = BTreeMap::new();
        for (name, word) in &table.actions {
            actions.insert(name.clone(), self.rule(word)?);
        }
        Ok(PackageRules {
            allow: table.allow,
            level: table.level.as_ref().map(|word| self.level(word)).transpose()?,
            timeout_ms: table.timeout.as_ref().map(|word| self.milliseconds(word)).transpose()?,
            memory: table.memory.as_ref().map(|word| self.memory(word)).transpose()?,
            budget: table.budget.map(Budget::from).unwrap_or_default(),
            cents_per_call: table.cents_per_call,
            approval: table.approval.as_ref().map(|word| self.rule(word)).transpose()?,
            actions,
        })
    }

    fn rule(&self, word: &toml::Spanned<String>) -> Read<Rule> {
        let known = Rule::ALL.iter().find(|(_, name)| name == word.get_ref());
        known
            .map(|(rule, _)| *rule)
            .ok_or_else(|| self.unknown(word, &Rule::ALL.map(|(_, name)| name).join(", ")))
    }

    fn level(&self, word: &toml::Spanned<String>) -> Read<Level> {
        let known = Level::ALL.iter().find(|(_, name)| name == word.get_ref());
        known.map(|(level, _)| *level).ok_or_else(|| self.unknown(word, "L0, L1, L2, L3"))
    }

    /// Folders are absolute, or begin with `~/`: a policy does not mean another thing elsewhere.
    fn folders(&self, words: &[toml::Spanned<String>]) -> Read<Vec<String>> {
        let check = |word: &toml::Spanned<String>| {
            let path = word.get_ref();
            let is_fixed = path.starts_with('/') || path == "~" || path.starts_with("~/");
            let is_plain = !path.split('/').any(|part| part == "..");
            if is_fixed && path.split('/').all(|part| part.is_empty() || part == ".") {
                let message = format!("`{path}` is everything; name the folders that are meant");
                return Err(self.at(word.span().start, message));
            }
            if is_fixed && is_plain {
                return Ok(path.clone());
            }
            let message = format!("`{path}` is no absolute path; `~/` stands for your home folder");
            Err(self.at(word.span().start, message))
        };
        words.iter().map(check).collect()
    }

    fn milliseconds(&self, word: &toml::Spanned<String>) -> Read<u64> {
        const UNITS: [(&str, u64); 5] =
            [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        self.quantity(word, &UNITS, "a time such as \"500ms\", \"30s\", \"10m\"")
    }

    fn bytes(&self, word: &toml::Spanned<String>) -> Read<u64> {
        const UNITS: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
        self.quantity(word, &UNITS, "a size such as \"512M\", \"2G\"")
    }

    fn memory(&self, word: &toml::Spanned<String>) -> Read<u64> {
        match self.bytes(word)? {
            size if size < LEAST_MEMORY => {
                let message = format!("`{}`: the least is \"8M\"", word.get_ref());
                Err(self.at(word.span().start, message))
            }
            size => Ok(size),
        }
    }

    fn quantity(
        &self,
        word: &toml::Spanned<String>,
        units: &[(&str, u64)],
        wanted: &str,
    ) -> Read<u64> {
        let text = word.get_ref();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        number
            .parse::<u64>()
            .ok()
            .zip(factor)
            .and_then(|(number, factor)| number.checked_mul(factor))
            .filter(|quantity| *quantity > 0)
            .ok_or_else(|| self.at(word.span().start, format!("`{text}`: write {wanted}")))
    }

    /// Refuses the name of a package with a dialect that there is not: its rules would fit nothing. Ids of one
    /// dialect begin with `tool:` themselves.
    fn check_dialect(&self, id: &str) -> Read<()> {
        match id.split_once(':') {
            Some((dialect, _)) if dialect != "tool" && Dialect::named(dialect).is_none() => {
                let known = Dialect::ALL.map(Dialect::name).join(", ");
                let message =
                    format!("`{dialect}` is no dialect; write one of {known} before the id");
                Err(self.at(self.text.find(id).unwrap_or_default(), message))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, word: &toml::Spanned<String>, known: &str) -> PolicyError {
        let message = format!("`{}` is none of: {known}", word.get_ref());
        self.at(word.span().start, message)
    }

    fn at(&self, offset: usize, message: String) -> PolicyError {
        PolicyError { line: Some(line_of(self.text, offset)), message }
    }
}

impl From<BudgetTable> for Budget {
    fn from(table: BudgetTable) -> Self {
        let BudgetTable { calls_per_day, cents_per_day, calls_per_minute } = table;
        Self { calls_per_day, cents_per_day, calls_per_minute }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_policy() {
        assert_eq!(parse("").unwrap(), Policy::default());
    }

    #[test]
    fn every_key_is_read() {
        let policy = parse(
            r#"
            [trust]
            allow = ["local", "community"]
            [network]
            allow = ["api.example.com"]
            deny = ["*.tracker.example"]
            [folders]
            read = ["~/data"]
            write = ["/srv/out"]
            deny = ["~/.ssh"]
            [approval]
            none = "allow"
            read = "first"
            write = "ask"
            destructive = "deny"
            undeclared = "ask"
            expires = "5m"
            owner_presence = "passphrase"
            [budget]
            calls_per_day = 100
            cents_per_day = 50
            calls_per_minute = 10
            [sandbox]
            level = "L3"
            timeout = "10s"
            max_timeout = "1m"
            memory = "512M"
            max_memory = "1G"
            processes = 64
            scratch = "64M"
            output = "1M"
            [environment]
            allow = ["HTTPS_PROXY"]
            [secrets]
            environment = ["TOKEN"]
            references = ["vault://kv/a#b", "keyring://a/b"]
            vault_address = "https://vault.example"
            vault_token_file = "~/.vault-token"
            vault_namespace = "team"
            vault_version = 1
            [package."mcpkg:demo.echo"]
            allow = true
            level = "L2"
            timeout = "2s"
            memory = "64M"
            approval = "ask"
            actions.send = "deny"
            budget.calls_per_day = 3
            "#,
        )
        .unwrap();
        assert_eq!(policy.trust.allow, [Trust::Local, Trust::Community]);
        assert_eq!(policy.approval.destructive, Rule::Deny);
        assert_eq!(policy.approval.expires_seconds, 300);
        assert_eq!(policy.approval.owner_presence, Presence::Passphrase);
        assert_eq!(policy.sandbox.level, Level::L3);
        assert_eq!(policy.sandbox.timeout_ms, 10_000);
        assert_eq!(policy.sandbox.output, 1 << 20);
        assert_eq!(policy.budget.cents_per_day, Some(50));
        assert_eq!(policy.secrets.references, ["vault://kv/a#b", "keyring://a/b"]);
        let server = policy.secrets.server.as_ref().unwrap();
        assert_eq!(server.address, "https://vault.example");
        assert_eq!(server.token_file.as_deref(), Some("~/.vault-token"));
        assert_eq!((server.namespace.as_deref(), server.store), (Some("team"), Store::First));
        let echo = policy.of("mcpkg:demo.echo", "demo.echo").unwrap();
        assert_eq!(echo.actions["send"], Rule::Deny);
        assert_eq!(echo.budget.calls_per_day, Some(3));
        assert_eq!(echo.timeout_ms, Some(2000));
    }

    #[test]
    fn the_policies_of_the_documentation_are_policies() {
        let page = include_str!("../../../../docs/policy.md");
        let blocks: Vec<_> = page
            .split("```toml\n")
            .skip(1)
            .map(|rest| rest.split("```").next().expect("a block has an end"))
            .collect();
        assert_eq!(blocks.len(), 4);
        assert_eq!(parse(blocks[0]).unwrap(), Policy::default(), "the page shows the defaults");
        for block in blocks {
            parse(block).unwrap_or_else(|error| panic!("{error}: {block}"));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, words) in [
            ("[sandbox]\nlevl = \"L2\"", 2, "unknown field `levl`"),
            ("\n[sandbox]\nlevel = \"L9\"", 3, "`L9` is none of: L0, L1, L2, L3"),
            ("[sandbox]\ntimeout = \"10\"", 2, "write a time such as"),
            ("[sandbox]\nmemory = \"0M\"", 2, "write a size such as"),
            ("[sandbox]\nprocesses = 0", 2, "from 1 to 32000"),
            ("[sandbox]\nmemory = \"4M\"", 2, "the least is \"8M\""),
            ("[sandbox]\nmax_memory = \"8191K\"", 2, "the least is \"8M\""),
            ("[package.x]\nmemory = \"1M\"", 2, "the least is \"8M\""),
            ("\n[package.\"agentcl:x\"]\nallow = false", 2, "`agentcl` is no dialect"),
            ("[folders]\nwrite = [\"/\"]", 2, "`/` is everything"),
            ("[folders]\nread = [\"~/a\",\n\"/./\"]", 3, "is everything"),
            ("[approval]\nowner_presence = \"me\"", 2, "is none of: any, terminal, passphrase"),
            ("[secrets]\nbackend = \"keyring\"", 2, "unknown field `backend`"),
            ("[folders]\nread = [\"data\"]", 2, "no absolute path"),
            ("[secrets]\nreferences = [\"env://A\"]", 2, "begins with neither"),
            ("[secrets]\nvault_version = 2", 2, "there is no `vault_address`"),
            ("[secrets]\nvault_address = \"https://v\"\nvault_version = 3", 3, "write 1 or 2"),
            (
                "[secrets]\nvault_address = \"https://v\"\nvault_token_file = \"t\"",
                3,
                "no absolute path",
            ),
            ("[folders]\nread = [\"/a/../b\"]", 2, "no absolute path"),
            ("[approval]\nwrite = \"maybe\"", 2, "`maybe` is none of: allow, first, ask, deny"),
            ("[trust]\nallow = [\"all\"]", 2, "`all` is none of"),
            ("[trust\n", 1, ""),
            ("[budget]\ncalls_per_day = -1", 2, "-1"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, Some(line), "{text}: {error}");
            assert!(error.message.contains(words), "{text}: {error}");
        }
        assert!(parse(&"#".repeat(LARGEST + 1)).is_err());
    }
}
