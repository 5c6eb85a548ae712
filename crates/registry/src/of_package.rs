//! What is said of a version, made from a package of any dialect.

use manifest::model::{Action, Entry, InputSource, Json, Package, SideEffects};

use crate::describe::{Describe, EntryPoint, Schemas};
use crate::identity;

/// The longest summary, in characters; a description that stands in for one is cut.
const SUMMARY: usize = 280;

impl Describe {
    /// What a package says about itself. Digests, size and signature are those of its file and not known here.
    pub fn of_package(package: &Package) -> Self {
        let publisher = package.publisher.as_ref().or(package.author.as_ref());
        Self {
            id: identity::id(package),
            name: identity::name(package),
            version: package.semver(),
            summary: summary(package),
            description: package.description.clone(),
            tags: package.tags.clone(),
            provider: publisher
                .and_then(|person| person.id.clone().or_else(|| person.name.clone())),
            entry: entry(package),
            schema: schemas(package),
            requires_approval: approval(&package.actions),
            required_secrets: secrets(package),
            uses_payment: package.uses_payment,
            sha256: None,
            files_sha256: None,
            size: None,
            dialect: Some(package.dialect.name().to_owned()),
            kind: Some(package.kind.name().to_owned()),
            homepage: package.homepage.clone(),
            license: package.license.clone(),
            signature: None,
            provenance: None,
            tests: None,
        }
    }

    /// What is said here of a package that the package does not say of itself, by the first name of that. A companion
    /// beside the manifest may ask for more secrets, which whoever describes it need not know.
    pub fn differs_from(&self, package: &Package) -> Option<&'static str> {
        let own = Self::of_package(package);
        let is_other = |said: &Option<String>, own: &Option<String>| {
            said.as_ref().is_some_and(|said| Some(said) != own.as_ref())
        };
        [
            ("id", self.id != own.id),
            ("name", self.name != own.name),
            ("version", self.version != own.version),
            ("dialect", is_other(&self.dialect, &own.dialect)),
            ("kind", is_other(&self.kind, &own.kind)),
            ("summary", self.summary != own.summary),
            ("description", self.description != own.description),
            ("entry", self.entry != own.entry),
            ("schema", self.schema != own.schema),
            ("tags", self.tags != own.tags),
            ("provider", self.provider != own.provider),
            (
                "secrets",
                self.required_secrets.iter().any(|one| !own.required_secrets.contains(one)),
            ),
            ("homepage", is_other(&self.homepage, &own.homepage)),
            ("licence", is_other(&self.license, &own.license)),
            ("requiresApproval", self.requires_approval != own.requires_approval),
            ("usesPayment", self.uses_payment != own.uses_payment),
        ]
        .into_iter()
        .find_map(|(name, is_other)| is_other.then_some(name))
    }
}

/// One line on what it does, which a registry must have: the nearest thing that the author wrote.
fn summary(package: &Package) -> String {
    let action = package.actions.first();
    let texts = [
        package.summary.as_deref(),
        package.description.as_deref(),
        action.and_then(|action| action.summary.as_deref()),
        action.and_then(|action| action.description.as_deref()),
        package.name.as_deref(),
    ];
    let first_line =
        |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(cut);
    let found = texts.into_iter().flatten().find_map(first_line);
    found.unwrap_or_else(|| package.id.clone())
}

fn cut(line: &str) -> String {
    if line.chars().count() <= SUMMARY {
        return line.to_owned();
    }
    line.chars().take(SUMMARY - 1).chain(['…']).collect()
}

/// What runs it. Only a module with a Tool object is told as `node`: a script that Node happens to run is no
/// such thing.
fn entry(package: &Package) -> EntryPoint {
    let other =
        |runtime: &str| EntryPoint { runtime: runtime.to_owned(), main: None, export: None };
    if package.chain.is_some() {
        return other("chain");
    }
    match package.implementations.first().map(|implementation| &implementation.entry) {
        Some(Entry::NodeModule { main, export }) => EntryPoint {
            runtime: EntryPoint::NODE.to_owned(),
            main: Some(main.clone()),
            export: export.clone(),
        },
        Some(Entry::Argv { .. }) => other("process"),
        Some(Entry::McpStdio { .. }) => other("mcp-stdio"),
        Some(Entry::McpHttp { .. }) => other("mcp-http"),
        Some(Entry::McpTool { .. } | Entry::KnownServer { .. }) => other("mcp"),
        Some(Entry::Http { .. }) => other("http"),
        Some(Entry::PythonCallable { .. }) => other("python"),
        Some(Entry::A2a { .. }) => other("a2a"),
        Some(Entry::Undeclared) | None => other("undeclared"),
    }
}

/// The schemas, where there is one action they can belong to.
fn schemas(package: &Package) -> Option<Schemas> {
    let [action] = package.actions.as_slice() else { return None };
    let value = |schema: &Option<Json>| schema.as_ref().map(Json::value);
    let schemas = Schemas { input: value(&action.input), output: value(&action.output) };
    (schemas != Schemas::default()).then_some(schemas)
}

/// Whether calls need the owner's word: one action that does speaks for all.
fn approval(actions: &[Action]) -> Option<bool> {
    let of_action = |action: &Action| match action.side_effects {
        Some(SideEffects::Destructive) => Some(true),
        _ => action.requires_approval,
    };
    actions.iter().filter_map(of_action).max()
}

fn secrets(package: &Package) -> Vec<String> {
    let is_asked =
        |input: &&manifest::model::Input| input.secret && input.source == InputSource::Owner;
    package.inputs.iter().filter(is_asked).map(|input| input.name.clone()).collect()
}
