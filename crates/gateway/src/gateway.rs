//! Everything that the faces of a gateway share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use host::{CallError, Host, Made, Notice, Replied};
use tokio::task::JoinHandle;
use trace::Traces;

use crate::door::Door;
use crate::mcp::client::{Client, lock};
use crate::mcp::elsewhere::{self, Elsewhere};
use crate::mcp::hosted::shows_all_of;
use crate::mcp::listings::Listings;
use crate::mcp::seal::Seal;
use crate::mcp::tasks::Tasks;
use crate::mcp::waiting::Waiting;
use crate::shelf::{Shelf, Stock};
use crate::sign_ins::SignIns;
use crate::steward::Steward;
use crate::watch::Watch;

/// How often it is looked whether what is installed and granted has changed, while anybody is there to be told or anything of it
/// runs: what is taken away ends then, whether or not it is called.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long calls may take to end that are called off.
const FAREWELL: Duration = Duration::from_secs(5);

/// What whoever starts a gateway decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is handed to clients to bring back is sealed with it.
    pub key: [u8; 32],
    /// Who is told where the time of calls goes.
    pub traces: Option<Traces>,
}

/// Every installed tool, behind one entry.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) shelf: Shelf,
    pub(crate) seal: Seal,
    /// Calls, and other requests to servers, that wait for answers of their clients.
    pub(crate) calls: Waiting<Made>,
    pub(crate) requests: Waiting<Result<Replied, CallError>>,
    pub(crate) listings: Listings,
    pub(crate) tasks: Tasks,
    pub(crate) elsewhere: Elsewhere,
    pub(crate) watch: Arc<Watch>,
    /// Where the console is, once it is: an address without a slash at its end.
    console: OnceLock<String>,
    /// Where agents speak MCP over HTTP, where they do.
    pub(crate) mcp: OnceLock<String>,
    /// Whether agents of other machines are among them.
    pub(crate) is_for_others: AtomicBool,
    /// The console, where it is served by itself.
    pub(crate) console_served: Mutex<Option<JoinHandle<()>>>,
    /// Who may see the console.
    pub(crate) door: Door,
    /// Those who are about to sign in for a package.
    pub(crate) sign_ins: SignIns,
    /// Those who are told of changes.
    clients: Mutex<Vec<Weak<Client>>>,
}

impl Gateway {
    /// Opens a gateway on what is installed; the host makes the calls.
    pub async fn open(
        steward: Arc<dyn Steward>,
        host: Host,
        options: Options,
    ) -> Result<Arc<Self>, String> {
        let shelf = Shelf::open(steward, host.clone()).await?;
        let mut seal = Seal::new(&options.key);
        if host.records().state.is_shared() {
            seal = seal.of_one().ok_or("there is no randomness")?;
        }
        let gateway = Arc::new(Self {
            shelf,
            seal,
            calls: Waiting::default(),
            requests: Waiting::default(),
            listings: Listings::default(),
            tasks: Tasks::default(),
            elsewhere: Elsewhere::default(),
            watch: Arc::new(Watch::new(options.traces)),
            console: OnceLock::new(),
            mcp: OnceLock::new(),
            is_for_others: AtomicBool::new(false),
            console_served: Mutex::default(),
            door: Door::default(),
            sign_ins: SignIns::default(),
            clients: Mutex::default(),
        });
        let told = Arc::downgrade(&gateway);
        host.listen(move |package, notice| {
            if let Some(gateway) = told.upgrade() {
                gateway.heard(package, &notice);
            }
        });
        tokio::spawn(elsewhere::serve(Arc::downgrade(&gateway)));
        let watched = Arc::downgrade(&gateway);
        tokio::spawn(async move {
            let mut known = 0;
            loop {
                tokio::time::sleep(LOOK_AGAIN).await;
                let Some(gateway) = watched.upgrade() else { return };
                gateway.calls.tidy();
                gateway.requests.tidy();
                gateway.tasks.tidy();
                gateway.sign_ins.tidy(Instant::now());
                let is_busy = gateway.shelf.host().is_busy();
                if is_busy || gateway.has_clients() {
                    known = gateway.look_again(known).await;
                }
                if is_busy {
                    gateway.shelf.host().end_ungranted().await;
                }
            }
        });
        Ok(gateway)
    }

    /// Says where the console is; whether that is so, and not somewhere else already.
    pub fn has_console_at(&self, place: SocketAddr) -> bool {
        self.console.set(format!("http://{place}")).is_ok()
    }

    /// Where the console is, where there is one: an address without a slash at its end.
    pub(crate) fn console(&self) -> Option<&str> {
        self.console.get().map(String::as_str)
    }

    /// The same, as agents are told it: those of other machines would not find it there.
    pub(crate) fn console_told(&self) -> Option<&str> {
        self.console().filter(|_| !self.is_for_others.load(Ordering::Relaxed))
    }

    /// Waits until a console that is served by itself has ended.
    pub async fn console_closed(&self) {
        let served = lock(&self.console_served).take();
        if let Some(served) = served {
            let _ = served.await;
        }
    }

    /// An address that signs the owner in to the console, once and soon; none where there is no console.
    pub fn sign_in_link(&self) -> Option<String> {
        let console = self.console()?;
        Some(format!("{console}/sign-in/{}", self.door.code(Instant::now())?))
    }

    /// What is installed now.
    pub(crate) async fn stock(&self) -> Arc<Stock> {
        self.shelf.stock().await
    }

    /// Has nobody wait for changes any more; who does has nothing else done either.
    pub(crate) fn dismiss(&self) {
        self.clients().iter().for_each(|client| client.leave());
    }

    /// Calls off whatever is under way, and waits until it has ended: the log says so of each call.
    pub(crate) async fn call_off(&self) {
        let _ = tokio::time::timeout(FAREWELL, self.shelf.host().end_calls()).await;
    }

    /// Ends everything that runs for somebody; what has to be kept is kept.
    pub async fn close(&self) {
        self.dismiss();
        self.elsewhere.close(FAREWELL).await;
        self.call_off().await;
        self.calls.clear();
        self.requests.clear();
        self.tasks.clear();
        self.sign_ins.clear();
        let stock = self.stock().await;
        stock.host.settle().await;
        let _ = stock.host.records().settle().await;
        for package in &stock.packages {
            stock.host.retire(&package.id);
        }
    }

    /// Remembers a client that is told of changes for as long as it is there.
    pub(crate) fn join(&self, client: &Arc<Client>) {
        let mut clients = lock(&self.clients);
        clients.retain(|one| one.strong_count() > 0);
        if !clients.iter().any(|one| one.as_ptr() == Arc::as_ptr(client)) {
            clients.push(Arc::downgrade(client));
        }
    }

    fn clients(&self) -> Vec<Arc<Client>> {
        lock(&self.clients).iter().filter_map(Weak::upgrade).collect()
    }

    /// What there is now, for those who count.
    pub(crate) async fn counted(&self) -> String {
        let stock = self.stock().await;
        let enabled = stock.packages.iter().filter(|one| one.is_enabled).count();
        self.watch.text(&[
            ("packages", stock.packages.len()),
            ("packages_enabled", enabled),
            ("tools", stock.offers.len()),
            ("clients", self.clients().len()),
        ])
    }

    fn has_clients(&self) -> bool {
        lock(&self.clients).iter().any(|one| one.strong_count() > 0)
    }

    /// Tells everybody who listens when other tools are there than before.
    async fn look_again(&self, known: u64) -> u64 {
        let stock = self.stock().await;
        if stock.number != known {
            self.listings.forget_all();
            for client in self.clients() {
                for of in ["tools", "prompts", "resources"] {
                    client.changed(of);
                }
            }
        }
        stock.number
    }

    /// A server said something to nobody in particular.
    fn heard(&self, package: &str, notice: &Notice) {
        match notice.method {
            // What agents are shown of its tools is what was approved, whatever it offers now.
            "notifications/tools/list_changed" => {}
            "notifications/prompts/list_changed" => {
                self.listings.forget(package);
                self.changed(package, "prompts");
            }
            "notifications/resources/list_changed" => {
                self.listings.forget(package);
                self.changed(package, "resources");
            }
            _ => {
                let Some(uri) = notice.params["uri"].as_str() else { return };
                for client in self.clients_shown(package) {
                    client.updated(package, uri, &notice.params);
                }
            }
        }
    }

    /// Tells those who are shown all of a package that it has other prompts or resources.
    pub(crate) fn changed(&self, package: &str, of: &'static str) {
        self.clients_shown(package).iter().for_each(|client| client.changed(of));
    }

    /// Those who are shown all of a package.
    fn clients_shown(&self, package: &str) -> Vec<Arc<Client>> {
        let (stock, mut clients) = (self.shelf.newest(), self.clients());
        clients.retain(|client| shows_all_of(&stock, &client.view, package));
        clients
    }
}
