//! The text of a policy, read strictly: every key has one meaning, and all that is wrong is told at once.

use manifest::dialect::Dialect;
use manifest::model::Trust;
use manifest::shape::suggest;
use toml::de::DeTable;

use super::fault::PolicyError;
use super::table::{Document, Key, Node, Table};
use super::{
    ApprovalRules, Budget, ContainerRules, ContainerWay, FolderRules, Judges, Level, NetworkRules,
    PackageRules, Policy, Presence, Rule, SandboxRules, SecretRules, Store, VaultServer,
};

/// The largest policy that is read.
const LARGEST: usize = 256 * 1024;

/// The least memory a call can have: with less, no program starts inside the walls.
const LEAST_MEMORY: u64 = 8 << 20;

/// The most processes at a time.
const MOST_PROCESSES: u32 = 32_000;

const TABLE: &str = "a table with keys of its own";
const TIME: &str = "a time such as \"500ms\", \"30s\", \"10m\"";
const SIZE: &str = "a size such as \"512M\", \"2G\"";
const COUNT: &str = "a whole number that is not negative";
const HOSTS: &str = "a list of hosts such as [\"api.example.com\", \"*.example.org\"]";
const HOST: &str = "a host such as \"api.example.com\"";
const FOLDERS: &str = "a list of folders such as [\"~/data\", \"/srv/data\"]";
const FOLDER: &str = "a folder such as \"~/data\"";
const NAMES: &str = "a list of names of variables such as [\"TOKEN\"]";
const NAME: &str = "the name of a variable such as \"TOKEN\"";

pub(super) fn parse(text: &str, judges: &Judges) -> Result<Policy, PolicyError> {
    let mut document = Document::new(text);
    if text.len() > LARGEST {
        document.wrong_at(0, format!("a policy has at most {} KiB", LARGEST / 1024));
        return document.finish(Policy::default());
    }
    let tree = match DeTable::parse(text) {
        Ok(tree) => tree,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            document.wrong_at(at, format!("this is no TOML: {}", error.message()));
            return document.finish(Policy::default());
        }
    };
    let mut reader = Reader { document, judges };
    let policy = reader.policy(Table::new("", tree.get_ref()));
    reader.document.finish(policy)
}

/// Reads the tables of a policy. What cannot be read is noted and stays as it was.
struct Reader<'t> {
    document: Document<'t>,
    judges: &'t Judges,
}

/// Puts a value in its place, if there is one.
fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl<'t> Reader<'t> {
    fn policy(&mut self, mut file: Table<'t>) -> Policy {
        let mut policy = Policy::default();
        self.within(file.take("trust"), |reader, table| {
            let read = table.take("allow").and_then(|node| reader.trusted(&node));
            put(&mut policy.trust.allow, read);
        });
        self.within(file.take("network"), |reader, table| {
            reader.network(table, &mut policy.network);
        });
        self.within(file.take("folders"), |reader, table| {
            reader.folders(table, &mut policy.folders);
        });
        self.within(file.take("approval"), |reader, table| {
            reader.approval(table, &mut policy.approval);
        });
        self.within(file.take("budget"), |reader, table| {
            reader.budget(table, &mut policy.budget);
        });
        self.within(file.take("sandbox"), |reader, table| {
            reader.sandbox(table, &mut policy.sandbox);
        });
        self.within(file.take("environment"), |reader, table| {
            let names = table.take("allow").map(|node| reader.texts(&node, NAMES, NAME));
            put(&mut policy.environment.allow, names);
        });
        self.within(file.take("secrets"), |reader, table| {
            reader.secrets(table, &mut policy.secrets);
        });
        self.within(file.take("containers"), |reader, table| {
            reader.containers(table, &mut policy.containers);
        });
        let packages = file.take("package");
        self.document.end(file);
        let wanted = "a table for each package, such as [package.\"mcpkg:acme.mail\"]";
        let packages = packages.and_then(|node| self.document.table(&node, wanted));
        for (id, key, node) in packages.into_iter().flat_map(Table::take_all) {
            self.check_dialect(id, key, &node);
            let mut rules = PackageRules::default();
            self.within_one(&node, wanted, |reader, table| reader.package(table, &mut rules));
            policy.packages.insert(id.to_owned(), rules);
        }
        policy
    }

    /// Reads a table that may be there, to its last key.
    fn within(&mut self, node: Option<Node<'t>>, read: impl FnOnce(&mut Self, &mut Table<'t>)) {
        if let Some(node) = node {
            self.within_one(&node, TABLE, read);
        }
    }

    fn within_one(
        &mut self,
        node: &Node<'t>,
        wanted: &str,
        read: impl FnOnce(&mut Self, &mut Table<'t>),
    ) {
        let Some(mut table) = self.document.table(node, wanted) else { return };
        read(self, &mut table);
        self.document.end(table);
    }

    fn trusted(&mut self, node: &Node<'t>) -> Option<Vec<Trust>> {
        const KNOWN: [&str; 4] = ["untrusted", "community", "verified", "local"];
        let level = |reader: &mut Self, word: &Node<'t>| {
            let word = reader.one_of(word, &KNOWN)?;
            Trust::named(word)
        };
        self.each(node, "a list such as [\"local\", \"verified\"]", level)
    }

    fn network(&mut self, table: &mut Table<'t>, rules: &mut NetworkRules) {
        for (name, hosts) in [("allow", &mut rules.allow), ("deny", &mut rules.deny)] {
            let judge = self.judges.host;
            let host = |reader: &mut Self, node: &Node<'t>| {
                let text = reader.document.text(node, HOST)?;
                if let Err(wrong) = judge(text) {
                    reader.document.wrong(node, wrong);
                }
                Some(text.to_owned())
            };
            put(hosts, table.take(name).and_then(|node| self.each(&node, HOSTS, host)));
        }
    }

    fn folders(&mut self, table: &mut Table<'t>, rules: &mut FolderRules) {
        for (name, folders) in
            [("read", &mut rules.read), ("write", &mut rules.write), ("deny", &mut rules.deny)]
        {
            let read = table.take(name).and_then(|node| self.each(&node, FOLDERS, Self::folder));
            put(folders, read);
        }
    }

    fn approval(&mut self, table: &mut Table<'t>, rules: &mut ApprovalRules) {
        const PRESENCES: [&str; 3] = ["any", "terminal", "passphrase"];
        for (name, rule) in [
            ("none", &mut rules.none),
            ("read", &mut rules.read),
            ("write", &mut rules.write),
            ("destructive", &mut rules.destructive),
            ("undeclared", &mut rules.undeclared),
        ] {
            put(rule, table.take(name).and_then(|node| self.rule(&node)));
        }
        let expires = table.take("expires").and_then(|node| self.milliseconds(&node));
        put(&mut rules.expires_seconds, expires.map(|time| time.div_ceil(1000)));
        let presence = table.take("owner_presence");
        let presence = presence.and_then(|node| self.one_of(&node, &PRESENCES));
        let presence = presence.map(|word| match word {
            "terminal" => Presence::Terminal,
            "passphrase" => Presence::Passphrase,
            _ => Presence::Any,
        });
        put(&mut rules.owner_presence, presence);
    }

    fn budget(&mut self, table: &mut Table<'t>, budget: &mut Budget) {
        for (name, count) in [
            ("calls_per_day", &mut budget.calls_per_day),
            ("cents_per_day", &mut budget.cents_per_day),
            ("calls_per_minute", &mut budget.calls_per_minute),
        ] {
            *count = table.take(name).and_then(|node| self.document.number(&node, COUNT));
        }
    }

    fn sandbox(&mut self, table: &mut Table<'t>, rules: &mut SandboxRules) {
        put(&mut rules.level, table.take("level").and_then(|node| self.level(&node)));
        for (name, time) in
            [("timeout", &mut rules.timeout_ms), ("max_timeout", &mut rules.max_timeout_ms)]
        {
            put(time, table.take(name).and_then(|node| self.milliseconds(&node)));
        }
        for (name, size) in [("memory", &mut rules.memory), ("max_memory", &mut rules.max_memory)] {
            put(size, table.take(name).and_then(|node| self.memory(&node)));
        }
        for (name, size) in [("scratch", &mut rules.scratch), ("output", &mut rules.output)] {
            put(size, table.take(name).and_then(|node| self.bytes(&node)));
        }
        if let Some(node) = table.take("processes") {
            let wanted = format!("a whole number from 1 to {MOST_PROCESSES}");
            let number = self.document.number(&node, &wanted);
            let fitting = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            match fitting {
                Some(number @ 1..=MOST_PROCESSES) => rules.processes = number,
                Some(_) => self.document.expected(&node, &wanted).unwrap_or_default(),
                None => {}
            }
        }
    }

    fn secrets(&mut self, table: &mut Table<'t>, rules: &mut SecretRules) {
        let names = table.take("environment").map(|node| self.texts(&node, NAMES, NAME));
        put(&mut rules.environment, names);
        let wanted = "a list of references such as [\"vault://kv/acme/weather#key\"]";
        let references = table.take("references");
        let references = references.and_then(|node| self.each(&node, wanted, Self::reference));
        put(&mut rules.references, references);
        rules.server = self.vault_server(table);
    }

    /// References are compared as texts, so those that can never be asked for are told here.
    fn reference(&mut self, node: &Node<'t>) -> Option<String> {
        let text =
            self.document.text(node, "a reference such as \"vault://kv/acme/weather#key\"")?;
        if !["vault://", "keyring://"].iter().any(|scheme| text.starts_with(scheme)) {
            let message = format!("`{text}` begins with neither `vault://` nor `keyring://`");
            self.document.wrong(node, message);
        }
        Some(text.to_owned())
    }

    fn vault_server(&mut self, table: &mut Table<'t>) -> Option<VaultServer> {
        let address = table.take("vault_address");
        let (file, namespace) = (table.take("vault_token_file"), table.take("vault_namespace"));
        let version = table.take("vault_version");
        let Some(address) = address else {
            if let Some(node) = file.or(namespace).or(version) {
                self.document.wrong(&node, "there is no `vault_address` that it is about");
            }
            return None;
        };
        let text = self.document.text(&address, "an address such as \"https://vault.example\"");
        if let Some(Err(wrong)) = text.map(self.judges.server) {
            self.document.wrong(&address, wrong);
        }
        let number = version.as_ref().and_then(|node| self.document.number(node, "1 or 2"));
        let store = match (number, &version) {
            (Some(1), _) => Store::First,
            (Some(2) | None, _) | (_, None) => Store::Second,
            (Some(_), Some(node)) => {
                self.document.expected(node, "1 or 2").unwrap_or(Store::Second)
            }
        };
        Some(VaultServer {
            address: text.unwrap_or_default().to_owned(),
            token_file: file.and_then(|node| self.folder(&node)),
            namespace: namespace
                .and_then(|node| self.document.text(&node, "the name of a namespace"))
                .map(str::to_owned),
            store,
        })
    }

    fn containers(&mut self, table: &mut Table<'t>, rules: &mut ContainerRules) {
        let known = ContainerWay::ALL.map(|(_, name)| name);
        let way = |reader: &mut Self, node: &Node<'t>| {
            let word = reader.one_of(node, &known)?;
            ContainerWay::ALL.iter().find(|(_, name)| *name == word).map(|(way, _)| *way)
        };
        let order = table.take("order");
        let order =
            order.and_then(|node| self.each(&node, "a list such as [\"image\", \"engine\"]", way));
        put(&mut rules.order, order);
        let secrets = table.take("engine_secrets").and_then(|node| self.document.flag(&node));
        put(&mut rules.engine_secrets, secrets);
    }

    fn package(&mut self, table: &mut Table<'t>, rules: &mut PackageRules) {
        rules.allow = table.take("allow").and_then(|node| self.document.flag(&node));
        rules.level = table.take("level").and_then(|node| self.level(&node));
        rules.timeout_ms = table.take("timeout").and_then(|node| self.milliseconds(&node));
        rules.memory = table.take("memory").and_then(|node| self.memory(&node));
        let cents = table.take("cents_per_call");
        put(&mut rules.cents_per_call, cents.and_then(|node| self.document.number(&node, COUNT)));
        rules.approval = table.take("approval").and_then(|node| self.rule(&node));
        self.within(table.take("budget"), |reader, table| reader.budget(table, &mut rules.budget));
        let wanted = "a table with a rule for each action, such as actions.send = \"ask\"";
        let actions = table.take("actions").and_then(|node| self.document.table(&node, wanted));
        for (name, _, node) in actions.into_iter().flat_map(Table::take_all) {
            if let Some(rule) = self.rule(&node) {
                rules.actions.insert(name.to_owned(), rule);
            }
        }
    }

    /// Refuses the name of a package with a dialect that there is not: its rules would fit nothing. Ids of one
    /// dialect begin with `tool:` themselves.
    fn check_dialect(&mut self, id: &str, key: Key, node: &Node<'_>) {
        let Some((dialect, _)) = id.split_once(':') else { return };
        if dialect == "tool" || Dialect::named(dialect).is_some() {
            return;
        }
        let known = Dialect::ALL.map(Dialect::name);
        let near = suggest(dialect, known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!(
            "`{dialect}` is no dialect; write one of {} before the id{near}",
            known.join(", ")
        );
        self.document.wrong_key(key, node, message);
    }

    /// Every entry of a list that can be read.
    fn each<T>(
        &mut self,
        node: &Node<'t>,
        wanted: &str,
        read: impl Fn(&mut Self, &Node<'t>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let entries = self.document.list(node, wanted)?;
        Some(entries.iter().filter_map(|entry| read(self, entry)).collect())
    }

    fn texts(&mut self, node: &Node<'t>, wanted: &str, each: &str) -> Vec<String> {
        let text = |reader: &mut Self, node: &Node<'t>| {
            reader.document.text(node, each).map(str::to_owned)
        };
        self.each(node, wanted, text).unwrap_or_default()
    }

    /// One of the words that there are.
    fn one_of(&mut self, node: &Node<'t>, known: &[&'static str]) -> Option<&'static str> {
        let quoted: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        let text = self.document.text(node, &format!("one of {}", quoted.join(", ")))?;
        let found = known.iter().find(|word| **word == text).copied();
        if found.is_none() {
            let near = suggest(text, known.iter().copied());
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            let message = format!("`{text}` is none of: {}{near}", known.join(", "));
            self.document.wrong(node, message);
        }
        found
    }

    fn rule(&mut self, node: &Node<'t>) -> Option<Rule> {
        let word = self.one_of(node, &Rule::ALL.map(|(_, name)| name))?;
        Rule::ALL.iter().find(|(_, name)| *name == word).map(|(rule, _)| *rule)
    }

    fn level(&mut self, node: &Node<'t>) -> Option<Level> {
        let word = self.one_of(node, &Level::ALL.map(|(_, name)| name))?;
        Level::ALL.iter().find(|(_, name)| *name == word).map(|(level, _)| *level)
    }

    /// Folders are absolute, or begin with `~/`: a policy does not mean another thing elsewhere.
    fn folder(&mut self, node: &Node<'t>) -> Option<String> {
        let path = self.document.text(node, FOLDER)?;
        let is_fixed = path.starts_with('/') || path == "~" || path.starts_with("~/");
        let is_plain = !path.split('/').any(|part| part == "..");
        if is_fixed && path.split('/').all(|part| part.is_empty() || part == ".") {
            let message = format!("`{path}` is everything; name the folders that are meant");
            self.document.wrong(node, message);
        } else if !is_fixed || !is_plain {
            let message = format!("`{path}` is no absolute path; `~/` stands for your home folder");
            self.document.wrong(node, message);
        }
        Some(path.to_owned())
    }

    fn milliseconds(&mut self, node: &Node<'t>) -> Option<u64> {
        const UNITS: [(&str, u64); 5] =
            [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        self.quantity(node, &UNITS, TIME)
    }

    fn bytes(&mut self, node: &Node<'t>) -> Option<u64> {
        const UNITS: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
        self.quantity(node, &UNITS, SIZE)
    }

    fn memory(&mut self, node: &Node<'t>) -> Option<u64> {
        let size = self.bytes(node)?;
        if size < LEAST_MEMORY {
            self.document.wrong(node, "the least is \"8M\"");
        }
        Some(size)
    }

    fn quantity(&mut self, node: &Node<'t>, units: &[(&str, u64)], wanted: &str) -> Option<u64> {
        let text = self.document.text(node, wanted)?;
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let number = number.parse::<u64>().ok().zip(factor);
        let quantity = number.and_then(|(number, factor)| number.checked_mul(factor));
        match quantity.filter(|quantity| *quantity > 0) {
            Some(quantity) => Some(quantity),
            None => self.document.expected(node, wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policy, PolicyError> {
        Policy::parse(text)
    }

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
    fn what_is_wrong_is_told_with_its_place_and_what_is_expected_there() {
        for (text, line, column, key, words) in [
            ("[sandbx]", 1, 2, "sandbx", "there is no such key; did you mean `sandbox`?"),
            ("[sandbox]\nlevl = \"L2\"", 2, 1, "sandbox.levl", "did you mean `level`?"),
            ("[trust]\nx = 1", 2, 1, "trust.x", "there is no such key; there is allow"),
            ("\n[sandbox]\nlevel = \"L9\"", 3, 9, "sandbox.level", "is none of: L0, L1, L2, L3"),
            (
                "[sandbox]\nlevel = 3",
                2,
                9,
                "sandbox.level",
                "write one of \"L0\", \"L1\", \"L2\", \"L3\", not the number 3",
            ),
            ("[sandbox]\ntimeout = \"10\"", 2, 11, "sandbox.timeout", "write a time such as"),
            ("[sandbox]\ntimeout = 10", 2, 11, "sandbox.timeout", "not the number 10"),
            ("[sandbox]\nmemory = \"0M\"", 2, 10, "sandbox.memory", "write a size such as"),
            (
                "[sandbox]\nprocesses = 0",
                2,
                13,
                "sandbox.processes",
                "from 1 to 32000, not the number 0",
            ),
            (
                "[sandbox]\nprocesses = 1.5",
                2,
                13,
                "sandbox.processes",
                "from 1 to 32000, not the number 1.5",
            ),
            ("[sandbox]\nprocesses = 99999999999", 2, 13, "sandbox.processes", "from 1 to 32000"),
            ("[sandbox]\nmemory = \"4M\"", 2, 10, "sandbox.memory", "the least is \"8M\""),
            (
                "[sandbox]\nmax_memory = \"8191K\"",
                2,
                14,
                "sandbox.max_memory",
                "the least is \"8M\"",
            ),
            ("[package.x]\nmemory = \"1M\"", 2, 10, "package.x.memory", "the least is \"8M\""),
            (
                "[package.x]\nallow = \"yes\"",
                2,
                9,
                "package.x.allow",
                "write true or false, not the text \"yes\"",
            ),
            (
                "[package.x]\nactions.send = 1",
                2,
                16,
                "package.x.actions.send",
                "write one of \"allow\"",
            ),
            (
                "[package.x]\nbudget.calls = 1",
                2,
                8,
                "package.x.budget.calls",
                "there is no such key",
            ),
            ("[package]\nx = 3", 2, 5, "package.x", "write a table for each package"),
            (
                "\n[package.\"agentcl:x\"]\nallow = false",
                2,
                10,
                "package.\"agentcl:x\"",
                "`agentcl` is no dialect",
            ),
            ("[folders]\nwrite = [\"/\"]", 2, 10, "folders.write", "`/` is everything"),
            ("[folders]\nread = [\"~/a\",\n\"/./\"]", 3, 1, "folders.read", "is everything"),
            ("[folders]\nread = [\"data\"]", 2, 9, "folders.read", "no absolute path"),
            ("[folders]\nread = [\"/a/../b\"]", 2, 9, "folders.read", "no absolute path"),
            ("[folders]\nread = [7]", 2, 9, "folders.read", "write a folder such as"),
            (
                "[approval]\nowner_presence = \"me\"",
                2,
                18,
                "approval.owner_presence",
                "is none of: any, terminal, passphrase",
            ),
            (
                "[approval]\nwrite = \"alow\"",
                2,
                9,
                "approval.write",
                "is none of: allow, first, ask, deny; did you mean \"allow\"?",
            ),
            ("[secrets]\nbackend = \"keyring\"", 2, 1, "secrets.backend", "there is no such key"),
            (
                "[secrets]\nreferences = [\"env://A\"]",
                2,
                15,
                "secrets.references",
                "begins with neither",
            ),
            (
                "[secrets]\nvault_version = 2",
                2,
                17,
                "secrets.vault_version",
                "there is no `vault_address`",
            ),
            (
                "[secrets]\nvault_address = \"https://v\"\nvault_version = 3",
                3,
                17,
                "secrets.vault_version",
                "write 1 or 2, not the number 3",
            ),
            (
                "[secrets]\nvault_address = \"https://v\"\nvault_token_file = \"t\"",
                3,
                20,
                "secrets.vault_token_file",
                "no absolute path",
            ),
            ("[trust]\nallow = [\"all\"]", 2, 10, "trust.allow", "`all` is none of"),
            (
                "[trust]\nallow = \"local\"",
                2,
                9,
                "trust.allow",
                "write a list such as [\"local\", \"verified\"], not the text",
            ),
            ("trust = 3", 1, 9, "trust", "write a table with keys of its own, not the number 3"),
            ("[[trust]]", 1, 1, "trust", "not a list"),
            ("[trust\n", 1, 7, "", "this is no TOML: "),
            (
                "[budget]\ncalls_per_day = -1",
                2,
                17,
                "budget.calls_per_day",
                "write a whole number that is not negative, not the number -1",
            ),
            ("[budget]\nä = \"é\"", 2, 1, "", "this is no TOML: "),
        ] {
            let error = parse(text).unwrap_err();
            let [fault] = &error.faults[..] else { panic!("{text}: {error}") };
            assert_eq!(
                (fault.line, fault.column, &*fault.key),
                (line, column, key),
                "{text}: {error}"
            );
            assert!(fault.message.contains(words), "{text}: {error}");
        }
        assert!(parse(&"#".repeat(LARGEST + 1)).is_err());
    }

    #[test]
    fn all_that_is_wrong_is_told_in_the_order_of_the_text() {
        let text = "[trust]\nallow = [\"lokal\", 3]\n[network]\nallow = [\"a\", \"b\"]\n[sandbox]\nlevel = 2";
        let judges = Judges {
            host: |text| if text == "b" { Err("`b` is no host".to_owned()) } else { Ok(()) },
            server: |_| Ok(()),
        };
        let error = Policy::parse_with(text, &judges).unwrap_err();
        let places: Vec<_> = error.faults.iter().map(|one| (one.line, one.column)).collect();
        assert_eq!(places, [(2, 10), (2, 19), (4, 15), (6, 9)], "{error}");
        let told = "line 4, column 15: `network.allow`: `b` is no host";
        assert_eq!(error.faults[2].to_string(), told);
    }
}
