//! One plain request and its response.

use std::sync::atomic::Ordering;

use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::attempt::{Outcome, Record};
use crate::gate::idle;
use crate::head::{Framing, HeadError, Request, Response};
use crate::limits::Limits;
use crate::stream::{Broken, NoHead, PIECE, pass_body, read_head};

/// How many interim responses a server may send before its answer.
const INTERIM: usize = 16;

/// Sends a request on and its response back.
///
/// Both go on at once, because a server may want to say `100 Continue`, or answer before it has
/// seen the whole body. Nothing of the client passes but this one request.
pub(crate) async fn exchange(
    request: &Request,
    (path, framing): (&str, Framing),
    from_client: &mut (impl AsyncBufRead + Unpin),
    to_client: &mut (impl AsyncWrite + Unpin),
    server: TcpStream,
    record: &Record,
    limits: &Limits,
) -> Outcome {
    let (from_server, to_server) = server.into_split();
    let up = send(request, (path, framing), from_client, to_server, record);
    let down = receive(request, from_server, to_client, record, limits);
    let both = async {
        tokio::pin!(up, down);
        tokio::select! {
            outcome = &mut down => outcome,
            sent = &mut up => match sent {
                // The server may have said why it does not listen any more.
                Ok(_) | Err(Broken::To) => down.await,
                Err(Broken::From) => Outcome::ClientLeft,
                Err(Broken::Chunks) => Outcome::BadBody,
            },
        }
    };
    tokio::select! {
        outcome = both => outcome,
        () = idle(record, limits.idle_time) => Outcome::Idle,
    }
}

/// Sends the request. The half comes back unclosed: a server may take its end for a client that left.
async fn send(
    request: &Request,
    (path, framing): (&str, Framing),
    from_client: &mut (impl AsyncBufRead + Unpin),
    mut to_server: OwnedWriteHalf,
    record: &Record,
) -> Result<OwnedWriteHalf, Broken> {
    let head = request.for_server(path, framing);
    to_server.write_all(&head).await.map_err(|_| Broken::To)?;
    record.up.fetch_add(head.len() as u64, Ordering::Relaxed);
    pass_body(from_client, &mut to_server, (framing, framing), &record.up).await?;
    Ok(to_server)
}

async fn receive(
    request: &Request,
    from_server: OwnedReadHalf,
    to_client: &mut (impl AsyncWrite + Unpin),
    record: &Record,
    limits: &Limits,
) -> Outcome {
    let mut from_server = BufReader::with_capacity(PIECE, from_server);
    for _ in 0..=INTERIM {
        let mut head = Vec::new();
        let response = match read_head(&mut from_server, limits.head_bytes, &mut head).await {
            Ok(()) => Response::parse(&head, limits),
            Err(NoHead::Left) => return Outcome::ServerLeft,
            Err(NoHead::Bad(error)) => Err(error),
        };
        let response = match response {
            // Nobody asked for another protocol.
            Ok(response) if response.status == 101 => {
                return Outcome::BadResponse(HeadError::FirstLine);
            }
            Ok(response) => response,
            Err(error) => return Outcome::BadResponse(error),
        };
        let framing = response.framing(&request.method);
        let onward = Response::framing_for(framing, request.version);
        let head = response.for_client(onward);
        if to_client.write_all(&head).await.is_err() {
            return Outcome::ClientLeft;
        }
        record.down.fetch_add(head.len() as u64, Ordering::Relaxed);
        if response.is_interim() {
            continue;
        }
        return match pass_body(&mut from_server, to_client, (framing, onward), &record.down).await {
            Ok(()) => Outcome::Completed,
            Err(Broken::From) => Outcome::ServerLeft,
            Err(Broken::To) => Outcome::ClientLeft,
            Err(Broken::Chunks) => Outcome::ServerLeft,
        };
    }
    Outcome::BadResponse(HeadError::TooLarge)
}
