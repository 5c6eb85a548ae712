//! The page of a namespace: its tools, and who publishes them with what.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use registry::Channel;
use search::{Facet, LastWord};

use super::chosen::{Chosen, PAGE, shown};
use super::date::{Moment, grouped};
use super::find::{Item, Paging, Value, items};
use super::frame::{Frame, page};
use super::inert::short;
use super::{Pages, link};
use crate::catalog::View;
use crate::store::namespaces::Build;
use crate::token::Scope;
use crate::web::refused::Refused;
use crate::web::text::{Parameters, decode};

/// How many keys, builds and owners are told.
const MOST: usize = 12;
/// How many kinds of tools are told.
const KINDS: usize = 8;

#[derive(Template)]
#[template(path = "namespace.html")]
struct NamespacePage {
    frame: Frame,
    name: String,
    total: String,
    is_one: bool,
    items: Vec<Item>,
    paging: Option<Paging>,
    kinds: Vec<Value>,
    /// Where its tools are found among others.
    search: String,
    published: Option<Moment>,
    keys: Vec<(String, usize)>,
    builds: Vec<(Build, usize)>,
    owners: Vec<Value>,
    is_cut: bool,
}

pub(super) async fn show(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Refused> {
    let path = request.uri().path();
    let name = decode(path.strip_prefix("/namespaces/").unwrap_or_default())?;
    let view = View { scope: Scope::Namespace(name.clone()), channel: Channel::Stable };
    let catalog = &pages.registry.catalog;
    let total = catalog.list_in(&view, 0, 0).total;
    if total == 0 {
        return Err(Refused::unknown_path(path));
    }
    let parameters = Parameters::read(request.uri().query())?;
    let at = parameters.number("page", 1, 1, Chosen::pages(total));
    let answers = catalog.list_in(&view, (at - 1) * PAGE, PAGE);
    let chosen = Chosen {
        words: String::new(),
        filters: vec![(Facet::Namespace, name.to_lowercase())],
        page: 1,
    };
    let query = chosen.query(LastWord::Whole).map_err(|_| Refused::unknown_path(path))?;
    let kinds = catalog.counts(&query, &[Facet::Kind], KINDS);
    let kinds = kinds.concat().into_iter().map(|count| Value {
        name: shown(Facet::Kind, &count.value),
        address: chosen.toggled(Facet::Kind, &count.value),
        count: grouped(count.count),
        is_chosen: false,
    });
    let known = pages.registry.store.namespace(&name).await?;
    let mut told = known.builds;
    told.truncate(MOST);
    let builds = told.into_iter().map(|(build, count)| {
        (Build { of: short(&build.of, 200), issuer: short(&build.issuer, 200) }, count)
    });
    let owner = |(name, count): (String, usize)| Value {
        address: link::namespace(&name),
        name: short(&name, 80),
        count: grouped(count),
        is_chosen: false,
    };
    let address = link::namespace(&name);
    let on_page = |page: usize| match page {
        1 => address.clone(),
        _ => format!("{address}?page={page}"),
    };
    let page_of = NamespacePage {
        frame: Frame::new(name.as_str(), ""),
        total: grouped(total),
        is_one: total == 1,
        items: items(&answers),
        paging: Paging::new(at, Chosen::pages(total), on_page),
        // One kind is all of them.
        kinds: if kinds.len() > 1 { kinds.collect() } else { Vec::new() },
        search: chosen.on_page(1),
        published: known.published_at.map(Moment),
        keys: known.keys.into_iter().take(MOST).collect(),
        builds: builds.collect(),
        owners: known.owners.into_iter().take(MOST).map(owner).collect(),
        is_cut: known.is_cut,
        name,
    };
    Ok(page(request.headers(), &page_of))
}
