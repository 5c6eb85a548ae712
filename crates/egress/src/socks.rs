//! One request of SOCKS5 (RFC 1928), for programs that speak no HTTP.
//!
//! Only `CONNECT`, only without a password. Names are resolved here, never by the client.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncBufRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::attempt::Outcome;
use crate::escape::escaped;
use crate::gate::Gate;
use crate::head::HeadError;
use crate::host::{Host, Port, Target, TargetError};
use crate::rules::Refusal;
use crate::tunnel::tunnel;

/// The first byte of every message.
pub(crate) const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// What the client asked for.
enum Asked {
    Target(Target),
    /// No target, and why.
    Odd(String, TargetError),
    /// Something this proxy does not do, and the code that says so.
    Unsupported(String, u8),
}

/// Serves one client from its first byte on.
pub(crate) async fn serve(
    from_client: &mut (impl AsyncBufRead + Unpin),
    to_client: &mut (impl AsyncWrite + Unpin),
    gate: &Gate,
) -> io::Result<()> {
    let deadline = Instant::now() + gate.limits.head_time;
    let asked = timeout_at(deadline, read_request(from_client, to_client)).await??;
    let target = match asked {
        Asked::Target(target) => target,
        Asked::Odd(text, error) => {
            gate.record_of_text(text).end(Outcome::Refused(Refusal::Spelling(error)));
            return reply(to_client, 2).await;
        }
        Asked::Unsupported(text, code) => {
            gate.record_of_text(text).end(Outcome::Malformed(HeadError::NotForProxy));
            return reply(to_client, code).await;
        }
    };
    let mut record = gate.record(&target);
    match gate.pass(&target, &mut record).await {
        Ok(server) => {
            let outcome = match reply(to_client, 0).await {
                Ok(()) => tunnel(from_client, to_client, server, &record, &gate.limits).await,
                Err(_) => Outcome::ClientLeft,
            };
            record.end(outcome);
            Ok(())
        }
        Err(outcome) => {
            let code = code_of(&outcome);
            record.end(outcome);
            reply(to_client, code).await
        }
    }
}

async fn read_request(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Asked> {
    let [_version, methods] = read_bytes(from).await?;
    let mut offered = vec![0; usize::from(methods)];
    from.read_exact(&mut offered).await?;
    if !offered.contains(&NO_PASSWORD) {
        to.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(io::ErrorKind::Unsupported.into());
    }
    to.write_all(&[VERSION, NO_PASSWORD]).await?;
    let [version, command, _reserved, kind] = read_bytes(from).await?;
    let (text, host) = match kind {
        1 => {
            let address = Ipv4Addr::from(read_bytes::<4>(from).await?);
            (address.to_string().into_bytes(), Ok(Host::Ip(address.into())))
        }
        3 => {
            let [length] = read_bytes(from).await?;
            let mut text = vec![0; usize::from(length)];
            from.read_exact(&mut text).await?;
            let host = Host::parse(&text);
            (text, host)
        }
        4 => {
            let address = Ipv6Addr::from(read_bytes::<16>(from).await?);
            (format!("[{address}]").into_bytes(), Ok(Host::Ip(address.into())))
        }
        _ => return Ok(Asked::Unsupported(format!("SOCKS address of kind {kind}"), 8)),
    };
    let number = u16::from_be_bytes(read_bytes(from).await?);
    if version != VERSION || command != CONNECT {
        let asked = format!("SOCKS command {command} for {}:{number}", escaped(&text));
        return Ok(Asked::Unsupported(asked, 7));
    }
    let target = match (host, Port::new(number)) {
        (Ok(host), Some(port)) => Ok(Target { host, port }),
        (Err(error), _) => Err(error),
        (_, None) => Err(TargetError::Port),
    };
    Ok(match target {
        Ok(target) => Asked::Target(target),
        Err(error) => Asked::Odd(format!("{}:{number}", escaped(&text)), error),
    })
}

async fn read_bytes<const N: usize>(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Says how it went. The address we connect from is nobody's business.
async fn reply(to: &mut (impl AsyncWrite + Unpin), code: u8) -> io::Result<()> {
    to.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

fn code_of(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Refused(_) => 2,
        Outcome::Unresolved(_) | Outcome::ConnectTimedOut => 4,
        Outcome::Unreachable(_, error) if error.kind() == io::ErrorKind::ConnectionRefused => 5,
        Outcome::Unreachable(..) => 4,
        _ => 1,
    }
}
