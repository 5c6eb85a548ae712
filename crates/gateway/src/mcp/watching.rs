//! The resources that a client, or a subscription of it, is told of, and the servers that are to tell.
//!
//! A server that ends meanwhile is asked again, so that nobody waits for what will never be told. Of a client of the older era
//! that nobody hears at the moment, nothing is watched.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use host::{CallError, CancellationToken, Kind, Watching};
use serde_json::json;
use tokio::time::timeout;

use super::client::{Asked, Client, Line, lock};
use super::error::Error;
use super::hosted::{Server, Voice, of_view};
use super::message::Id;
use super::revision::Meta;
use super::servers;
use crate::gateway::Gateway;

/// The most resources that one client of the older era, or one subscription, is about.
pub(crate) const MOST: usize = 1000;

/// How many of them are asked for at a time.
pub(crate) const AT_A_TIME: usize = 64;

/// How often it is looked whether servers still tell.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long one is left alone that did not go on telling, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Says that a resource has changed.
pub(crate) const UPDATED: &str = "notifications/resources/updated";

/// What somebody is told of.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// By address.
    all: Mutex<HashMap<String, Watch>>,
    /// Whether somebody sees to it that servers go on telling.
    is_kept: AtomicBool,
}

#[derive(Debug)]
struct Watch {
    /// The one package that is heard about it.
    package: String,
    telling: Telling,
    pause: Duration,
}

#[derive(Debug)]
enum Telling {
    /// It is being asked for the first time, by those who keep this.
    Begun(Weak<()>),
    /// It tells, since then.
    By(Watching, Instant),
    /// It is asked again then.
    Lapsed(Instant),
}

impl Watches {
    /// Whether it is told what a package says of a resource.
    pub(crate) fn has(&self, package: &str, uri: &str) -> bool {
        lock(&self.all).get(uri).is_some_and(|one| one.package == package)
    }

    pub(crate) fn has_any_of(&self, uri: &str) -> bool {
        lock(&self.all).contains_key(uri)
    }

    /// Has a server tell of a resource. What it says at once is heard.
    pub(crate) async fn begin(
        &self,
        voice: &Voice,
        server: &Server,
        uri: &str,
        off: &CancellationToken,
    ) -> Result<(), CallError> {
        let package = &server.package.id;
        let Some(_asking) = self.note(package, uri) else {
            let words = format!("more than {MOST} resources would be watched");
            return Err(CallError::new(Kind::BadInput, words));
        };
        let watching = ask(voice, server, uri, off).await?;
        self.told(package, uri, watching);
        Ok(())
    }

    /// Of this it is told no more.
    pub(crate) fn end(&self, uri: &str) {
        lock(&self.all).remove(uri);
    }

    /// Notes a resource that is about to be told of, where there is room for it.
    fn note<'w>(&'w self, package: &str, uri: &'w str) -> Option<Asking<'w>> {
        let mut all = lock(&self.all);
        let asking = |own| Some(Asking { watches: self, uri, own });
        if let Some(one) = all.get(uri).filter(|one| one.package == package) {
            let others = match &one.telling {
                Telling::Begun(own) => own.upgrade(),
                Telling::By(..) | Telling::Lapsed(_) => None,
            };
            return asking(others.unwrap_or_default());
        }
        if all.len() >= MOST && !all.contains_key(uri) {
            return None;
        }
        let own = Arc::default();
        let telling = Telling::Begun(Arc::downgrade(&own));
        let begun = Watch { package: package.to_owned(), telling, pause: FIRST_PAUSE };
        all.insert(uri.to_owned(), begun);
        asking(own)
    }

    fn told(&self, package: &str, uri: &str, watching: Watching) {
        // Where it was ended meanwhile, nobody keeps it.
        if let Some(one) = lock(&self.all).get_mut(uri)
            && one.package == package
        {
            one.telling = Telling::By(watching, Instant::now());
        }
    }

    /// Asks a server for what it told of before. What it tells of again may have changed meanwhile.
    async fn again(&self, voice: &Voice, server: &Server, uris: &[String], tell: &Tell<'_>) {
        let gone = CancellationToken::new();
        // The first shows whether it answers.
        let (first, others) = uris.split_at(uris.len().min(1));
        for some in [first, others] {
            let each = some.iter().map(|uri| {
                let asking = ask(voice, server, uri, &gone);
                async move { (uri, asking.await) }
            });
            let each = stream::iter(each.collect::<Vec<_>>()).take_until(gone.cancelled());
            let mut asked = std::pin::pin!(each.buffer_unordered(AT_A_TIME));
            while let Some((uri, asked)) = asked.next().await {
                match asked {
                    Ok(watching) => {
                        self.told(&server.package.id, uri, watching);
                        tell(uri);
                    }
                    Err(_) if gone.is_cancelled() => {}
                    Err(error) => {
                        let is_gone = Error::of_server(&error).is_none();
                        // Of one that does not answer, the others need not be asked for, too.
                        self.postpone(&server.package.id, |one| is_gone || one == uri);
                        if is_gone {
                            gone.cancel();
                        }
                    }
                }
            }
        }
    }

    fn postpone(&self, package: &str, is_meant: impl Fn(&str) -> bool) {
        let mut all = lock(&self.all);
        for (_, one) in all.iter_mut().filter(|(uri, one)| one.package == package && is_meant(uri))
        {
            if let Telling::Lapsed(due) = &mut one.telling {
                *due = Instant::now() + one.pause;
                one.pause = (one.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// What is to be asked for again by now, and of whom. What is not shown any more is not watched either.
    fn lapsed<'s>(&self, servers: &'s [Server], now: Instant) -> Vec<(&'s Server, Vec<String>)> {
        let mut due: HashMap<&str, (&Server, Vec<String>)> = HashMap::new();
        for (uri, one) in &mut *lock(&self.all) {
            let server = servers.iter().find(|server| server.package.id == one.package);
            if let Telling::By(watching, since) = &one.telling
                && (server.is_none() || !watching.is_well())
            {
                // One that keeps ending is asked less and less often.
                let is_due = now.duration_since(*since) > LONGEST_PAUSE;
                let pause = if is_due { Duration::ZERO } else { one.pause };
                one.pause = if is_due { FIRST_PAUSE } else { (one.pause * 2).min(LONGEST_PAUSE) };
                one.telling = Telling::Lapsed(now + pause);
            }
            if let (Telling::Lapsed(at), Some(server)) = (&one.telling, server)
                && *at <= now
            {
                let (_, uris) = due.entry(&server.package.id).or_insert((server, Vec::new()));
                uris.push(uri.clone());
            }
        }
        due.into_values().collect()
    }

    /// Nothing is watched until somebody can be told again.
    fn rest(&self) {
        for one in lock(&self.all).values_mut() {
            if let Telling::By(..) = one.telling {
                one.telling = Telling::Lapsed(Instant::now());
            }
        }
    }
}

/// Somebody who asks for a resource for the first time. When nobody does any more, and it is not told of, it is forgotten.
struct Asking<'w> {
    watches: &'w Watches,
    uri: &'w str,
    /// Shared with who asks for the same.
    own: Arc<()>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.watches.all);
        // It goes before the lock does, so that of two the one is the last.
        let own = std::mem::take(&mut self.own);
        let is_last = Arc::strong_count(&own) == 1;
        if let Some(Telling::Begun(begun)) = all.get(self.uri).map(|one| &one.telling)
            && is_last
            && begun.as_ptr() == Arc::as_ptr(&own)
        {
            all.remove(self.uri);
        }
    }
}

/// Tells somebody that a resource may have changed.
type Tell<'t> = dyn Fn(&str) + Sync + 't;

/// The servers that are asked again because they told no more: each by itself, so that one that hangs holds up no other.
struct Renewing<'r> {
    watches: &'r Watches,
    tell: &'r Tell<'r>,
    /// What is left is the package.
    asking: FuturesUnordered<BoxFuture<'r, String>>,
    packages: HashSet<String>,
}

impl<'r> Renewing<'r> {
    fn new(watches: &'r Watches, tell: &'r Tell<'r>) -> Self {
        let (asking, packages) = Default::default();
        Self { watches, tell, asking, packages }
    }

    /// Goes on with those that are being asked, for as long as it takes until it is looked again.
    async fn go_on(&mut self) {
        let asking = async {
            while let Some(package) = self.asking.next().await {
                self.packages.remove(&package);
            }
            std::future::pending::<()>().await;
        };
        let _ = timeout(LOOK_AGAIN, asking).await;
    }

    /// Begins to ask those that tell no more, and are not being asked.
    fn look(&mut self, gateway: &Gateway, asked: &Asked) {
        let (watches, tell) = (self.watches, self.tell);
        let stock = gateway.shelf.newest();
        let servers = of_view(&stock, &asked.client.view);
        for (server, uris) in watches.lapsed(&servers, Instant::now()) {
            let package = server.package.id.clone();
            if !self.packages.insert(package.clone()) {
                continue;
            }
            let (voice, server) = (Voice::of(&stock, asked), server.clone());
            let asking = async move {
                watches.again(&voice, &server, &uris, tell).await;
                package
            };
            self.asking.push(asking.boxed());
        }
    }
}

/// Asks a server to tell of a resource.
async fn ask(
    voice: &Voice,
    server: &Server,
    uri: &str,
    off: &CancellationToken,
) -> Result<Watching, CallError> {
    let replied = voice.ask(server, "resources/subscribe", json!({ "uri": uri }), off).await?;
    let no_uri = || CallError::new(Kind::BadInput, "this is no address of a resource");
    replied.watching.ok_or_else(no_uri)
}

/// `resources/subscribe` of the older era.
pub(crate) async fn subscribe(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    uri: &str,
) -> Result<(), Error> {
    let client = &asked.client;
    servers::watch(gateway, asked, &client.watches, uri).await?;
    if !client.watches.is_kept.swap(true, Ordering::AcqRel) {
        let (gateway, watches) = (Arc::downgrade(gateway), Arc::clone(&client.watches));
        tokio::spawn(keep(gateway, Arc::downgrade(client), watches));
    }
    Ok(())
}

/// Sees to it that servers go on telling a client of the older era, for as long as it is there.
async fn keep(gateway: Weak<Gateway>, client: Weak<Client>, watches: Arc<Watches>) {
    let tell = |uri: &str| {
        if let Some(client) = client.upgrade() {
            client.notify(UPDATED, &json!({ "uri": uri }));
        }
    };
    let mut renewing = Renewing::new(&watches, &tell);
    loop {
        renewing.go_on().await;
        let (Some(gateway), Some(client)) = (gateway.upgrade(), client.upgrade()) else { return };
        if !client.is_heard() {
            watches.rest();
            continue;
        }
        let Some(asked) = beside(&client) else { return };
        renewing.look(&gateway, &asked);
    }
}

/// The same for a subscription, which is told what was told of again; for as long as this is waited for.
pub(crate) async fn keep_for(gateway: &Gateway, asked: &Asked, watches: &Watches, tell: &Tell<'_>) {
    let mut renewing = Renewing::new(watches, tell);
    loop {
        renewing.go_on().await;
        renewing.look(gateway, asked);
    }
}

/// What is asked for a client of the older era beside its requests.
fn beside(client: &Arc<Client>) -> Option<Asked> {
    let greeting = client.greeting()?;
    Some(Asked {
        client: Arc::clone(client),
        revision: greeting.revision,
        capabilities: greeting.capabilities,
        meta: Meta::default(),
        id: Id::own(0),
        line: Line::new().0,
        cancel: CancellationToken::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asks_for_any_more_and_no_server_tells_of_is_forgotten() {
        let watches = Watches::default();
        let (one, other) = (watches.note("p", "x://a"), watches.note("p", "x://a"));
        drop(one);
        assert!(watches.has("p", "x://a"), "somebody still asks");
        drop(other);
        assert!(!watches.has("p", "x://a"));
    }

    #[test]
    fn who_asked_before_it_was_ended_takes_nothing_from_who_asks_since() {
        let watches = Watches::default();
        let before = watches.note("p", "x://a");
        watches.end("x://a");
        let since = watches.note("p", "x://a");
        drop(before);
        assert!(watches.has("p", "x://a"));
        drop(since);
        assert!(!watches.has("p", "x://a"));
    }

    #[test]
    fn so_many_are_watched_and_no_more() {
        let watches = Watches::default();
        let uris: Vec<_> = (0..MOST).map(|number| format!("x://{number}")).collect();
        let all: Vec<_> = uris.iter().map(|uri| watches.note("p", uri).unwrap()).collect();
        assert!(watches.note("p", "x://more").is_none());
        assert!(watches.note("p", &uris[0]).is_some());
        drop(all);
        assert!(watches.note("p", "x://more").is_some());
    }
}
