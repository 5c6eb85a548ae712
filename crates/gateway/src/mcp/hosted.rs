//! The servers that a view shows, and whoever asks them on behalf of a client.

use std::sync::Arc;

use host::{CallError, CancellationToken, Host, Kind, Peer, Progress, Replied, Request, Tool};
use policy::Surface;
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::{Asked, Asker, Question};
use crate::shelf::{Shelved, Stock};
use crate::undertaking::Undertaking;
use crate::view::View;

/// A server that is installed.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) package: Arc<Shelved>,
    tool: Arc<Tool>,
}

impl Server {
    fn of(package: &Arc<Shelved>) -> Option<Self> {
        let tool = package.tool.as_ref().ok().filter(|tool| tool.surface.is_some())?;
        package.is_enabled.then(|| Self { package: Arc::clone(package), tool: Arc::clone(tool) })
    }
}

/// The servers whose prompts and resources a view shows.
pub(crate) fn of_view(stock: &Stock, view: &View) -> Vec<Server> {
    let shown = stock.packages.iter().filter(|one| shows_all_of(stock, view, &one.id));
    shown.filter_map(Server::of).collect()
}

/// Whether a view shows all of a package: a profile that names single actions of it shows those, and nothing else that it has.
pub(crate) fn shows_all_of(stock: &Stock, view: &View, package: &str) -> bool {
    match &*view.under(&stock.policy) {
        View::Usual | View::All => true,
        View::Raw(id) => stock.package(id).is_some_and(|named| named.id == package),
        View::Profile(name) => {
            let profile = stock.policy.profiles.get(name);
            profile.is_some_and(|profile| profile.holds_all_of(package))
        }
    }
}

/// The server of a package that a view shows anything of.
pub(crate) fn of_package(stock: &Stock, view: &View, package: &str) -> Option<Server> {
    let list = stock.list(view);
    let mut offers = list.offers.iter().map(|(_, offer)| &offer.package);
    Server::of(offers.find(|one| one.id == package)?)
}

/// Whoever asks servers on behalf of a client.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    host: Host,
    surface: Surface,
    peer: Arc<Asker>,
    progress: Option<Arc<dyn Progress>>,
}

impl Voice {
    pub(crate) fn of(stock: &Stock, asked: &Asked) -> Self {
        // Whoever is not asked at once has nobody here to be asked in the middle of this.
        let later = asked.revision.is_stateless().then(|| mpsc::channel(1).0);
        let peer = asked.asker(later);
        let progress = asked.progress();
        Self { host: stock.host.clone(), surface: asked.surface(), peer, progress }
    }

    /// The same voice, whose questions are handed over.
    pub(crate) fn asking_later(self, asked: &Asked, later: mpsc::Sender<Question>) -> Self {
        Self { peer: asked.asker(Some(later)), ..self }
    }

    /// Asks a server for something. Where nobody waits for the answer any more, that is called off.
    pub(crate) async fn ask(
        &self,
        server: &Server,
        method: &str,
        params: Value,
        off: &CancellationToken,
    ) -> Result<Replied, CallError> {
        let asked = self.begin(server, method, params, off).await;
        asked.unwrap_or_else(|words| Err(CallError::new(Kind::Unavailable, words)))
    }

    /// The same, which somebody else waits for.
    pub(crate) fn begin(
        &self,
        server: &Server,
        method: &str,
        params: Value,
        off: &CancellationToken,
    ) -> Undertaking<Result<Replied, CallError>> {
        let (voice, tool, method) = (self.clone(), Arc::clone(&server.tool), method.to_owned());
        // Others may go by the one that is given.
        let off = off.child_token();
        let called_off = off.clone();
        let asking = async move {
            let Self { host, surface, peer, progress } = voice;
            let peer: Option<Arc<dyn Peer>> = Some(peer);
            let request = Request { method: &method, params, surface: &surface, peer, progress };
            host.request(&tool, request, &called_off).await
        };
        Undertaking::of(asking, off)
    }
}
