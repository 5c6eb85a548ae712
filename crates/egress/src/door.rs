//! The way out of a program that knows of no proxy: the address it came to says which name it means.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::BufReader;
use tokio::net::TcpStream;

use crate::gate::Gate;
use crate::host::{Host, Name, Port, Target};
use crate::names::Names;
use crate::rules::Decision;
use crate::stream::PIECE;
use crate::tunnel::tunnel;

/// Serves one client of a door.
pub(crate) async fn serve(client: TcpStream, names: &Names, gate: &Gate) {
    // Small pieces are passed on as they come; should that fail, they are only slower.
    let _ = client.set_nodelay(true);
    let Some(target) = target(&client, names, gate) else {
        // It meant a server of its own, and nobody is there.
        let _ = client.set_zero_linger();
        return;
    };
    let mut record = gate.record(&target);
    match gate.pass(&target, &mut record).await {
        Ok(server) => {
            let (from, mut to) = client.into_split();
            let mut from = BufReader::with_capacity(PIECE, from);
            let outcome = tunnel(&mut from, &mut to, server, &record, &gate.limits).await;
            record.end(outcome);
        }
        Err(outcome) => {
            record.end(outcome);
            let _ = client.set_zero_linger();
        }
    }
}

fn target(client: &TcpStream, names: &Names, gate: &Gate) -> Option<Target> {
    let SocketAddr::V4(meant) = client.local_addr().ok()? else { return None };
    let port = Port::new(meant.port())?;
    let to = |name| Target { host: Host::Name(name), port };
    if *meant.ip() == Ipv4Addr::LOCALHOST {
        // Whoever was granted `localhost:3000` writes just that, and has nothing of its own there.
        let machine = to(Name::parse(Name::HOST_MACHINE).ok()?);
        return matches!(gate.decide(&machine), Decision::Allowed(_)).then_some(machine);
    }
    names.behind(*meant.ip()).map(to)
}
