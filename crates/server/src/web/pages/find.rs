//! The pages that tools are found on: home, results, suggestions.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use registry::{Found, identity};
use search::{Facet, LastWord, Query, Snapshot};

use super::chosen::{Chosen, FACETS, shown};
use super::date::grouped;
use super::frame::{Frame, page};
use super::inert::short;
use super::{Pages, link};
use crate::catalog::{Answers, Catalog};
use crate::kept::Counts;
use crate::service::Registry;
use crate::web::refused::Refused;

/// How many suggestions are made while somebody types.
const SUGGESTIONS: usize = 7;
/// How many values of a facet are offered, and how many of them before a click.
const VALUES: usize = 30;
const FEW: usize = 8;
/// How many tags a tool is listed with.
const TAGS: usize = 4;
/// The most letters of a tag or another value.
pub(super) const SHORT: usize = 48;
/// How many recent tools and tags the first page has.
const RECENT: usize = 6;
const CLOUD: usize = 18;

/// A tool in a list.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) address: String,
    /// The id without the prefix.
    pub(super) id: String,
    pub(super) version: String,
    pub(super) summary: String,
    pub(super) tags: Vec<Value>,
    pub(super) asks: bool,
    pub(super) secrets: usize,
    pub(super) pays: bool,
}

/// A value that can be chosen.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) count: String,
    pub(super) is_chosen: bool,
}

/// The values of one facet.
#[derive(Debug)]
struct Group {
    name: &'static str,
    few: Vec<Value>,
    more: Vec<Value>,
}

/// What the first page tells of all tools; counted again only after something has changed.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<Option<(Weak<Snapshot>, Arc<Overview>)>>);

#[derive(Debug)]
struct Overview {
    total: usize,
    namespaces: usize,
    tags: Vec<Value>,
    kinds: Vec<Value>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    frame: Frame,
    overview: Arc<Overview>,
    total: String,
    recent: Vec<Item>,
}

#[derive(Template)]
#[template(path = "results.html")]
struct Results {
    frame: Frame,
    chosen: Chosen,
    total: String,
    is_one: bool,
    is_empty: bool,
    items: Vec<Item>,
    groups: Vec<Group>,
    filters: Vec<Value>,
    hidden: Vec<(&'static str, String)>,
    unfiltered: String,
    paging: Option<Paging>,
}

/// Where the pages beside this one are.
#[derive(Debug)]
pub(super) struct Paging {
    pub(super) page: usize,
    pub(super) pages: usize,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Paging {
    /// None where there is one page.
    pub(super) fn new(
        page: usize,
        pages: usize,
        address: impl Fn(usize) -> String,
    ) -> Option<Self> {
        (pages > 1).then(|| Self {
            page,
            pages,
            before: (page > 1).then(|| address(page - 1)),
            after: (page < pages).then(|| address(page + 1)),
        })
    }
}

#[derive(Template)]
#[template(path = "suggest.html")]
struct Suggest {
    items: Vec<Item>,
    total: String,
    all: String,
    words: String,
}

pub(super) async fn home(
    State(pages): State<Arc<Pages>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let overview = pages.counted.overview(&pages.registry.catalog);
    let recent = items(&pages.registry.catalog.recent(RECENT));
    let total = grouped(overview.total);
    Ok(page(&headers, &Home { frame: Frame::new("", ""), overview, total, recent }))
}

pub(super) async fn results(
    State(pages): State<Arc<Pages>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let mut chosen = Chosen::read(query.as_deref())?;
    let catalog = &pages.registry.catalog;
    let mut answers = catalog.search(&chosen.query(LastWord::Whole)?);
    let count = Chosen::pages(answers.total);
    if chosen.page > count {
        chosen.page = count;
        answers = catalog.search(&chosen.query(LastWord::Whole)?);
    }
    let title = match (chosen.words.as_str(), chosen.filters.first()) {
        ("", None) => "All tools".to_owned(),
        ("", Some((facet, value))) => shown(*facet, value),
        (words, _) => words.to_owned(),
    };
    let filters = chosen.filters.iter().map(|(facet, value)| Value {
        name: short(&shown(*facet, value), SHORT),
        address: chosen.toggled(*facet, value),
        count: label(*facet).to_owned(),
        is_chosen: true,
    });
    let hidden = chosen.filters.iter().map(|(facet, value)| (facet.name(), value.clone()));
    let paging = Paging::new(chosen.page, count, |page| chosen.on_page(page));
    let results = Results {
        frame: Frame::new(title, &chosen.words),
        total: grouped(answers.total),
        is_one: answers.total == 1,
        is_empty: answers.total == 0,
        items: items(&answers),
        groups: groups(&pages, &chosen)?,
        filters: filters.collect(),
        hidden: hidden.collect(),
        unfiltered: chosen.unfiltered(),
        paging,
        chosen,
    };
    Ok(page(&headers, &results))
}

/// What is suggested while somebody types: a part of a page.
pub(super) async fn suggest(
    State(pages): State<Arc<Pages>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let chosen = Chosen { page: 1, filters: Vec::new(), ..Chosen::read(query.as_deref())? };
    let answers = if chosen.words.is_empty() {
        Answers::default()
    } else {
        let query = chosen.query(LastWord::Begun)?.page(0, SUGGESTIONS);
        pages.registry.catalog.search(&query)
    };
    let suggest = Suggest {
        items: items(&answers),
        total: grouped(answers.total),
        all: chosen.on_page(1),
        words: chosen.words,
    };
    Ok(page(&headers, &suggest))
}

/// The tools of an answer, each read from its row.
pub(super) fn items(answers: &Answers) -> Vec<Item> {
    let found = answers.rows.iter().filter_map(|row| serde_json::from_str::<Found>(row).ok());
    found.map(item).collect()
}

fn item(found: Found) -> Item {
    let plain = found.id.strip_prefix(identity::PREFIX).unwrap_or(&found.id);
    Item {
        address: link::tool(&found.id),
        id: plain.to_owned(),
        version: found.version,
        summary: found.summary,
        tags: tagged(&found.tags, TAGS),
        asks: found.requires_approval == Some(true),
        secrets: found.required_secrets.len(),
        pays: found.uses_payment == Some(true),
    }
}

/// The first tags, each of which leads to all that have it.
pub(super) fn tagged(tags: &[String], most: usize) -> Vec<Value> {
    let none = Chosen { page: 1, ..Chosen::default() };
    let one = |tag: &str| Value {
        name: short(tag, SHORT),
        address: none.toggled(Facet::Tag, &tag.to_lowercase()),
        count: String::new(),
        is_chosen: false,
    };
    tags.iter().map(|tag| tag.trim()).filter(|tag| !tag.is_empty()).take(most).map(one).collect()
}

fn label(facet: Facet) -> &'static str {
    FACETS.iter().find(|(known, _)| *known == facet).map_or("", |(_, label)| *label)
}

/// How many of what is looked for have which value. All that is found is counted, whatever the page, so it is counted
/// once as long as nothing changes.
fn counts(registry: &Registry, chosen: &Chosen) -> Result<Arc<Counts>, Refused> {
    // Taken first: what is counted after it may be newer, never older.
    let turn = registry.catalog.turn();
    let asked = chosen.on_page(1);
    if let Some(counts) = registry.kept.counts(turn, &asked) {
        return Ok(counts);
    }
    let query = chosen.query(LastWord::Whole)?;
    let facets = FACETS.map(|(facet, _)| facet);
    let counts = Arc::new(registry.catalog.counts(&query, &facets, VALUES));
    registry.kept.keep_counts(turn, &asked, Arc::clone(&counts));
    Ok(counts)
}

/// The filters that are offered, with what each would find.
fn groups(pages: &Pages, chosen: &Chosen) -> Result<Vec<Group>, Refused> {
    let counts = counts(&pages.registry, chosen)?;
    let place = FACETS.iter().position(|(facet, _)| *facet == Facet::Tag);
    let tags = place.and_then(|place| counts.get(place)).map_or(&[][..], Vec::as_slice);
    let mut groups = Vec::new();
    for ((facet, name), counts) in FACETS.iter().zip(&*counts) {
        // Every tag is a capability too; it is offered once.
        let is_new = |count: &search::FacetCount| {
            *facet != Facet::Capability
                || chosen.has(*facet, &count.value)
                || !tags.iter().any(|tag| tag.value == count.value)
        };
        let offered = counts.iter().filter(|count| is_new(count)).map(|count| Value {
            name: short(&shown(*facet, &count.value), SHORT),
            address: chosen.toggled(*facet, &count.value),
            count: grouped(count.count),
            is_chosen: chosen.has(*facet, &count.value),
        });
        let mut few: Vec<Value> = offered.collect();
        // A choice of one is none.
        if few.len() < 2 && !few.iter().any(|value| value.is_chosen) {
            continue;
        }
        let more = few.split_off(few.len().min(FEW));
        groups.push(Group { name, few, more });
    }
    Ok(groups)
}

impl Counted {
    fn overview(&self, catalog: &Catalog) -> Arc<Overview> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Arc::downgrade(&catalog.snapshot());
        if let Some((then, overview)) = &*kept
            && then.ptr_eq(&now)
        {
            return Arc::clone(overview);
        }
        let overview = Arc::new(Overview::of(catalog));
        *kept = Some((now, Arc::clone(&overview)));
        overview
    }
}

impl Overview {
    fn of(catalog: &Catalog) -> Self {
        let all = Query::new("");
        let none = Chosen { page: 1, ..Chosen::default() };
        let facets = [Facet::Tag, Facet::Kind];
        let counts = catalog.counts(&all, &facets, CLOUD);
        let mut values = facets.iter().zip(counts).map(|(facet, counts)| {
            let value = |count: search::FacetCount| Value {
                name: short(&shown(*facet, &count.value), SHORT),
                address: none.toggled(*facet, &count.value),
                count: grouped(count.count),
                is_chosen: false,
            };
            counts.into_iter().map(value).collect::<Vec<_>>()
        });
        let (tags, kinds) = (values.next().unwrap_or_default(), values.next().unwrap_or_default());
        let namespaces = catalog.counts(&all, &[Facet::Namespace], usize::MAX).concat().len();
        Self { total: catalog.len(), namespaces, tags, kinds }
    }
}
