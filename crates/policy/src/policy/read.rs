//! The text of a policy, read strictly: every key has one meaning, and all that is wrong is told at once.

mod values;

use manifest::dialect::Dialect;
use manifest::model::Trust;
use manifest::shape::suggest;
use toml::de::DeTable;

use super::fault::PolicyError;
use super::table::{Document, Key, Node, Table};
use super::{
    AgentInstall, AgentRules, ApprovalRules, Budget, ContainerRules, ContainerWay, FolderRules,
    Judges, NetworkRules, OnInstall, PackageRules, Policy, Presence, Profile, RankRules,
    SandboxRules, SecretRules, SourceRules, Store, VaultServer, Which, check_profile,
};

/// The largest policy that is read.
const LARGEST: usize = 256 * 1024;

/// The most processes at a time.
const MOST_PROCESSES: u32 = 32_000;

const TABLE: &str = "a table with keys of its own";
const COUNT: &str = "a whole number that is not negative";
const HOSTS: &str = "a list of hosts such as [\"api.example.com\", \"*.example.org\"]";
const HOST: &str = "a host such as \"api.example.com\"";
const FOLDERS: &str = "a list of folders such as [\"~/data\", \"/srv/data\"]";
const NAMES: &str = "a list of names of variables such as [\"TOKEN\"]";
const TOOLS: &str = "a list of tools such as [\"acme.mail\", \"acme.*\", \"acme.pdf#read\"]";
const TOOL: &str = "an id, the beginning of ids with `*`, or an id and an action with `#` between";
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
        self.within(file.take("sources"), |reader, table| {
            reader.sources(table, &mut policy.sources);
        });
        self.within(file.take("rank"), |reader, table| reader.rank(table, &mut policy.rank));
        self.within(file.take("tests"), |reader, table| {
            let known = OnInstall::ALL.map(|(_, name)| name);
            let word = table.take("on_install").and_then(|node| reader.one_of(&node, &known));
            let found = word.and_then(|word| OnInstall::ALL.iter().find(|(_, name)| *name == word));
            put(&mut policy.tests.on_install, found.map(|(one, _)| *one));
        });
        self.within(file.take("chains"), |reader, table| {
            put(&mut policy.chains.cache, table.take("cache").and_then(|node| reader.kept(&node)));
            let flows = table.take("flows").and_then(|node| reader.document.flag(&node));
            put(&mut policy.chains.flows, flows);
        });
        self.within(file.take("agents"), |reader, table| reader.agents(table, &mut policy.agents));
        let (packages, profiles) = (file.take("package"), file.take("profile"));
        self.document.end(file);
        let wanted = "a table for each package, such as [package.\"mcpkg:acme.mail\"]";
        let packages = packages.and_then(|node| self.document.table(&node, wanted));
        let of_profiles = "a table for each profile, such as [profile.coding]";
        let profiles = profiles.and_then(|node| self.document.table(&node, of_profiles));
        for (name, key, node) in profiles.into_iter().flat_map(Table::take_all) {
            if let Err(wrong) = check_profile(name) {
                self.document.wrong_key(key, &node, wrong);
            }
            let mut profile = Profile::default();
            self.within_one(&node, of_profiles, |reader, table| {
                for (name, all) in [("tools", &mut profile.tools), ("pinned", &mut profile.pinned)]
                {
                    put(
                        all,
                        table.take(name).and_then(|node| reader.each(&node, TOOLS, Self::which)),
                    );
                }
            });
            policy.profiles.insert(name.to_owned(), profile);
        }
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
        let then = table.take("on_violation").and_then(|node| self.on_violation(&node));
        put(&mut rules.on_violation, then);
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

    fn sources(&mut self, table: &mut Table<'t>, rules: &mut SourceRules) {
        const INDEX: &str = "an address such as \"https://packages.example.com/simple\"";
        const INDEXES: &str =
            "a list of addresses such as [\"https://packages.example.com/simple\"]";
        const PACKAGES: &str = "a list of packages such as [\"pip:acme\", \"npm:@acme/tool\"]";
        const PACKAGE: &str = "a package such as \"npm:@acme/tool\"";
        let pip = table.take("pip").map(|node| self.texts(&node, INDEXES, INDEX));
        put(&mut rules.pip, pip);
        let mut text = |reader: &mut Self, key: &'static str, wanted: &'static str| {
            table.take(key).and_then(|node| reader.document.text(&node, wanted)).map(str::to_owned)
        };
        rules.npm = text(self, "npm", INDEX);
        rules.images = text(self, "images", "an address such as \"https://images.example.com\"");
        rules.certificates = text(self, "certificates", "the path of a file of certificates");
        let hosts = table.take("hosts").map(|node| self.texts(&node, HOSTS, HOST));
        put(&mut rules.hosts, hosts);
        let scripts = table.take("run_scripts").map(|node| self.texts(&node, PACKAGES, PACKAGE));
        put(&mut rules.run_scripts, scripts);
    }

    fn rank(&mut self, table: &mut Table<'t>, rules: &mut RankRules) {
        let weights = &mut rules.weights;
        for (name, weight) in [
            ("correctness", &mut weights.correctness),
            ("latency", &mut weights.latency),
            ("cost", &mut weights.cost),
            ("safety", &mut weights.safety),
            ("resilience", &mut weights.resilience),
        ] {
            put(weight, table.take(name).and_then(|node| self.document.part(&node)));
        }
        rules.max_latency_ms = table.take("max_latency").and_then(|node| self.milliseconds(&node));
        for (name, cents) in [
            ("max_cents_per_month", &mut rules.max_cents_per_month),
            ("max_cents_per_call", &mut rules.max_cents_per_call),
        ] {
            *cents = table.take(name).and_then(|node| self.document.number(&node, COUNT));
        }
        for (name, least) in
            [("min_correctness", &mut rules.min_correctness), ("min_safety", &mut rules.min_safety)]
        {
            *least = table.take(name).and_then(|node| self.document.part(&node));
        }
    }

    fn agents(&mut self, table: &mut Table<'t>, rules: &mut AgentRules) {
        put(
            &mut rules.tools,
            table.take("tools").and_then(|node| self.document.number(&node, COUNT)),
        );
        let pinned = table.take("pinned").and_then(|node| self.each(&node, TOOLS, Self::which));
        put(&mut rules.pinned, pinned);
        let known = AgentInstall::ALL.map(|(_, name)| name);
        let word = table.take("install").and_then(|node| self.one_of(&node, &known));
        let found = word.and_then(|word| AgentInstall::ALL.iter().find(|(_, name)| *name == word));
        put(&mut rules.install, found.map(|(one, _)| *one));
        let asked = table.take("ask_in_client").and_then(|node| self.document.flag(&node));
        put(&mut rules.ask_in_client, asked);
    }

    fn which(&mut self, node: &Node<'t>) -> Option<Which> {
        let text = self.document.text(node, TOOL)?;
        let which = Which::parse(text);
        if which.is_none() {
            self.document.wrong(node, format!("`{text}` names no tool; write {TOOL}"));
        }
        which
    }

    fn package(&mut self, table: &mut Table<'t>, rules: &mut PackageRules) {
        rules.allow = table.take("allow").and_then(|node| self.document.flag(&node));
        put(&mut rules.locked, table.take("locked").and_then(|node| self.document.flag(&node)));
        rules.level = table.take("level").and_then(|node| self.level(&node));
        rules.timeout_ms = table.take("timeout").and_then(|node| self.milliseconds(&node));
        rules.memory = table.take("memory").and_then(|node| self.memory(&node));
        let cents = table.take("cents_per_call");
        put(&mut rules.cents_per_call, cents.and_then(|node| self.document.number(&node, COUNT)));
        let implementation = table.take("implementation");
        rules.implementation = implementation
            .and_then(|node| self.document.text(&node, "the id of an implementation"))
            .map(str::to_owned);
        rules.approval = table.take("approval").and_then(|node| self.rule(&node));
        rules.on_violation = table.take("on_violation").and_then(|node| self.on_violation(&node));
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
}

#[cfg(test)]
mod tests;
