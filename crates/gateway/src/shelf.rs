//! What is installed, ready to be called: read once, and anew when it changes.
//!
//! A [`Stock`] is all of it at one moment and never changes; whoever has one sees one consistent state. The [`Shelf`] holds
//! the newest, and looks at the files behind it whenever it is asked, which costs a few system calls; calls, of which there may be
//! thousands in a second, share the looks of a millisecond.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::{Host, Tool};
use ledger::StateError;
use manifest::model::Trust;
use policy::Policy;
use prove::measured::All;
use search::Query;

use crate::mark::Files;
use crate::offer::{Offer, offers};
use crate::steward::{Package, Standing, Steward};
use crate::view::{List, View};

/// How long what was approved of a server may be read.
const READING: Duration = Duration::from_secs(10);

/// How soon it is looked again at what could not be read.
const AGAIN: Duration = Duration::from_secs(1);

/// How long ranks are taken for those of now.
const RANKED_FOR: Duration = Duration::from_mins(1);

/// How much a tool is worth of which nothing is known.
const MIDDLING: f64 = 0.5;

/// How far the best and the worst are apart in what a match is multiplied with.
const SWAY: f32 = 0.2;

/// How many names are told that may have been meant by another.
const MOST_NEAR: usize = 3;

/// What is installed, and the newest of it.
#[derive(Debug)]
pub(crate) struct Shelf {
    steward: Arc<dyn Steward>,
    newest: Mutex<Arc<Stock>>,
    /// Held by whoever reads it anew; the others go on with what there is.
    reading: tokio::sync::Mutex<()>,
}

/// All that is installed at one moment.
#[derive(Debug)]
pub(crate) struct Stock {
    files: Files,
    /// Makes the calls, by the policy of that moment.
    pub(crate) host: Host,
    pub(crate) policy: Policy,
    /// The home of Haft.
    pub(crate) home: PathBuf,
    /// Why nothing of it can be called: what says what is allowed cannot be read, and what it said before counts no more.
    pub(crate) trouble: Option<(Instant, String)>,
    /// How often it was read anew before.
    pub(crate) number: u64,
    pub(crate) packages: Vec<Arc<Shelved>>,
    /// Everything that can be called, by the names that agents know.
    pub(crate) offers: Vec<Arc<Offer>>,
    by_name: HashMap<String, usize>,
    /// What each view shows, once somebody looked.
    lists: Mutex<HashMap<View, Arc<List>>>,
    /// Finds offers by words, once somebody searched.
    index: search::Index,
    /// What counted for each of them there, and since when.
    ranked: tokio::sync::Mutex<Option<(Instant, Vec<f32>)>>,
}

/// A package on the shelf.
#[derive(Debug)]
pub(crate) struct Shelved {
    pub(crate) id: String,
    pub(crate) version: Option<String>,
    pub(crate) is_enabled: bool,
    pub(crate) standing: Standing,
    pub(crate) trust: Trust,
    pub(crate) is_taken_back: bool,
    /// Whether it says itself what can be called of it; else its server does.
    pub(crate) declares: bool,
    pub(crate) tool: Result<Arc<Tool>, String>,
    files: Files,
}

impl Shelved {
    fn new(package: Package, declares: bool) -> Self {
        let Package { id, version, is_enabled, standing, trust, is_taken_back, tool, files } =
            package;
        let tool = tool.map(Arc::new);
        Self { id, version, is_enabled, standing, trust, is_taken_back, declares, tool, files }
    }

    /// The same when it cannot be called, and why.
    fn closed(&self, words: &str) -> Self {
        Self {
            id: self.id.clone(),
            version: self.version.clone(),
            is_enabled: self.is_enabled,
            standing: self.standing,
            trust: self.trust,
            is_taken_back: self.is_taken_back,
            declares: self.declares,
            tool: Err(words.to_owned()),
            files: Files::new(Vec::new()),
        }
    }
}

impl Shelf {
    /// Reads what is installed; the host makes the calls.
    pub(crate) async fn open(steward: Arc<dyn Steward>, host: Host) -> Result<Self, String> {
        let stock = Stock::read(&steward, host, 0).await?;
        let newest = Mutex::new(Arc::new(stock));
        Ok(Self { steward, newest, reading: tokio::sync::Mutex::default() })
    }

    /// What is installed now. Where that, or what is allowed, cannot be read, nothing can be called until it can.
    pub(crate) async fn stock(&self) -> Arc<Stock> {
        let newest = self.newest();
        if newest.is_current() {
            return newest;
        }
        let _reading = self.reading.lock().await;
        let newest = self.newest();
        if newest.is_current() {
            return newest;
        }
        Box::pin(self.read_again(&newest)).await
    }

    /// The same for a call, which takes what was looked at a moment ago.
    pub(crate) async fn stock_for_call(&self) -> Arc<Stock> {
        let newest = self.newest();
        let is_whole = newest.trouble.is_none() && newest.broken().next().is_none();
        if is_whole && newest.files.were_unchanged() {
            return newest;
        }
        self.stock().await
    }

    /// Reads it anew, for whoever has the right to.
    async fn read_again(&self, before: &Stock) -> Arc<Stock> {
        let files = files_of(&*self.steward);
        let read = Stock::read(&self.steward, before.host.clone(), before.number + 1).await;
        let stock = read.unwrap_or_else(|words| before.closed(files, words));
        let stock = Arc::new(stock);
        retire_others(before, &stock);
        let words = |stock: &Stock| stock.trouble.as_ref().map(|(_, words)| words.clone());
        if words(before) != words(&stock) {
            self.steward.troubled(words(&stock).as_deref());
        }
        *lock(&self.newest) = Arc::clone(&stock);
        stock
    }

    /// What is installed now, to whoever looked a moment ago: the files of the package that they mean have to be what they were too.
    pub(crate) async fn stock_with(&self, stock: Arc<Stock>, package: &Shelved) -> Arc<Stock> {
        if package.files.were_unchanged() {
            return stock;
        }
        let _reading = self.reading.lock().await;
        let newest = self.newest();
        // Somebody else may have read it while this was waited for.
        let read = newest.packages.iter().find(|one| one.id == package.id);
        if !Arc::ptr_eq(&newest, &stock) && read.is_some_and(|one| one.files.were_unchanged()) {
            return newest;
        }
        Box::pin(self.read_again(&newest)).await
    }

    pub(crate) fn steward(&self) -> &Arc<dyn Steward> {
        &self.steward
    }

    /// Makes the calls, as far as is known now.
    pub(crate) fn host(&self) -> Host {
        self.newest().host.clone()
    }

    /// What was installed when it was last looked.
    pub(crate) fn newest(&self) -> Arc<Stock> {
        Arc::clone(&lock(&self.newest))
    }
}

impl Stock {
    async fn read(steward: &Arc<dyn Steward>, host: Host, number: u64) -> Result<Self, String> {
        let asked = Arc::clone(steward);
        let reading = tokio::task::spawn_blocking(move || {
            // What changes while it is read is read once more.
            let files = files_of(&*asked);
            Ok::<_, String>((files, asked.settings()?, asked.packages()?))
        });
        let read = reading.await.map_err(|error| format!("the reading broke off: {error}"))?;
        let (files, settings, read) = read?;
        let mut packages = Vec::with_capacity(read.len());
        for mut one in read {
            let mut declares = true;
            if let Ok(tool) = &mut one.tool {
                declares = !tool.package.actions.is_empty();
                if let Err(error) = tool.take_offered(Instant::now() + READING).await {
                    one.tool = Err(error.to_string());
                }
            }
            packages.push(Arc::new(Shelved::new(one, declares)));
        }
        let (policy, home) = (settings.policy.clone(), settings.home.clone());
        let state = &host.records().state;
        let named = named(&packages, state).await;
        let offers: Vec<_> = named?.into_iter().map(Arc::new).collect();
        let named = offers.iter().enumerate().map(|(at, offer)| (offer.name.clone(), at));
        Ok(Self {
            by_name: named.collect(),
            host: host.with_settings(settings),
            files,
            policy,
            home,
            trouble: None,
            number,
            packages,
            index: search::Index::with_room_for(offers.len()),
            ranked: tokio::sync::Mutex::default(),
            offers,
            lists: Mutex::default(),
        })
    }

    /// The same when nothing of it can be called, and why.
    fn closed(&self, files: Files, words: String) -> Self {
        let closing = closing(&words);
        let closed = |one: &Arc<Shelved>| Arc::new(one.closed(&closing));
        Self {
            files,
            host: self.host.clone(),
            policy: self.policy.clone(),
            home: self.home.clone(),
            number: self.number + 1,
            packages: self.packages.iter().map(closed).collect(),
            offers: Vec::new(),
            by_name: HashMap::new(),
            lists: Mutex::default(),
            index: search::Index::default(),
            ranked: tokio::sync::Mutex::default(),
            trouble: Some((Instant::now(), words)),
        }
    }

    /// Whether the policy can be read and has no such profile.
    pub(crate) fn is_without(&self, profile: &str) -> bool {
        self.trouble.is_none() && !self.policy.profiles.contains_key(profile)
    }

    /// Why nothing can be called by whoever has a view: it is so for everybody, or the policy has their profile no more.
    pub(crate) fn closed_to(&self, view: &View) -> Option<String> {
        match (&self.trouble, view) {
            (Some((_, words)), _) => Some(closing(words)),
            (None, View::Profile(name)) if self.is_without(name) => Some(format!(
                "no tool can be called until the owner's policy has the profile `{name}` again"
            )),
            (None, _) => None,
        }
    }

    fn is_current(&self) -> bool {
        // What is wrong may be nothing that is in a file.
        let is_tried_again = self.trouble.as_ref().is_some_and(|(at, _)| at.elapsed() > AGAIN);
        !is_tried_again
            && self.files.are_unchanged()
            && self.broken().all(|one| one.files.are_unchanged())
    }

    /// The packages that are broken, and may have been mended since.
    fn broken(&self) -> impl Iterator<Item = &Arc<Shelved>> {
        self.packages.iter().filter(|one| one.tool.is_err())
    }

    /// What an agent calls so.
    pub(crate) fn offer(&self, name: &str) -> Option<&Arc<Offer>> {
        self.by_name.get(name).map(|at| &self.offers[*at])
    }

    /// The package of an id, with its dialect or without where that is enough.
    pub(crate) fn package(&self, id: &str) -> Option<&Arc<Shelved>> {
        let whole = self.packages.iter().find(|one| one.id == id);
        whole.or_else(|| {
            let bare =
                |one: &&Arc<Shelved>| one.id.split_once(':').is_some_and(|(_, bare)| bare == id);
            let mut found = self.packages.iter().filter(bare);
            found.next().filter(|_| found.next().is_none())
        })
    }

    /// The package behind a name of a view and its action, where nothing of it can be called: it is switched off, or broken.
    pub(crate) async fn out_of_reach(
        &self,
        view: &View,
        name: &str,
    ) -> Option<(Arc<Shelved>, String)> {
        let is_out = |one: &&Arc<Shelved>| !one.is_enabled || one.tool.is_err();
        if let View::Raw(id) = view {
            return self.package(id).filter(is_out).map(|one| (Arc::clone(one), name.to_owned()));
        }
        let known = self.host.records().state.names().await.ok()?;
        let named = known.into_iter().find(|one| one.exposed == name)?;
        let is_shown = view.holds(&self.policy, &named.package, &named.action);
        let package = self.packages.iter().find(|one| is_shown && one.id == named.package);
        package.filter(is_out).map(|one| (Arc::clone(one), named.action))
    }

    /// What a view shows.
    pub(crate) fn list(&self, view: &View) -> Arc<List> {
        if let Some(list) = lock(&self.lists).get(view) {
            return Arc::clone(list);
        }
        let list = Arc::new(List::of(view, self));
        lock(&self.lists).insert(view.clone(), Arc::clone(&list));
        list
    }

    /// Finds offers by words; of those that fit as well, the ones come first that did better here.
    pub(crate) async fn index(&self) -> &search::Index {
        let mut ranked = self.ranked.lock().await;
        if ranked.as_ref().is_some_and(|(since, _)| since.elapsed() < RANKED_FOR) {
            return &self.index;
        }
        let ranks = self.ranks().await;
        for (at, (offer, rank)) in self.offers.iter().zip(&ranks).enumerate() {
            let is_known =
                ranked.as_ref().is_some_and(|(_, before)| before[at].to_bits() == rank.to_bits());
            // What is too long to be found by words is still found by its name.
            if let (false, Ok(entry)) = (is_known, offer.entry(*rank)) {
                let _ = self.index.put(entry);
            }
        }
        *ranked = Some((Instant::now(), ranks));
        &self.index
    }

    /// The names that may be meant by one that nothing has.
    pub(crate) async fn near(&self, list: &List, name: &str) -> Vec<String> {
        // What is not of this list is left out, so more are looked at than are told.
        let query = Query::new(name).page(0, self.offers.len().max(1));
        let hits = self.index().await.search(&query).hits;
        let offers = hits.iter().filter_map(|hit| list.offer(&hit.key));
        offers.take(MOST_NEAR).map(|offer| format!("`{}`", offer.name)).collect()
    }

    /// What was measured of everything.
    pub(crate) async fn measured(&self) -> Result<All, StateError> {
        let records = self.host.records();
        // The latest calls may not be counted yet.
        let _ = records.settle().await;
        All::read(&records.state, host::records::now()).await
    }

    /// How much each offer counts by what was measured of its package. Where that cannot be read, all count the same.
    async fn ranks(&self) -> Vec<f32> {
        let now = host::records::now();
        let measured = self.measured().await.unwrap_or_default();
        let rank = |offer: &Arc<Offer>| {
            let version = offer.tool.counted_version();
            let of_version = measured.version(&offer.package.id, &version);
            let score = of_version.and_then(|one| one.score(&self.policy.rank.weights, now));
            rank_of(score)
        };
        self.offers.iter().map(rank).collect()
    }
}

/// What all of it goes by, as that is now.
fn files_of(steward: &dyn Steward) -> Files {
    Files::and_guarded(steward.files(), steward.guarded())
}

/// What is told while nothing can be called, for this reason.
fn closing(words: &str) -> String {
    format!("no tool can be called until its owner mends this: {words}")
}

/// What a score multiplies a match with: little, so that words decide first. One of which nothing is known is taken for middling.
#[expect(clippy::cast_possible_truncation, reason = "it is a number from 0 to 1")]
fn rank_of(score: Option<f64>) -> f32 {
    1.0 + SWAY * (score.unwrap_or(MIDDLING).clamp(0.0, 1.0) - MIDDLING) as f32
}

/// Everything that can be called, under the names that it has or gets. Where they cannot be read, nothing has a name that
/// others know it by.
async fn named(packages: &[Arc<Shelved>], state: &ledger::State) -> Result<Vec<Offer>, String> {
    let failed = |error: ledger::StateError| host::records::whole(&error);
    loop {
        let known = state.names().await.map_err(failed)?;
        let (offers, given) = offers(packages, &known);
        // Where another replica has given one of them meanwhile, it counts.
        if given.is_empty()
            || state.keep_names(&given, host::records::now()).await.map_err(failed)?
        {
            return Ok(offers);
        }
    }
}

/// Ends what is kept running of packages that are others now, or where other things are allowed; and everything, also calls, of
/// those that are switched off or gone.
fn retire_others(before: &Stock, now: &Stock) {
    for old in &before.packages {
        let digest = |one: &Shelved| one.tool.as_ref().ok().map(|tool| tool.digest.clone());
        match now.packages.iter().find(|one| one.id == old.id) {
            Some(new) if !new.is_enabled && old.is_enabled => now.host.end(&old.id),
            Some(new) if digest(new) == digest(old) && now.policy == before.policy => {}
            Some(_) => now.host.retire(&old.id),
            None => now.host.end(&old.id),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_while_a_package_was_read_is_noticed() {
        let path = std::env::temp_dir().join(format!("haft-shelf-{}", std::process::id()));
        std::fs::write(&path, "1").unwrap();
        let package = Package {
            id: "mcpkg:a".to_owned(),
            version: None,
            is_enabled: true,
            standing: Standing::Enabled,
            trust: Trust::Local,
            is_taken_back: false,
            tool: Err("it is broken".to_owned()),
            files: Files::new(vec![path.clone()]),
        };
        std::fs::write(&path, "22").unwrap();
        assert!(!Shelved::new(package, true).files.are_unchanged());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_score_sways_a_match_a_little_and_nothing_known_does_not() {
        let near = |rank: f32, expected: f32| assert!((rank - expected).abs() < 1e-6, "{rank}");
        near(rank_of(None), 1.0);
        near(rank_of(Some(0.0)), 0.9);
        near(rank_of(Some(1.0)), 1.1);
        near(rank_of(Some(7.0)), 1.1);
        near(rank_of(Some(MIDDLING)), 1.0);
    }
}
