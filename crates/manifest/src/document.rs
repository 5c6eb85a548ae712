//! From bytes to findings, and to packages when there are none.

use std::collections::HashSet;

use crate::dialect::rules::Judge;
use crate::dialect::{
    Dialect, Form, agentcli, capability, install_manifest, jumith, mcpb, mcpkg, recognise,
    server_json, skill, version_of,
};
use crate::finding::{Code, Finding, Findings, Severity};
use crate::json::{Node, Path, Pointer, Span, parse};
use crate::model::Package;
use crate::shape::{self, Shape, Structure, suggest};
use crate::{companion, index, meta, openapi};

/// The largest manifest, in bytes.
pub const MAX_MANIFEST: usize = 1024 * 1024;
/// The largest catalog, in bytes.
pub const MAX_CATALOG: usize = 16 * 1024 * 1024;
/// The largest well-known index, in bytes.
pub const MAX_INDEX: usize = 2 * 1024 * 1024;
/// The largest bundle, in bytes: the files may be in base64 and escaped.
pub const MAX_BUNDLE: usize = 512 * 1024 * 1024;

/// How many findings of one document are told.
const MAX_FINDINGS: usize = 2_000;

/// How much of a large file is looked at to see what kind it is.
const SKIM: usize = 64 * 1024;

/// How a document is to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// The dialect, when it is not to be recognised.
    pub dialect: Option<Dialect>,
    /// How closely to look.
    pub depth: Depth,
    /// The id of a document that has none of its own: a tools.json.
    pub fallback_id: Option<&'o str>,
    /// For a test: the manifest it belongs to.
    pub manifest: Option<&'o [u8]>,
    /// What kind of document it is, when that is known from where it stands.
    pub form: Option<Form>,
    /// The name of the folder it stands in, when that must be its own.
    pub folder: Option<&'o str>,
}

impl Options<'_> {
    /// The same, for a file that is known to be a test.
    pub fn for_test(mut self) -> Self {
        self.form = Some(Form::Test);
        self
    }
}

/// How closely to look at a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Its shape, as the published schema has it.
    Structure,
    /// Everything.
    #[default]
    Everything,
}

/// What was found out about a document.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its dialect; none when it fits none, or is a companion.
    pub dialect: Option<Dialect>,
    /// What kind of document it is; none when it fits no dialect.
    pub form: Option<Form>,
    /// The version of the dialect.
    pub version: Option<&'static str>,
    /// Its id and version, for a line about it.
    pub title: Option<String>,
    /// Everything that is wrong, in the order of the text.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether there is no error.
    pub fn is_valid(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn refused(finding: Finding) -> Self {
        Self { dialect: None, form: None, version: None, title: None, findings: vec![finding] }
    }
}

/// Finds everything that is wrong with a document.
pub fn check(bytes: &[u8], options: &Options<'_>) -> Report {
    match decode(bytes) {
        Ok(text) => examine(text, options).0,
        Err(finding) => Report::refused(*finding),
    }
}

/// Reads the packages of a document; what is wrong with it otherwise.
pub fn read(bytes: &[u8], options: &Options<'_>) -> Result<(Report, Vec<Package>), Report> {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(finding) => return Err(Report::refused(*finding)),
    };
    let (report, root) = examine(text, options);
    match (root, report.form) {
        (Some(root), Some(form)) if report.is_valid() => {
            let id = options.fallback_id.unwrap_or_default();
            let lowered = report.dialect.map(|dialect| lower(&root, text, dialect, form, id));
            Ok((report, lowered.unwrap_or_default()))
        }
        _ => Err(report),
    }
}

/// The largest file worth reading, judged from how it begins.
pub fn size_limit(beginning: &[u8]) -> usize {
    let keys = top_level_keys(&beginning[..beginning.len().min(SKIM)]);
    let has = |key: &[u8]| keys.contains(key);
    if has(b"manifest") || has(b"files") {
        MAX_BUNDLE
    } else if has(b"manifests") && has(b"publisher") {
        MAX_INDEX
    } else if has(b"capabilities") && !has(b"toolId") {
        MAX_CATALOG
    } else if [&b"openapi"[..], b"swagger", b"paths", b"components"].into_iter().any(has)
        && !has(b"toolId")
        && !has(b"manifest_version")
    {
        openapi::MAX_BYTES
    } else {
        MAX_MANIFEST
    }
}

fn decode(bytes: &[u8]) -> Result<&str, Box<Finding>> {
    let refuse = |code, at: usize, message: String| {
        let start = u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span { start, end: start.saturating_add(1) };
        Box::new(Finding::new(code, Pointer::root(), span, message))
    };
    if bytes.len() > MAX_MANIFEST {
        let limit = size_limit(bytes);
        if bytes.len() > limit {
            let message =
                format!("the file is larger than {limit} bytes, the most its kind may have");
            return Err(refuse(Code::TooLarge, 0, message));
        }
    }
    for (mark, name) in
        [(&b"\xEF\xBB\xBF"[..], "UTF-8"), (b"\xFF\xFE", "UTF-16"), (b"\xFE\xFF", "UTF-16")]
    {
        if bytes.starts_with(mark) {
            let message = format!("the file begins with a {name} byte order mark");
            let mut finding = refuse(Code::ByteOrderMark, 0, message);
            finding.help = Some("save it as UTF-8 without a byte order mark".into());
            return Err(finding);
        }
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let mut finding = refuse(Code::NotUtf8, at, format!("byte {at} is not UTF-8"));
        finding.help = Some("save the file as UTF-8".into());
        finding
    })
}

fn examine<'t>(text: &'t str, options: &Options<'_>) -> (Report, Option<Node<'t>>) {
    let is_skill = match options.dialect {
        Some(dialect) => dialect == Dialect::Skill,
        None => skill::is_skill(text),
    };
    let parsed = if is_skill { skill::parse(text) } else { parse(text) };
    let mut findings = Findings::default();
    findings.extend(
        parsed
            .faults
            .into_iter()
            .map(|fault| Finding::new(fault.code, fault.pointer, fault.span, fault.message)),
    );
    let Some(root) = parsed.root else {
        return (Report { findings: settle(findings), ..Report::refused(nothing()) }, None);
    };
    let recognised = match (options.dialect, recognise(&root)) {
        _ if is_skill => Some((Some(Dialect::Skill), Form::Manifest)),
        (None, recognised) => recognised,
        (Some(forced), Some((Some(dialect), form))) if forced == dialect => {
            Some((Some(dialect), form))
        }
        (Some(forced), _) => Some((Some(forced), forced_form(forced, &root))),
    };
    let recognised = match (options.form, recognised) {
        (
            Some(form @ (Form::Companion | Form::OpenApi | Form::Publisher | Form::Provenance)),
            _,
        ) => Some((None, form)),
        (Some(form), Some((dialect, _))) => Some((dialect, form)),
        (_, recognised) => recognised,
    };
    let Some((dialect, form)) = recognised else {
        let message = "the document fits none of the dialects";
        let finding =
            Finding::new(Code::UnknownDialect, Pointer::root(), root.span.first_byte(), message);
        findings.push(finding.help(format!(
            "looked for {}; `haft validate --dialect NAME` forces one",
            recognise_words()
        )));
        return (Report { findings: settle(findings), ..Report::refused(nothing()) }, Some(root));
    };
    if form == Form::OpenApi {
        openapi::check(&root, &mut findings);
        let version = openapi::Version::of(&root).map(openapi::Version::name);
        let (title, findings) = (Some(openapi::title_of(&root)), settle(findings));
        return (Report { dialect: None, form: Some(form), version, title, findings }, Some(root));
    }
    let version = dialect.and_then(|dialect| version_of(dialect, form, &root));
    match shape_of(dialect, form, &root) {
        Ok(shape) => {
            let Structure { findings: structural, schemas } = shape::check(shape, &root);
            findings.extend(structural.into_list().0);
            if options.depth == Depth::Everything {
                let mut judge = Judge::new(&mut findings, &schemas);
                check_rules(dialect, form, &root, options, &mut judge);
            }
        }
        Err(finding) => findings.push(*finding),
    }
    let title = title_of(dialect, form, &root, options);
    let findings = settle(findings);
    (Report { dialect, form: Some(form), version, title, findings }, Some(root))
}

/// What a document is that its author, or `--dialect`, says is of this dialect.
fn forced_form(dialect: Dialect, root: &Node<'_>) -> Form {
    let has = |key| root.get(key).is_some();
    match dialect {
        Dialect::Capability if has("capabilities") => Form::Catalog,
        Dialect::Jumith if has("files") || has("manifest") => Form::Bundle,
        _ => Form::Manifest,
    }
}

/// Puts findings in the order of the text, once each, and not more than can be read.
fn settle(findings: Findings) -> Vec<Finding> {
    let (mut findings, mut more) = findings.into_list();
    // A number that cannot be held has no value that could be too small or too large.
    let unread: HashSet<Span> = findings
        .iter()
        .filter(|finding| finding.code == Code::NumberOutOfRange)
        .map(|finding| finding.span)
        .collect();
    findings.retain(|finding| finding.code != Code::OutOfRange || !unread.contains(&finding.span));
    let order = |a: &Finding, b: &Finding| {
        (a.span, a.severity, &a.pointer, a.code).cmp(&(b.span, b.severity, &b.pointer, b.code))
    };
    findings.sort_by(order);
    findings.dedup();
    if findings.len() > MAX_FINDINGS {
        more += findings.len() - MAX_FINDINGS;
        // Errors are kept before warnings: the verdict must not change.
        findings.sort_by_key(|finding| finding.severity);
        findings.truncate(MAX_FINDINGS);
        findings.sort_by(order);
    }
    if more > 0
        && let Some(last) = findings.last().cloned()
    {
        let has_error = findings.iter().any(|finding| finding.severity == Severity::Error);
        let message = format!("and {more} more findings");
        let mut rest = Finding::new(Code::MoreFindings, Pointer::root(), last.span, message);
        rest.severity = if has_error { Severity::Error } else { Severity::Warning };
        findings.push(rest);
    }
    findings
}

fn recognise_words() -> &'static str {
    crate::dialect::LOOKED_FOR
}

/// A placeholder that every caller replaces.
fn nothing() -> Finding {
    Finding::new(Code::JsonSyntax, Pointer::root(), Span::default(), "")
}

fn shape_of(
    dialect: Option<Dialect>,
    form: Form,
    root: &Node<'_>,
) -> Result<&'static Shape, Box<Finding>> {
    Ok(match (dialect, form) {
        (None, Form::Publisher) => meta::publisher_shape(),
        (None, Form::Provenance) => meta::provenance_shape(),
        (None, _) => companion::shape(),
        (Some(Dialect::InstallManifest), Form::Index) => index::shape(),
        (Some(Dialect::InstallManifest), _) => install_manifest::shape(install_version(root)?),
        (Some(Dialect::Agentcli), _) => agentcli::shape(),
        (Some(Dialect::Mcpkg), Form::Test) => mcpkg::test_shape(),
        (Some(Dialect::Mcpkg), _) => mcpkg::shape(mcpkg::Version::of(root)),
        (Some(Dialect::Capability), Form::Catalog) => capability::catalog_shape(),
        (Some(Dialect::Capability), _) => capability::shape(),
        (Some(Dialect::Jumith), Form::Bundle) => jumith::bundle_shape(),
        (Some(Dialect::Jumith), _) => jumith::shape(),
        (Some(Dialect::Mcpb), _) => mcpb::shape(mcpb_version(root)?),
        (Some(Dialect::ServerJson), _) => server_json::shape(),
        (Some(Dialect::Skill), _) => skill::shape(),
    })
}

/// The version a manifest names; the newest when it names none, which is told as a missing field.
fn install_version(root: &Node<'_>) -> Result<install_manifest::Version, Box<Finding>> {
    use install_manifest::Version;
    let Some(named) = root.get("manifest_version") else { return Ok(Version::V0_4) };
    let Some(text) = named.as_text() else { return Ok(Version::V0_4) };
    Version::named(text).ok_or_else(|| {
        let names = Version::ALL.map(Version::name);
        let named = (text, named.span);
        Box::new(unknown_version(Dialect::InstallManifest, "manifest_version", named, &names))
    })
}

/// The version the manifest of a bundle names, under the key of today or the old one.
fn mcpb_version(root: &Node<'_>) -> Result<mcpb::Version, Box<Finding>> {
    use mcpb::Version;
    if let Some(version) = Version::of(root) {
        return Ok(version);
    }
    let named = mcpb::VERSION_KEYS.into_iter().find_map(|key| {
        let node = root.get(key)?;
        Some((key, node.as_text()?, node.span))
    });
    match named {
        Some((key, text, span)) => {
            let names = Version::ALL.map(Version::name);
            Err(Box::new(unknown_version(Dialect::Mcpb, key, (text, span), &names)))
        }
        None => Ok(Version::V0_4),
    }
}

fn unknown_version(
    dialect: Dialect,
    key: &str,
    (text, span): (&str, Span),
    names: &[&'static str],
) -> Finding {
    let message = format!("there is no {dialect} version `{}`", shape::clip(text));
    let near = suggest(text, names.iter().copied())
        .map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let help = format!("{near}known versions: {}", known.join(", "));
    let pointer = Pointer::root().key(key);
    Finding::new(Code::UnknownVersion, pointer, span, message).help(help)
}

fn check_rules(
    dialect: Option<Dialect>,
    form: Form,
    root: &Node<'_>,
    options: &Options<'_>,
    judge: &mut Judge<'_>,
) {
    match (dialect, form) {
        (None, _) | (Some(Dialect::InstallManifest), Form::Index) => {}
        (Some(Dialect::InstallManifest), _) => install_manifest::check_rules(root, judge),
        (Some(Dialect::Agentcli), _) => agentcli::check_rules(root, judge),
        (Some(Dialect::Mcpkg), Form::Test) => {
            let manifest = options
                .manifest
                .and_then(|bytes| decode(bytes).ok())
                .and_then(|text| parse(text).root);
            let schema = manifest.as_ref().and_then(|manifest| manifest.get("input_schema"));
            let sound = schema.filter(|schema| {
                crate::schema::check(schema, &Pointer::root(), &crate::schema::Budget::default())
                    .iter()
                    .all(|finding| finding.severity == Severity::Warning)
            });
            mcpkg::check_test_rules(root, sound, judge);
        }
        (Some(Dialect::Mcpkg), _) => mcpkg::check_rules(root, judge),
        (Some(Dialect::Capability), Form::Catalog) => capability::check_catalog_rules(root, judge),
        (Some(Dialect::Capability), _) => capability::check_rules(root, Path::ROOT, judge),
        (Some(Dialect::Jumith), Form::Bundle) => jumith::check_bundle_rules(root, judge),
        (Some(Dialect::Jumith), _) => jumith::check_rules(root, Path::ROOT, judge),
        (Some(Dialect::Mcpb), _) => mcpb::check_rules(root, judge),
        (Some(Dialect::ServerJson), _) => server_json::check_rules(root, judge),
        (Some(Dialect::Skill), _) => {
            if let Some(wrong) = options.folder.and_then(|folder| skill::check_folder(root, folder))
            {
                judge.push(wrong);
            }
        }
    }
}

fn title_of(
    dialect: Option<Dialect>,
    form: Form,
    root: &Node<'_>,
    options: &Options<'_>,
) -> Option<String> {
    let named = |node: &Node<'_>, id: &str, version: &str| {
        let id = node.text_at(id)?;
        Some(match node.text_at(version) {
            Some(version) => format!("{id} {version}"),
            None => id.to_owned(),
        })
    };
    let counted = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    match (dialect?, form) {
        (Dialect::InstallManifest, Form::Index) => {
            Some(counted(root.list_at("manifests").len(), "manifest", "manifests"))
        }
        (Dialect::InstallManifest, _) => named(root.get("tool")?, "id", "version"),
        (Dialect::Agentcli, _) => {
            let tools = counted(root.list_at("tools").len(), "tool", "tools");
            Some(options.fallback_id.map_or(tools.clone(), |id| format!("{id}, {tools}")))
        }
        (Dialect::Mcpkg, Form::Test) => root.text_at("name").map(str::to_owned),
        (Dialect::Mcpkg, _) => named(root, "toolId", "version"),
        (Dialect::Capability, Form::Catalog) => {
            Some(counted(root.list_at("capabilities").len(), "entry", "entries"))
        }
        (Dialect::Jumith, Form::Bundle) => named(root.get("manifest")?, "id", "version"),
        (Dialect::Capability | Dialect::Jumith, _) => named(root, "id", "version"),
        (Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill, _) => named(root, "name", "version"),
    }
}

fn lower(
    root: &Node<'_>,
    text: &str,
    dialect: Dialect,
    form: Form,
    fallback_id: &str,
) -> Vec<Package> {
    match (dialect, form) {
        (
            _,
            Form::Test
            | Form::Companion
            | Form::Index
            | Form::OpenApi
            | Form::Publisher
            | Form::Provenance,
        ) => Vec::new(),
        (Dialect::InstallManifest, _) => vec![install_manifest::lower::lower(root, text)],
        (Dialect::Agentcli, _) => vec![agentcli::lower::lower(root, text, fallback_id)],
        (Dialect::Mcpkg, _) => vec![mcpkg::lower::lower(root, text)],
        (Dialect::Capability, Form::Catalog) => root
            .list_at("capabilities")
            .iter()
            .map(|entry| capability::lower::lower(entry, text))
            .collect(),
        (Dialect::Capability, _) => vec![capability::lower::lower(root, text)],
        (Dialect::Jumith, Form::Bundle) => {
            jumith::lower::lower_bundle(root, text).into_iter().collect()
        }
        (Dialect::Jumith, _) => vec![jumith::lower::lower(root, text)],
        (Dialect::Mcpb, _) => vec![mcpb::lower::lower(root, text)],
        (Dialect::ServerJson, _) => vec![server_json::lower::lower(root, text)],
        (Dialect::Skill, _) => vec![skill::lower::lower(root, text)],
    }
}

/// The keys of the outermost object, as far as the bytes go; nothing is judged here.
fn top_level_keys(bytes: &[u8]) -> HashSet<&[u8]> {
    let mut keys = HashSet::new();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at + 1;
                at = start;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let end = at.min(bytes.len());
                let is_key = bytes.get(end + 1..).is_some_and(|rest| {
                    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
                });
                if depth == 1 && is_key {
                    keys.insert(&bytes[start..end]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}
