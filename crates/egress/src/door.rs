//! The way out of a program that knows of no proxy: the address it came to says which name it means.

use std::net::IpAddr;

use tokio::io::BufReader;
use tokio::net::TcpStream;

use crate::gate::Gate;
use crate::host::{Host, Name, Port, Target};
use crate::names::Names;
use crate::rules::{Decision, HOST_MACHINE};
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
    let meant = client.local_addr().ok()?;
    let port = Port::new(meant.port())?;
    let to = |name| Target { host: Host::Name(name), port };
    if HOST_MACHINE.contains(&meant.ip()) {
        // Whoever was granted `localhost:3000` or `127.0.0.1:3000` writes just that, and has nothing of its own there.
        let machine = to(Name::parse(Name::HOST_MACHINE).ok()?);
        return matches!(gate.decide(&machine), Decision::Allowed(_)).then_some(machine);
    }
    let IpAddr::V4(stands_for) = meant.ip() else { return None };
    names.behind(stands_for).map(to)
}
