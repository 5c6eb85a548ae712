//! What an implementation says that it needs of a machine: a runtime and its version, and what its `requirements` name.

use manifest::model::{Entry, Implementation, Json};
use semver::{Version, VersionReq};
use serde_json::Value;

/// What an implementation needs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// Programs, each with the versions that do.
    pub(super) runtimes: Vec<Runtime>,
    /// Packages of its language.
    pub(super) packages: Vec<Wanted>,
    /// Programs that it starts.
    pub(super) commands: Vec<String>,
    /// Whether it computes on a graphics card.
    pub(super) gpu: bool,
    /// How much memory, in MiB.
    pub(super) memory: Option<u64>,
    /// How many processors.
    pub(super) cores: Option<u64>,
    /// Where it runs, if that can only be elsewhere.
    pub(super) elsewhere: Option<&'static str>,
    /// What nobody here can look at, as it is written.
    pub(super) unknown: Vec<String>,
}

/// A runtime, and the versions of it that do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Runtime {
    pub(super) kind: RuntimeKind,
    pub(super) versions: VersionReq,
}

/// What runs something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuntimeKind {
    Node,
    Python,
    Dotnet,
    /// A program that is called so.
    Other(String),
}

/// A package of a language, and the versions of it that do, as that language writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) versions: String,
}

/// What a language is to those who look for its packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Node,
}

impl RuntimeKind {
    fn named(name: &str) -> Self {
        match name {
            "node" | "nodejs" | "node.js" => Self::Node,
            "python" | "cpython" | "py" => Self::Python,
            "net" | "dotnet" | "netcoreapp" | "netcore" | ".net" => Self::Dotnet,
            "jvm" | "jre" | "jdk" | "openjdk" => Self::Other("java".to_owned()),
            "golang" => Self::Other("go".to_owned()),
            other => Self::Other(other.to_owned()),
        }
    }

    /// What people call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Node => "Node",
            Self::Python => "Python",
            Self::Dotnet => ".NET",
            Self::Other(name) => name,
        }
    }

    /// The programs that may be it, the likeliest first.
    pub(super) fn programs(&self) -> Vec<String> {
        let names: &[&str] = match self {
            Self::Node => &["node", "nodejs"],
            Self::Python => &["python3", "python"],
            Self::Dotnet => &["dotnet"],
            Self::Other(name) => &[name],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Which runtime a program is, by its name: `python3.11` is one of Python.
    pub(super) fn of_program(program: &str) -> Option<Self> {
        let bare = program.trim_end_matches(|one: char| one.is_ascii_digit() || one == '.');
        match Self::named(bare) {
            Self::Other(_) => None,
            known => Some(known),
        }
    }
}

/// How many runtimes, programs and packages are looked for: a stranger says how many there are.
const MOST: usize = 32;

/// Runtimes that say nothing of what is needed: the program is all there is, or the system is.
const NOTHING: [&str; 8] = ["native", "binary", "exe", "cli", "shell", "sh", "container", "docker"];

impl Needs {
    /// What an implementation of an mcpkg or a bundle says.
    pub(super) fn of(one: &Implementation) -> Self {
        let mut needs = Self::default();
        if let Some(runtime) = &one.runtime {
            needs.add_runtime(runtime);
        }
        if let Some(Value::Object(requirements)) = one.requirements.as_ref().map(Json::value) {
            let language = Language::of_implementation(one);
            for (key, value) in &requirements {
                needs.add(key, value, language);
            }
        }
        needs.bound();
        needs
    }

    /// Leaves what is more than anybody looks for.
    fn bound(&mut self) {
        let lengths = [self.runtimes.len(), self.packages.len(), self.commands.len()];
        if lengths.iter().any(|length| *length > MOST) {
            self.unknown.push(format!("more than {MOST} requirements"));
        }
        self.runtimes.truncate(MOST);
        self.packages.truncate(MOST);
        self.commands.truncate(MOST);
        self.unknown.truncate(MOST);
    }

    /// The language of its runtime.
    fn language(&self) -> Option<Language> {
        self.runtimes.iter().find_map(|one| Language::of(&one.kind))
    }

    fn add_runtime(&mut self, text: &str) {
        let text = text.trim().to_ascii_lowercase();
        let end = text.find(|one: char| one.is_ascii_digit()).unwrap_or(text.len());
        let (name, version) = text.split_at(end);
        let name = name.trim_end_matches(|one: char| !one.is_ascii_alphabetic());
        if matches!(name, "browser" | "web" | "chrome" | "firefox") {
            self.elsewhere = Some("in a browser");
        } else if !NOTHING.contains(&name) && !name.is_empty() {
            let kind = RuntimeKind::named(name);
            if matches!(&kind, RuntimeKind::Other(name) if !is_word(name)) {
                return self.unknown.push(format!("runtime {text}"));
            }
            match of_runtime(&kind, version) {
                Some(versions) => self.runtimes.push(Runtime { kind, versions }),
                None => self.unknown.push(format!("runtime {text}")),
            }
        }
    }

    fn add(&mut self, key: &str, value: &Value, language: Option<Language>) {
        let lower = key.to_ascii_lowercase();
        let is_known = match lower.as_str() {
            "packages" | "dependencies" => self.add_packages(value, language),
            "commands" | "programs" => {
                let names = texts(value);
                let is_list = names.iter().all(|name| is_word(name)) && !names.is_empty();
                self.commands.extend(names.into_iter().filter(|_| is_list));
                is_list
            }
            "gpu" => {
                self.gpu |= !matches!(value, Value::Bool(false) | Value::Null);
                true
            }
            "minmemorymb" | "minmemorymib" => {
                self.memory = value.as_u64();
                self.memory.is_some()
            }
            "mincores" | "mincpus" => {
                self.cores = value.as_u64();
                self.cores.is_some()
            }
            "runtimes" | "engines" => self.add_ranges(value),
            // Which clients show it, and what is told of platforms elsewhere.
            "platforms" | "claude_desktop" => true,
            _ => self.add_version(&lower, value),
        };
        if !is_known {
            self.unknown.push(key.to_owned());
        }
    }

    /// `minNodeVersion`, `maxPythonVersion`, `nodeVersion`.
    fn add_version(&mut self, key: &str, value: &Value) -> bool {
        let (Some(name), Some(text)) = (key.strip_suffix("version"), value.as_str()) else {
            return false;
        };
        let (name, versions) = match (name.strip_prefix("min"), name.strip_prefix("max")) {
            (Some(name), _) => (name, padded(text).map(|text| format!(">={text}"))),
            // `18` is every 18.
            (_, Some(name)) => (name, Some(format!("<={}", text.trim().trim_start_matches('v')))),
            (None, None) => (name, Some(text.to_owned())),
        };
        self.add_range(name.trim_matches(['_', '-']), versions.as_deref())
    }

    /// Ranges by the names of runtimes.
    fn add_ranges(&mut self, value: &Value) -> bool {
        let all = value.as_object();
        all.is_some_and(|all| {
            let each = all.iter().map(|(name, range)| self.add_range(name, range.as_str()));
            each.collect::<Vec<_>>().into_iter().all(|is_known| is_known)
        })
    }

    fn add_range(&mut self, name: &str, range: Option<&str>) -> bool {
        let name = name.to_ascii_lowercase();
        let Some(versions) = range.and_then(range_of).filter(|_| is_word(&name)) else {
            return false;
        };
        self.runtimes.push(Runtime { kind: RuntimeKind::named(&name), versions });
        true
    }

    fn add_packages(&mut self, value: &Value, language: Option<Language>) -> bool {
        let Some(language) = language else { return false };
        let all = value.as_array();
        let all: Option<Vec<Wanted>> =
            all.and_then(|all| all.iter().map(|one| language.wanted(one.as_str()?)).collect());
        self.packages.extend(all.iter().flatten().cloned());
        all.is_some()
    }
}

impl Language {
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "python" => Some(Self::Python),
            "javascript" | "typescript" | "js" | "ts" | "node" => Some(Self::Node),
            _ => None,
        }
    }

    pub(super) fn of(kind: &RuntimeKind) -> Option<Self> {
        match kind {
            RuntimeKind::Python => Some(Self::Python),
            RuntimeKind::Node => Some(Self::Node),
            RuntimeKind::Dotnet | RuntimeKind::Other(_) => None,
        }
    }

    /// The language whose packages an implementation names.
    pub(super) fn of_implementation(one: &Implementation) -> Option<Self> {
        let named = one.language.as_deref().and_then(Self::named);
        let by_runtime = || {
            let mut needs = Needs::default();
            needs.add_runtime(one.runtime.as_deref().unwrap_or_default());
            needs.language()
        };
        named.or_else(by_runtime).or_else(|| of_command(one))
    }

    /// A package as its language writes it: `PyMuPDF>=1.23.0`, `left-pad@^1.3`.
    fn wanted(self, text: &str) -> Option<Wanted> {
        let text = text.trim();
        let (name, versions) = match self {
            Self::Python => {
                // What a marker says of other systems is for whoever installs it.
                let text = text.split(';').next().unwrap_or(text);
                let end = text.find(['=', '<', '>', '!', '~', ' ', '[', '(']).unwrap_or(text.len());
                let (name, rest) = text.split_at(end);
                let rest = match rest.split_once(']') {
                    Some((_, versions)) if rest.starts_with('[') => versions,
                    _ => rest,
                };
                (name, rest.trim().trim_start_matches('(').trim_end_matches(')').trim())
            }
            // A name may begin with it.
            Self::Node => match text.char_indices().skip(1).find(|(_, one)| *one == '@') {
                Some((at, _)) => (&text[..at], &text[at + 1..]),
                None => (text, ""),
            },
        };
        let wanted = Wanted { name: name.to_owned(), versions: versions.to_owned() };
        self.is_name(name).then_some(wanted)
    }

    fn is_name(self, name: &str) -> bool {
        let is_part = |part: &str| {
            let inner = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
            !part.is_empty()
                && part.len() <= 128
                && !part.starts_with('.')
                && part.chars().all(inner)
        };
        match (self, name.strip_prefix('@').and_then(|rest| rest.split_once('/'))) {
            (Self::Node, Some((scope, name))) => is_part(scope) && is_part(name),
            _ => is_part(name),
        }
    }
}

/// The language of what a command starts.
fn of_command(one: &Implementation) -> Option<Language> {
    let (Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. }) = &one.entry else { return None };
    Language::of(&RuntimeKind::of_program(argv.first()?)?)
}

/// Which versions a runtime with a version means: Python and .NET within the same major one, others from there on.
fn of_runtime(kind: &RuntimeKind, version: &str) -> Option<VersionReq> {
    if version.is_empty() {
        return Some(VersionReq::STAR);
    }
    let version = version.trim_end_matches(".x").trim_end_matches(['+', ' ']);
    let least = padded(version)?;
    let major: u64 = version.split('.').next()?.parse().ok()?;
    let range = match kind {
        RuntimeKind::Python | RuntimeKind::Dotnet => {
            format!(">={least}, <{}", major.checked_add(1)?)
        }
        RuntimeKind::Node | RuntimeKind::Other(_) => format!(">={least}"),
    };
    VersionReq::parse(&range).ok()
}

/// A range as npm and others write one: with spaces where commas are meant. One with alternatives is not read.
fn range_of(text: &str) -> Option<VersionReq> {
    let text = text.trim();
    if text.len() > 100 {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        match parts.last_mut() {
            // An operator that stands alone.
            Some(last) if last.chars().all(|one| "<>=~^".contains(one)) => last.push_str(word),
            _ => parts.push(word.to_owned()),
        }
    }
    VersionReq::parse(&parts.join(", ")).ok()
}

/// The version in a text, with three numbers.
fn padded(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let is_plain = text.chars().all(|one| one.is_ascii_digit() || one == '.');
    if is_plain { version_in(text) } else { Version::parse(text).ok() }
}

/// The first version in what a program says: `Python 3.11.2`, `v20.1.0`, `openjdk 17.0.8.1 2023-08-24`.
pub(super) fn version_in(said: &str) -> Option<Version> {
    let is_digit = |one: char| one.is_ascii_digit();
    let words = said.split(|one: char| one.is_whitespace() || "\"',()".contains(one));
    words.map(|word| word.strip_prefix('v').unwrap_or(word)).find_map(|word| {
        let end = word.find(|one: char| !is_digit(one) && one != '.').unwrap_or(word.len());
        let mut numbers = word[..end].split('.').map(str::parse::<u64>);
        let first = numbers.next()?.ok()?;
        let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
        Some(Version::new(first, next(), next()))
    })
}

/// The texts of a list, or one alone.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => {
            let texts: Option<Vec<_>> =
                all.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            texts.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Whether a text can be the name of a program, and nothing else.
fn is_word(name: &str) -> bool {
    let inner = |one: char| one.is_ascii_alphanumeric() || "._+-".contains(one);
    !name.is_empty() && name.len() <= 64 && !name.starts_with(['-', '.']) && name.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use manifest::document::{Options, read};
    use serde_json::json;

    use super::*;

    fn needs(implementation: &Value) -> Needs {
        let mut implementation = implementation.clone();
        let all = implementation.as_object_mut().unwrap();
        all.entry("id").or_insert_with(|| "one".into());
        all.entry("endpoint").or_insert_with(|| json!({"type": "local", "command": "./run"}));
        let manifest = json!({
            "toolId": "demo.two.ways", "name": "Two", "version": "1.0.0", "description": "d",
            "capabilities": ["demo"], "implementations": [implementation],
            "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        });
        let read = read(manifest.to_string().as_bytes(), &Options::default());
        let (_, packages) = read.unwrap_or_else(|report| panic!("{:?}", report.findings));
        Needs::of(&packages[0].implementations[0])
    }

    fn runtime(text: &str) -> String {
        let needs = needs(&json!({"runtime": text}));
        let told = needs.runtimes.iter().map(|one| format!("{} {}", one.kind.name(), one.versions));
        let told: Vec<_> = told.chain(needs.unknown.iter().cloned()).collect();
        told.join("; ")
    }

    #[test]
    fn a_runtime_names_a_program_and_perhaps_its_versions() {
        for (written, read) in [
            ("node", "Node *"),
            ("node18", "Node >=18.0.0"),
            ("Node.js >= 20.1", "Node >=20.1.0"),
            ("nodejs18.x", "Node >=18.0.0"),
            ("python3.11", "Python >=3.11.0, <4"),
            ("python", "Python *"),
            ("net8.0", ".NET >=8.0.0, <9"),
            ("java17", "java >=17.0.0"),
            ("deno", "deno *"),
            ("native", ""),
            ("wasm32/wasi", "runtime wasm32/wasi"),
        ] {
            assert_eq!(runtime(written), read, "{written}");
        }
        assert_eq!(needs(&json!({"runtime": "browser"})).elsewhere, Some("in a browser"));
    }

    #[test]
    fn requirements_that_are_understood_are_read_and_others_are_named() {
        let found = needs(&json!({
            "language": "python", "runtime": "python3.11",
            "requirements": {
                "minNodeVersion": "18.0.0", "maxPythonVersion": "3.13",
                "packages": ["PyMuPDF>=1.23.0", "requests[socks] (>=2,<3)", "numpy; python_version<'3'"],
                "commands": ["pdftotext"], "gpu": true, "minMemoryMb": 512, "minCores": 2,
                "engines": {"node": ">=16.0.0 <23"}, "minFlux": "1.21",
            },
        }));
        let runtimes: Vec<_> = found
            .runtimes
            .iter()
            .map(|one| format!("{} {}", one.kind.name(), one.versions))
            .collect();
        assert_eq!(
            runtimes,
            ["Python >=3.11.0, <4", "Node >=18.0.0", "Python <=3.13", "Node >=16.0.0, <23"]
        );
        let packages: Vec<_> =
            found.packages.iter().map(|one| (one.name.as_str(), one.versions.as_str())).collect();
        assert_eq!(packages, [("PyMuPDF", ">=1.23.0"), ("requests", ">=2,<3"), ("numpy", "")]);
        assert_eq!(found.commands, ["pdftotext"]);
        assert_eq!((found.gpu, found.memory, found.cores), (true, Some(512), Some(2)));
        assert_eq!(found.unknown, ["minFlux"]);
    }

    #[test]
    fn packages_are_those_of_the_language() {
        let packages = |implementation: Value| {
            let found = needs(&implementation);
            let all = found.packages.into_iter().map(|one| (one.name, one.versions));
            (all.collect::<Vec<_>>(), found.unknown)
        };
        let named = |name: &str, versions: &str| (name.to_owned(), versions.to_owned());
        let wanted = json!({"packages": ["@scope/kit@^2.1", "left-pad"]});
        let node = json!({"language": "typescript", "requirements": wanted});
        assert_eq!(packages(node).0, [named("@scope/kit", "^2.1"), named("left-pad", "")]);
        let command = json!({"type": "local", "command": "python3.12 ./run.py"});
        let python = json!({"endpoint": command, "requirements": {"packages": ["attrs>=23"]}});
        assert_eq!(packages(python).0, [named("attrs", ">=23")]);
        // Nobody knows whose packages these are, or what that one is.
        for odd in [
            json!({"requirements": {"packages": ["left-pad"]}}),
            json!({"language": "python", "requirements": {"packages": ["../../x"]}}),
        ] {
            assert_eq!(packages(odd), (Vec::new(), vec!["packages".to_owned()]));
        }
    }

    #[test]
    fn no_stranger_has_this_machine_look_for_more_than_a_few() {
        let many: serde_json::Map<_, _> =
            (0..200).map(|at| (format!("min{at}kitVersion"), json!("1.0"))).collect();
        let found = needs(&json!({"requirements": many}));
        assert_eq!(found.runtimes.len(), MOST);
        assert_eq!(found.unknown, ["more than 32 requirements"]);
    }

    #[test]
    fn a_program_says_its_version_in_its_own_way() {
        for (said, version) in [
            ("Python 3.11.2", Some("3.11.2")),
            ("v20.1.0\n", Some("20.1.0")),
            ("openjdk 17.0.8.1 2023-08-24", Some("17.0.8")),
            ("openjdk version \"1.8.0_392\"", Some("1.8.0")),
            ("Python 3.13.0rc1", Some("3.13.0")),
            ("git version 2.39.5", Some("2.39.5")),
            ("go version go1.22", None),
            ("", None),
            ("none", None),
        ] {
            assert_eq!(version_in(said).map(|one| one.to_string()).as_deref(), version, "{said}");
        }
    }
}
