//! What somebody looks for: words, filters, a page; and the addresses of what lies beside it.

use search::{Facet, LastWord, Query};

use super::link;
use crate::web::refused::Refused;
use crate::web::text::Parameters;

/// What people filter by, with what it is called on the page.
pub(super) const FACETS: [(Facet, &str); 8] = [
    (Facet::Kind, "Kind"),
    (Facet::Capability, "Capability"),
    (Facet::Tag, "Tag"),
    (Facet::Language, "Language"),
    (Facet::Platform, "Platform"),
    (Facet::Dialect, "Dialect"),
    (Facet::Namespace, "Namespace"),
    (Facet::Provider, "Provider"),
];

/// How many tools are on a page, and how many pages can be asked for.
pub(super) const PAGE: usize = 20;
const PAGES: usize = 500;
/// The most letters of a query that are taken.
const LETTERS: usize = 300;

/// What somebody looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) words: String,
    pub(super) filters: Vec<(Facet, String)>,
    /// From 1.
    pub(super) page: usize,
}

impl Chosen {
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refused> {
        let parameters = Parameters::read(query)?;
        let words = parameters.get("q").unwrap_or_default();
        let words = words.chars().take(LETTERS).collect::<String>().trim().to_owned();
        let mut filters: Vec<(Facet, String)> = Vec::new();
        for (facet, _) in FACETS {
            for value in parameters.each(facet.name()) {
                let filter = (facet, value.trim().to_lowercase());
                if !filter.1.is_empty() && !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
        }
        Ok(Self { words, filters, page: parameters.number("page", 1, 1, PAGES) })
    }

    /// The question to the index.
    pub(super) fn query(&self, last_word: LastWord) -> Result<Query, Refused> {
        let mut query = Query::new(&self.words).last_word(last_word);
        for (facet, value) in &self.filters {
            query =
                query.filter(*facet, value).map_err(|error| Refused::invalid(error.to_string()))?;
        }
        Ok(query.page((self.page - 1) * PAGE, PAGE))
    }

    pub(super) fn has(&self, facet: Facet, value: &str) -> bool {
        self.filters.iter().any(|(known, its)| *known == facet && its == value)
    }

    /// The address of the same with one filter more, or without it where it is there; on the first page.
    pub(super) fn toggled(&self, facet: Facet, value: &str) -> String {
        let mut other = Self { page: 1, ..self.clone() };
        if other.has(facet, value) {
            other.filters.retain(|(known, its)| *known != facet || its != value);
        } else {
            other.filters.push((facet, value.to_owned()));
        }
        other.address()
    }

    /// The address of the same words without filters.
    pub(super) fn unfiltered(&self) -> String {
        Self { filters: Vec::new(), page: 1, words: self.words.clone() }.address()
    }

    /// The address of another page.
    pub(super) fn on_page(&self, page: usize) -> String {
        Self { page, ..self.clone() }.address()
    }

    /// How many pages there are of so many tools.
    pub(super) fn pages(total: usize) -> usize {
        total.div_ceil(PAGE).clamp(1, PAGES)
    }

    fn address(&self) -> String {
        let mut parts = Vec::new();
        if !self.words.is_empty() {
            parts.push(format!("q={}", link::part(&self.words)));
        }
        for (facet, value) in &self.filters {
            parts.push(format!("{}={}", facet.name(), link::part(value)));
        }
        if self.page > 1 {
            parts.push(format!("page={}", self.page));
        }
        if parts.is_empty() { "/search".to_owned() } else { format!("/search?{}", parts.join("&")) }
    }
}

/// What the value of a facet is called on the page.
pub(super) fn shown(facet: Facet, value: &str) -> String {
    match (facet, value) {
        (Facet::Kind, "tool") => "tool".to_owned(),
        (Facet::Kind, "mcp_server") => "MCP server".to_owned(),
        (Facet::Kind, "skill_pack") => "skill pack".to_owned(),
        (Facet::Kind, "a2a_peer") => "A2A agent".to_owned(),
        (Facet::Kind, "agent_workflow") => "workflow".to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_what_was_chosen() {
        let chosen = Chosen::read(Some("q=read+pdf&language=Rust&tag=a%2Cb&page=3")).unwrap();
        assert_eq!(chosen.words, "read pdf");
        assert!(chosen.has(Facet::Language, "rust") && chosen.has(Facet::Tag, "a,b"));
        assert_eq!(chosen.on_page(4), "/search?q=read%20pdf&tag=a%2Cb&language=rust&page=4");
        assert_eq!(chosen.toggled(Facet::Tag, "a,b"), "/search?q=read%20pdf&language=rust");
        assert_eq!(
            chosen.toggled(Facet::Kind, "tool"),
            "/search?q=read%20pdf&tag=a%2Cb&language=rust&kind=tool"
        );
        assert_eq!(chosen.unfiltered(), "/search?q=read%20pdf");
        assert_eq!(Chosen::read(None).unwrap().on_page(1), "/search");
        assert_eq!(Chosen::read(Some("page=0")).unwrap().page, 1);
        assert_eq!(Chosen::read(Some("page=99999")).unwrap().page, PAGES);
        assert!(Chosen::read(Some("q=%ff")).is_err());
        assert_eq!((Chosen::pages(0), Chosen::pages(20), Chosen::pages(21)), (1, 1, 2));
    }
}
