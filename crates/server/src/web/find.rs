//! Search, listing, tags, providers.

use std::hash::BuildHasher;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use foldhash::quality::FixedState;
use registry::{Providers, Tags};
use search::{Facet, LastWord, Query};

use super::answer::{self, Keep};
use super::caller;
use super::refused::Refused;
use super::text::Parameters;
use crate::catalog::Answers;
use crate::kept::Answer;
use crate::service::Registry;
use crate::settings::Reading;
use crate::token::Scope;

/// How many results are on a page: unless said otherwise, and at most.
const PAGE: (usize, usize) = (20, 100);

/// What an answer is known by, at every replica. It only has to tell it apart from what the same question was answered
/// before, so the quickest hash will do.
fn tag(text: &str) -> String {
    format!("W/\"{:016x}\"", FixedState::default().hash_one(text))
}

pub(super) async fn search(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let headers = request.headers();
    let send = |answer: Answer| {
        let Answer { text, tag } = answer;
        answer::kept(headers, &tag, Keep::Checked, || answer::json(StatusCode::OK, text))
    };
    let raw = request.uri().query().unwrap_or_default();
    // Taken first: what is found after it may be newer, never older.
    let turn = registry.catalog.turn();
    let is_for_all = registry.settings.reading == Reading::Everybody;
    if is_for_all && let Some(answer) = registry.kept.answer(turn, raw) {
        return Ok(send(answer));
    }
    let parameters = Parameters::read(Some(raw))?;
    let view = caller::view(&registry, caller::shown(&request), &parameters)?;
    let words = parameters.get("q").unwrap_or_default();
    let filters = Facet::FILTERS.into_iter().map(Facet::name).chain(["tags", "tag"]);
    let is_filtered = filters.into_iter().any(|name| parameters.list(name).next().is_some());
    if words.trim().is_empty() && !is_filtered {
        return Err(Refused::invalid("give words to search for in `q`, `tags` or another filter"));
    }
    let refused = |error: search::QueryError| Refused::invalid(error.to_string());
    let mut query = Query::new(words);
    for name in ["tags", "tag"] {
        for tag in parameters.list(name) {
            query = query.filter(Facet::Tag, tag).map_err(refused)?;
        }
    }
    // Several values of one filter are alternatives: whoever sees one namespace filters by no other.
    if let Scope::Namespace(own) = &view.scope
        && parameters.list(Facet::Namespace.name()).next().is_some()
        && !parameters.list(Facet::Namespace.name()).any(|name| name == own)
    {
        return Ok(answer::json(StatusCode::OK, Answers::default().json()));
    }
    let seen = Facet::FILTERS
        .into_iter()
        .filter(|facet| *facet != Facet::Namespace || view.scope == Scope::All);
    for facet in seen {
        for value in parameters.list(facet.name()) {
            query = query.filter(facet, value).map_err(refused)?;
        }
    }
    if parameters.get("prefix").is_some_and(|asked| asked == "true") {
        query = query.last_word(LastWord::Begun);
    }
    let (offset, limit) = page(&parameters);
    let found = registry.catalog.search_in(query.page(offset, limit), &view);
    let text = found.json();
    let answer = Answer { tag: tag(&text).into(), text: text.into() };
    if is_for_all {
        registry.kept.keep_answer(turn, raw, answer.clone());
    }
    Ok(send(answer))
}

pub(super) async fn list(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let parameters = Parameters::read(request.uri().query())?;
    let view = caller::view(&registry, caller::shown(&request), &parameters)?;
    let (offset, limit) = page(&parameters);
    Ok(answer::json(StatusCode::OK, registry.catalog.list_in(&view, offset, limit).json()))
}

pub(super) async fn tags(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let view = caller::view(&registry, caller::shown(&request), &Parameters::default())?;
    let tags = Tags { tags: registry.catalog.tags_in(&view.scope) };
    Ok(answer::json(StatusCode::OK, serde_json::to_string(&tags).unwrap_or_default()))
}

pub(super) async fn providers(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let view = caller::view(&registry, caller::shown(&request), &Parameters::default())?;
    let providers = Providers { providers: registry.catalog.providers_in(&view.scope) };
    Ok(answer::json(StatusCode::OK, serde_json::to_string(&providers).unwrap_or_default()))
}

fn page(parameters: &Parameters) -> (usize, usize) {
    let (default, most) = PAGE;
    let limit = parameters.number("limit", default, 1, most);
    (parameters.number("offset", 0, 0, usize::MAX), limit)
}
