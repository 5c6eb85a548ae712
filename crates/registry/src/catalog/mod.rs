//! Catalogs: tools that somebody lists without running a registry.
//!
//! | module | what it is |
//! |---|---|
//! | [`mod@read`] | bytes of a catalog or of an index → packages, one bad entry at a time |
//! | `folder` | the same from a folder |
//! | `well_known` | the manifests that an index points to, fetched |
//!
//! A catalog says what there is, never how far it can be trusted: every package that comes out of here is untrusted.

mod folder;
pub mod read;
mod well_known;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use egress::http::Url;
use manifest::document::MAX_CATALOG;
use manifest::model::{Package, Trust};
use search::{Entry, Facet, Index, Query};
use tokio::sync::OnceCell;

pub use self::read::Held;
use self::read::{Listed, Listing};
use crate::client::error::FetchError;
use crate::client::fetch::Fetcher;
use crate::client::remote::Question;
use crate::describe::Describe;
use crate::find::{Found, Page};
use crate::identity;

/// How long a catalog may take to arrive.
const WITHIN: Duration = Duration::from_secs(15);
/// How many pages of a catalog or an index are read.
const PAGES: usize = 100;

/// Where a catalog is.
#[derive(Clone, Debug)]
pub enum Place {
    /// A document at an address, and where it says that it goes on.
    Address(Fetcher),
    /// An index of install-manifests at an address.
    WellKnown(Fetcher),
    /// A document in a file.
    File(PathBuf),
    /// A folder with manifests and packages.
    Folder(PathBuf),
}

/// A catalog. It is read once, when it is first asked.
#[derive(Debug)]
pub struct Catalog {
    name: String,
    place: Place,
    loaded: OnceCell<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    packages: BTreeMap<String, Listed>,
    index: Index,
    warnings: Vec<String>,
}

impl Catalog {
    /// A catalog, under the name that its owner gave it.
    pub fn new(name: &str, place: Place) -> Self {
        Self { name: name.to_owned(), place, loaded: OnceCell::new() }
    }

    /// What its owner calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its packages, by their ids, each untrusted.
    pub async fn packages(&self) -> Result<impl Iterator<Item = &Package>, FetchError> {
        Ok(self.loaded().await?.packages.values().map(|listed| &listed.package))
    }

    /// What was passed over.
    pub async fn warnings(&self) -> Result<&[String], FetchError> {
        Ok(&self.loaded().await?.warnings)
    }

    /// Finds tools.
    pub async fn search(&self, question: &Question) -> Result<Page, FetchError> {
        let loaded = self.loaded().await?;
        let mut query = Query::new(&question.words);
        // What somebody lists is offered; only registries of ours know channels.
        for (name, value) in question.filters.iter().filter(|(name, _)| name != "channel") {
            let facet = facet(name).ok_or_else(|| {
                FetchError::Catalog(format!("`{name}` is nothing to be filtered by"))
            })?;
            for value in value.split(',').map(str::trim).filter(|value| !value.is_empty()) {
                let filtered = query.filter(facet, value);
                query = filtered.map_err(|error| FetchError::Catalog(error.to_string()))?;
            }
        }
        let page = loaded.index.search(&query.page(question.offset, question.limit));
        let found = |key: &String| loaded.packages.get(key).map(|listed| found(&listed.package));
        let results = page.hits.iter().filter_map(|hit| found(&hit.key)).collect();
        Ok(Page { results, total: page.total as u64 })
    }

    /// Says what a tool is, in the one version that a catalog has of it; none where there is no such tool.
    pub async fn find(&self, id: &str) -> Result<Option<&Package>, FetchError> {
        let packages = &self.loaded().await?.packages;
        let by_id = packages.get(id).or_else(|| packages.get(&identity::with_prefix(id)));
        let by_name = || packages.values().find(|one| identity::name(&one.package) == id);
        Ok(by_id.or_else(by_name).map(|listed| &listed.package))
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where all of a package is to be had that this catalog lists.
    pub fn held(&self, package: &Package) -> Option<&Held> {
        let loaded = self.loaded.get()?;
        loaded.packages.get(&identity::id(package)).map(|listed| &listed.held)
    }

    async fn loaded(&self) -> Result<&Loaded, FetchError> {
        self.loaded.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<Loaded, FetchError> {
        let listing = match &self.place {
            Place::Address(fetcher) => {
                check_encrypted(fetcher)?;
                pages(fetcher).await?
            }
            Place::WellKnown(fetcher) => {
                check_encrypted(fetcher)?;
                well_known::fetch(fetcher).await?
            }
            Place::File(path) => {
                let cannot = |error| FetchError::Cache(path.clone(), error);
                let mut bytes = Vec::new();
                let file = File::open(path).map_err(cannot)?;
                file.take(MAX_CATALOG as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
                read::capabilities(&bytes).map_err(FetchError::Catalog)?
            }
            Place::Folder(path) => {
                folder::read(path).map_err(|error| FetchError::Cache(path.clone(), error))?
            }
        };
        Ok(Loaded::new(listing))
    }
}

impl Loaded {
    fn new(Listing { packages, mut warnings }: Listing) -> Self {
        let (mut known, index) = (BTreeMap::<String, Listed>::new(), Index::new());
        for mut listed in packages {
            listed.package.trust = Trust::Untrusted;
            let id = identity::id(&listed.package);
            let version = |one: &Listed| semver::Version::parse(&one.package.semver()).ok();
            match known.get(&id) {
                Some(there) if version(there) >= version(&listed) => continue,
                _ => known.insert(id, listed),
            };
        }
        for (id, Listed { package, .. }) in &known {
            let put = Entry::of_package(id, package).ok().map(|entry| index.put(entry));
            if !matches!(put, Some(Ok(()))) {
                warnings.push(format!("`{id}` cannot be searched for"));
            }
        }
        Self { packages: known, index, warnings }
    }
}

/// A catalog at an address, page by page.
async fn pages(fetcher: &Fetcher) -> Result<Listing, FetchError> {
    let mut listing = Listing::default();
    let mut packages = Vec::new();
    let take = |body: &[u8], listing: &mut Listing| {
        let page = read::capabilities(body)?;
        packages.extend(page.packages);
        page.warnings.into_iter().for_each(|warning| listing.warn(warning));
        Ok(packages.len())
    };
    let first = fetcher.address().url().clone();
    each_page(fetcher, first, MAX_CATALOG, &mut listing, take).await?;
    Ok(Listing { packages, ..listing })
}

/// Gives the pages of a list to `take`, which says how much that makes in all, as far as they are at the place of the
/// first one and as many as are taken.
async fn each_page(
    fetcher: &Fetcher,
    first: Url,
    most: usize,
    listing: &mut Listing,
    mut take: impl FnMut(&[u8], &mut Listing) -> Result<usize, String>,
) -> Result<(), FetchError> {
    let mut url = first;
    for _ in 0..PAGES {
        let answer = fetcher.get(url.clone(), most as u64, WITHIN).await?;
        let taken = take(&answer.body, listing).map_err(FetchError::Catalog)?;
        match answer.next {
            None => return Ok(()),
            Some(next) if next.origin() != url.origin() => {
                listing.warn(format!("it goes on at `{next}`, which is another place: not read"));
                return Ok(());
            }
            Some(_) if taken >= read::MOST => break,
            Some(next) => url = next,
        }
    }
    listing.warn("it goes on, and more than this is not read".to_owned());
    Ok(())
}

/// A catalog that anybody on the way could change is none.
fn check_encrypted(fetcher: &Fetcher) -> Result<(), FetchError> {
    if fetcher.address().is_private_talk() {
        Ok(())
    } else {
        Err(FetchError::Catalog("it is not fetched over `https`".to_owned()))
    }
}

fn found(package: &Package) -> Found {
    Found::from(&Describe::of_package(package))
}

/// What the API calls a filter.
fn facet(name: &str) -> Option<Facet> {
    match name {
        "tags" | "tag" => Some(Facet::Tag),
        _ => Facet::FILTERS.into_iter().find(|facet| facet.name() == name),
    }
}
