//! All that one program reaches: the proxy, the names, the doors.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::attempt::Attempt;
use crate::gate::Gate;
use crate::host::Port;
use crate::limits::Limits;
use crate::names::{self, Names};
use crate::resolve::Resolve;
use crate::rules::Rules;
use crate::{connection, door};

/// How long to wait when no client can be accepted, say for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What a program reaches of us, each perhaps of another network namespace; what is dialled is of this one.
#[derive(Debug)]
pub struct Ends {
    /// Where programs ask for a connection, by HTTP or SOCKS5.
    pub proxy: std::net::TcpListener,
    /// Where they ask for names.
    pub names: Option<std::net::UdpSocket>,
    /// Where they come to when they know of no proxy.
    pub doors: Vec<std::net::TcpListener>,
}

impl From<std::net::TcpListener> for Ends {
    /// A proxy alone.
    fn from(proxy: std::net::TcpListener) -> Self {
        Self { proxy, names: None, doors: Vec::new() }
    }
}

/// A proxy that serves its ends until it is stopped or dropped; its connections end with it.
pub struct Proxy {
    address: SocketAddr,
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts to serve, inside a tokio runtime with its clock and its I/O enabled.
    ///
    /// `report` is called on the runtime's own threads, so it must return soon.
    pub fn start(
        ends: impl Into<Ends>,
        rules: Rules,
        resolver: impl Resolve + 'static,
        limits: Limits,
        report: impl Fn(Attempt) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let Ends { proxy, names: asked, doors } = ends.into();
        let gate = Gate::new(rules, Box::new(resolver), limits, Arc::new(report));
        let (stop, stopped) = watch::channel(());
        let places = Arc::new(Semaphore::new(gate.limits.connections.max(1)));
        let desk = Desk { gate: Arc::new(gate), places, stopped };
        let proxy = listening(proxy)?;
        let address = proxy.local_addr()?;
        let doors = doors.into_iter().map(listening).collect::<io::Result<Vec<_>>>()?;
        let port = |door: &TcpListener| door.local_addr().ok().and_then(|at| Port::new(at.port()));
        let names = Arc::new(Names::new(doors.iter().filter_map(port).collect()));
        let mut tasks = JoinSet::new();
        let gate = Arc::clone(&desk.gate);
        tasks.spawn(desk.clone().serve_all(proxy, move |client| {
            let gate = Arc::clone(&gate);
            async move { connection::serve(client, &gate).await }
        }));
        for one in doors {
            let (gate, names) = (Arc::clone(&desk.gate), Arc::clone(&names));
            tasks.spawn(desk.clone().serve_all(one, move |client| {
                let (gate, names) = (Arc::clone(&gate), Arc::clone(&names));
                async move { door::serve(client, &names, &gate).await }
            }));
        }
        if let Some(asked) = asked {
            asked.set_nonblocking(true)?;
            tasks.spawn(desk.answer_all(UdpSocket::from_std(asked)?, names));
        }
        Ok(Self { address, stop, tasks })
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and returns when each has been reported.
    pub async fn stop(self) {
        drop(self.stop);
        self.tasks.join_all().await;
    }
}

fn listening(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// What all who serve have in common.
#[derive(Clone)]
struct Desk {
    gate: Arc<Gate>,
    /// For so many clients at a time.
    places: Arc<Semaphore>,
    /// When its other end is dropped, every loop ends, and with it every connection.
    stopped: watch::Receiver<()>,
}

impl Desk {
    async fn serve_all<F>(mut self, listener: TcpListener, serve: impl Fn(TcpStream) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            let next = async {
                let place = Arc::clone(&self.places).acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                _ = self.stopped.changed() => break,
                (place, accepted) = next => match accepted {
                    Ok((client, _)) => {
                        let served = serve(client);
                        connections.spawn(async move {
                            served.await;
                            drop(place);
                        });
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        connections.shutdown().await;
    }

    async fn answer_all(mut self, socket: UdpSocket, names: Arc<Names>) {
        let mut question = [0; names::LONGEST];
        loop {
            tokio::select! {
                _ = self.stopped.changed() => break,
                asked = socket.recv_from(&mut question) => match asked {
                    Ok((length, from)) => {
                        if let Some(answer) = names.answer(&question[..length], &self.gate) {
                            // Who is gone needs no answer; who got none asks again.
                            let _ = socket.try_send_to(&answer, from);
                        }
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
                },
            }
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}
