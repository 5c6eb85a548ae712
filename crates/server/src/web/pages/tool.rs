//! The page of a tool, and of each version of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use manifest::model::{Action, Json, OutputFormat, Package, Scope, Step};
use registry::{Channel, Describe, Provenance, State as Standing, Yank, identity};
use search::{Facet, Query};

use super::chosen::{Chosen, shown};
use super::date::{Moment, bytes};
use super::find::{Item, Value, items, tagged};
use super::frame::{Frame, page};
use super::how::{Way, ways};
use super::inert::short;
use super::inside::Inside;
use super::markdown::REL;
use super::schema::{Table, table};
use super::tested::{Tested, tested};
use super::words::{Fact, Need, Weight, asks, duration, effect, facts, needs};
use super::{Pages, link};
use crate::settings::Reading;
use crate::store::versions::{FindError, Known, Which};
use crate::store::{Store, StoreError};
use crate::web::base;
use crate::web::caller;
use crate::web::refused::Refused;
use crate::web::text::{Parameters, decode};

/// How many versions are listed before a click.
const FEW: usize = 6;
/// How many chains that use a tool are listed.
const DEPENDENTS: usize = 12;
/// How many of the tools that a chain calls are looked up.
const LOOKED_UP: usize = 64;
/// The longest schema, in bytes, that is shown as it was written.
const RAW: usize = 64 << 10;

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    rel: &'static str,
    /// What people call it.
    heading: String,
    id: String,
    describe: Describe,
    /// More than the summary.
    about: Option<String>,
    kind: String,
    homepage: Option<String>,
    namespace: Value,
    provider: Option<Value>,
    tags: Vec<Value>,
    published: Option<Moment>,
    size: String,
    yanked: Option<Yank>,
    /// Whether it is for those who try things first.
    is_beta: bool,
    /// Where it was built, as an issuer has sworn: what, and which.
    built: Vec<(&'static str, String)>,
    /// Where the highest version is, when this is another.
    latest: Option<Value>,
    is_permanent: bool,
    permalink: String,
    api: String,
    facts: Vec<Fact>,
    scopes: Vec<Scope>,
    needs: Vec<Need>,
    actions: Vec<Callable>,
    steps: Vec<Link>,
    /// Whether a tool that it calls was taken back for security.
    calls_danger: bool,
    /// None where it was taken back for security: nobody begins with that.
    ways: Vec<Way>,
    few: Vec<Row>,
    more: Vec<Row>,
    dependents: Vec<Item>,
    more_dependents: Option<String>,
    inside: Arc<Inside>,
    tested: Tested,
    keys: Vec<String>,
}

/// An action as it is shown.
struct Callable {
    name: String,
    summary: String,
    effect: &'static str,
    weight: Weight,
    asks: bool,
    idempotent: bool,
    timeout: Option<String>,
    input: Option<Shown>,
    output: Option<Shown>,
    format: Option<OutputFormat>,
    scopes: Vec<String>,
    examples: Vec<Example>,
}

/// A schema as a table, and as it was written.
struct Shown {
    table: Table,
    raw: String,
}

struct Example {
    about: String,
    input: String,
}

struct Link {
    name: String,
    tool: String,
    address: String,
    /// Why nobody is given the tool any more, where that is for security.
    gone: Option<Yank>,
}

/// A version in the list.
struct Row {
    version: String,
    address: String,
    date: Moment,
    is_here: bool,
    yanked: Option<Yank>,
    signature: String,
    is_beta: bool,
}

pub(super) async fn show(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Refused> {
    let (asked, version) = read_path(request.uri().path())?;
    // As programs may write it, too.
    let version = version.filter(|version| version != "latest");
    let store = &pages.registry.store;
    let missing = |error| missing(error, &asked, version.as_deref());
    let (id, namespace) = store.resolve(&asked).await.map_err(missing)?;
    let versions = store.versions(&id).await.map_err(missing)?;
    let channel = caller::channel(&Parameters::read(request.uri().query())?)?;
    // Only those who ask for beta versions are shown one.
    let mut offered = versions
        .versions
        .iter()
        .filter(|one| channel == Channel::Beta || one.channel == Standing::Stable);
    // Where every version was taken back, people are shown the highest, and told.
    let highest = offered.clone().find(|one| !one.yanked).or_else(|| offered.next());
    let highest = highest.map(|one| &one.version);
    let wanted = version.as_ref().or(highest).ok_or(FindError::NoVersion).map_err(missing)?;
    let known = store.find(&id, Which::Exactly(wanted)).await.map_err(missing)?;
    let describe: Describe = serde_json::from_slice(&known.describe)
        .map_err(|_| Refused::internal("what is known of the version cannot be read any more"))?;
    let inside =
        pages.inside.inside(&pages.registry, &known, &describe.name).await.map_err(missing)?;
    let latest = versions.latest.as_ref().filter(|latest| **latest != known.version);
    let latest = latest.map(|latest| plain_value(latest, link::tool(&id)));
    let mut few: Vec<Row> = versions
        .versions
        .iter()
        .map(|one| Row {
            address: link::version(&id, &one.version),
            date: Moment(one.published_at),
            is_here: one.version == known.version,
            yanked: one.yanked.then(|| Yank {
                reason: one.yank_reason.clone().unwrap_or_default(),
                security: one.yank_security,
            }),
            signature: one.signature.clone(),
            is_beta: one.channel == Standing::Beta,
            version: one.version.clone(),
        })
        .collect();
    let published = few.iter().find(|row| row.is_here).map(|row| row.date);
    let more = few.split_off(few.len().min(FEW));
    let origin = base::of(&pages.registry, &request)?;
    let reading = pages.registry.settings.reading;
    let view = View { known, describe, inside, namespace, origin, reading };
    let (dependents, more_dependents) = dependents(&pages, &view.describe.id);
    let steps = steps(store, view.inside.package.as_ref()).await?;
    let page_of = ToolPage {
        calls_danger: steps.iter().any(|step| step.gone.is_some()),
        steps,
        latest,
        few,
        more,
        published,
        is_permanent: version.is_some(),
        dependents,
        more_dependents,
        ..view.page()
    };
    Ok(page(request.headers(), &page_of))
}

/// What is known of a version, before it is laid out.
struct View {
    known: Known,
    describe: Describe,
    inside: Arc<Inside>,
    namespace: String,
    origin: String,
    reading: Reading,
}

impl View {
    fn page(self) -> ToolPage {
        let View { known, describe, inside, namespace, origin, reading } = self;
        let package = inside.package.as_ref();
        let id = describe.id.strip_prefix(identity::PREFIX).unwrap_or(&describe.id).to_owned();
        let heading = package.and_then(|package| package.name.as_deref()).unwrap_or(&id);
        let heading = short(heading, 120);
        let none = Chosen { page: 1, ..Chosen::default() };
        let about = describe.description.as_ref().filter(|about| **about != describe.summary);
        // Who calls themselves what they are called is told once.
        let provider = describe.provider.as_ref().filter(|name| **name != namespace);
        let keys = describe.signature.as_ref().map(|signature| signature.keys.clone());
        let reported = describe.tests.as_ref().and_then(|tests| tests.reported.as_ref());
        let count = package.map_or(0, |package| package.tests.len());
        let tested = tested(count, inside.files.as_ref(), reported, describe.provenance.as_ref());
        let is_dangerous = known.yanked.as_ref().is_some_and(|yank| yank.security);
        let ways =
            if is_dangerous { Vec::new() } else { ways(package, &describe, &origin, reading) };
        let kind = shown(Facet::Kind, describe.kind.as_deref().unwrap_or("tool"));
        ToolPage {
            frame: Frame::new(format!("{id} {}", describe.version), ""),
            rel: REL,
            heading,
            kind,
            homepage: describe.homepage.as_deref().and_then(link::outside).map(str::to_owned),
            provider: provider.map(|name| {
                plain_value(name, none.toggled(Facet::Provider, &name.trim().to_lowercase()))
            }),
            tags: tagged(&describe.tags, 24),
            published: None,
            size: bytes(known.size),
            yanked: known.yanked,
            is_beta: known.channel == Standing::Beta,
            built: describe.provenance.as_ref().map(built).unwrap_or_default(),
            latest: None,
            is_permanent: false,
            permalink: link::version(&describe.id, &describe.version),
            api: link::api(&describe.id, &describe.version),
            facts: package.map(facts).unwrap_or_default(),
            scopes: package.map(|package| package.scopes.clone()).unwrap_or_default(),
            needs: package.map(needs).unwrap_or_default(),
            actions: package.map(callables).unwrap_or_default(),
            steps: Vec::new(),
            calls_danger: false,
            ways,
            few: Vec::new(),
            more: Vec::new(),
            dependents: Vec::new(),
            more_dependents: None,
            keys: keys.unwrap_or_default(),
            namespace: plain_value(&namespace, link::namespace(&namespace)),
            inside,
            tested,
            about: about.map(|about| short(about, 8_000)),
            describe,
            id,
        }
    }
}

fn plain_value(name: &str, address: String) -> Value {
    Value { name: short(name, 80), address, count: String::new(), is_chosen: false }
}

/// Where a version was built, line by line.
fn built(sworn: &Provenance) -> Vec<(&'static str, String)> {
    let lines = [
        ("Built from", sworn.repository.as_ref()),
        ("At", sworn.reference.as_ref()),
        ("Commit", sworn.sha.as_ref()),
        ("By the workflow", sworn.workflow.as_ref()),
        ("As", Some(&sworn.subject)),
        ("Sworn by", Some(&sworn.issuer)),
    ];
    let said = lines.into_iter().filter_map(|(what, text)| Some((what, short(text?, 300))));
    said.filter(|(_, text)| !text.is_empty()).collect()
}

/// Which tool and which version: `/tools/ID` or `/tools/ID/versions/VERSION`; an id may have slashes.
fn read_path(path: &str) -> Result<(String, Option<String>), Refused> {
    let unknown = || Refused::unknown_path(path);
    let rest = path.strip_prefix("/tools/").ok_or_else(unknown)?;
    let segments: Vec<&str> = rest.split('/').collect();
    let (id, version) = match segments.as_slice() {
        [id @ .., "versions", version] if !id.is_empty() => (id, Some(decode(version)?)),
        id => (id, None),
    };
    if id.iter().any(|segment| segment.is_empty()) {
        return Err(unknown());
    }
    Ok((decode(&id.join("/"))?, version))
}

fn missing(error: FindError, asked: &str, version: Option<&str>) -> Refused {
    match error {
        FindError::NoPackage => Refused::no_tool(asked),
        FindError::NoVersion => Refused::no_version(asked, version),
        FindError::Store(error) => error.into(),
    }
}

/// The chains that call a tool, in their highest versions.
fn dependents(pages: &Pages, id: &str) -> (Vec<Item>, Option<String>) {
    let plain = id.strip_prefix(identity::PREFIX).unwrap_or(id);
    let Ok(query) = Query::new("").filter(Facet::Uses, plain) else { return (Vec::new(), None) };
    let answers = pages.registry.catalog.search(&query.page(0, DEPENDENTS));
    let left = answers.total.saturating_sub(DEPENDENTS);
    (items(&answers), (left > 0).then(|| format!("and {left} more")))
}

/// The steps of a chain, and of which tools it is known that they are a danger.
async fn steps(store: &Store, package: Option<&Package>) -> Result<Vec<Link>, StoreError> {
    let steps = package.iter().filter_map(|package| package.chain.as_ref());
    let steps: Vec<&Step> = steps.flat_map(|chain| &chain.steps).collect();
    let tools: BTreeSet<&str> = steps.iter().map(|step| step.tool.as_str()).collect();
    let mut gone = HashMap::new();
    for tool in tools.into_iter().take(LOOKED_UP) {
        let id = match store.resolve(tool).await {
            Ok((id, _)) => id,
            Err(FindError::NoPackage | FindError::NoVersion) => continue,
            Err(FindError::Store(error)) => return Err(error),
        };
        gone.insert(tool, store.gone_for_security(&id).await?);
    }
    let step = |step: &Step| Link {
        name: step.name.clone(),
        tool: step.tool.clone(),
        address: link::tool(&step.tool),
        gone: gone.get(step.tool.as_str()).cloned().flatten(),
    };
    Ok(steps.into_iter().map(step).collect())
}

fn callables(package: &Package) -> Vec<Callable> {
    package.actions.iter().map(callable).collect()
}

fn callable(action: &Action) -> Callable {
    let (effect, weight) = effect(action);
    let summary = action.summary.as_ref().or(action.description.as_ref());
    Callable {
        name: short(&action.name, 120),
        summary: short(summary.map_or("", String::as_str), 1_000),
        effect,
        weight,
        asks: asks(action),
        idempotent: action.idempotent == Some(true),
        timeout: action.timeout_ms.map(duration),
        input: action.input.as_ref().map(schema),
        output: action.output.as_ref().map(schema),
        format: action.output_format,
        scopes: action.scopes_used.clone(),
        examples: action
            .examples
            .iter()
            .take(5)
            .map(|example| Example {
                about: example.description.clone(),
                input: example.input.as_ref().map(pretty).unwrap_or_default(),
            })
            .collect(),
    }
}

fn schema(json: &Json) -> Shown {
    Shown { table: table(&json.value()), raw: pretty(json) }
}

fn pretty(json: &Json) -> String {
    let text = serde_json::to_string_pretty(&json.value()).unwrap_or_default();
    if text.len() <= RAW {
        return text;
    }
    let mut end = RAW;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_tool_and_maybe_a_version() {
        let version = Some("1.0.0+b".to_owned());
        for (path, tool, expected) in [
            ("acme.pdf", "acme.pdf", None),
            ("acme/pdf%3F", "acme/pdf?", None),
            ("acme.pdf/versions/1.0.0%2Bb", "acme.pdf", version.clone()),
            ("versions/1", "versions/1", None),
        ] {
            assert_eq!(read_path(&format!("/tools/{path}")).unwrap(), (tool.to_owned(), expected));
        }
        let odd = link::tool("tool:a/versions/1.0.0");
        assert_eq!(read_path(&odd).unwrap(), ("a/versions/1.0.0".to_owned(), None));
        for path in ["", "a//b", "a/", "%zz", "a/versions/%00"] {
            assert!(read_path(&format!("/tools/{path}")).is_err(), "{path}");
        }
    }
}
