//! From the first byte of a client to the last.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::answer;
use crate::attempt::{Outcome, Record};
use crate::escape::escaped;
use crate::exchange::exchange;
use crate::gate::Gate;
use crate::head::{HeadError, Request, Wanted};
use crate::rules::Refusal;
use crate::socks;
use crate::stream::{NoHead, PIECE, read_head};
use crate::tunnel::tunnel;

/// How long, and for how many bytes, a client is listened to after its answer. Closing at once
/// while it still sends would reset the connection, and it would never see the answer.
const FAREWELL_TIME: Duration = Duration::from_secs(2);
const FAREWELL_BYTES: u64 = 1024 * 1024;

/// What a client is told when its tunnel stands.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Serves one client: one request, one answer.
pub(crate) async fn serve(client: TcpStream, gate: &Gate) {
    // Small pieces are passed on as they come; should that fail, they are only slower.
    let _ = client.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let mut client = Client { from: BufReader::with_capacity(PIECE, from_client), to: to_client };
    let deadline = Instant::now() + gate.limits.head_time;
    let first = match timeout_at(deadline, client.from.fill_buf()).await {
        Ok(Ok(piece)) => piece.first().copied(),
        Ok(Err(_)) | Err(_) => None,
    };
    // A client that breaks off has nobody left to be told.
    let _ = match first {
        None => Ok(()),
        Some(socks::VERSION) => socks::serve(&mut client.from, &mut client.to, gate).await,
        Some(_) => client.serve_http(gate, deadline).await,
    };
}

struct Client {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Client {
    async fn serve_http(mut self, gate: &Gate, deadline: Instant) -> io::Result<()> {
        let mut head = Vec::new();
        let read = read_head(&mut self.from, gate.limits.head_bytes, &mut head);
        let request = match timeout_at(deadline, read).await {
            Ok(Ok(())) => Request::parse(&head, &gate.limits).map_err(malformed),
            Ok(Err(NoHead::Bad(error))) => Err(malformed(error)),
            Ok(Err(NoHead::Left)) => Err((None, Outcome::ClientLeft)),
            Err(_) => Err((None, Outcome::Malformed(HeadError::TimedOut))),
        };
        let request = match request {
            Ok(request) => request,
            Err((asked, outcome)) => {
                let first_line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next();
                let asked = asked.unwrap_or_else(|| escaped(first_line.unwrap_or_default()));
                return self.end(gate.record_of_text(asked), outcome).await;
            }
        };
        let mut record = gate.record(&request.target);
        let server = match gate.pass(&request.target, &mut record).await {
            Ok(server) => server,
            Err(outcome) => return self.end(record, outcome).await,
        };
        let Client { from, to } = &mut self;
        match &request.wanted {
            Wanted::Tunnel => {
                let outcome = match to.write_all(ESTABLISHED).await {
                    Ok(()) => tunnel(from, to, server, &record, &gate.limits).await,
                    Err(_) => Outcome::ClientLeft,
                };
                record.end(outcome);
                Ok(())
            }
            Wanted::Fetch { path, framing } => {
                let part = (path.as_str(), *framing);
                let outcome =
                    exchange(&request, part, from, to, server, &record, &gate.limits).await;
                self.end(record, outcome).await
            }
        }
    }

    /// Reports how it ended and, unless a response is under way, tells the client too.
    async fn end(mut self, record: Record, outcome: Outcome) -> io::Result<()> {
        let is_unanswered = record.down.load(Ordering::Relaxed) == 0;
        let answer = answer(record.asked(), &outcome).filter(|_| is_unanswered);
        let is_whole = matches!(outcome, Outcome::Completed) || answer.is_some();
        record.end(outcome);
        if let Some(answer) = answer {
            timeout(FAREWELL_TIME, self.to.write_all(&answer)).await??;
        }
        if is_whole {
            self.to.shutdown().await?;
            let mut rest = (&mut self.from).take(FAREWELL_BYTES);
            timeout(FAREWELL_TIME, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await??;
        } else {
            // A reset, so that nobody takes a part of a response for the whole.
            self.to.as_ref().set_zero_linger()?;
            self.to.forget();
        }
        Ok(())
    }
}

/// An odd target is refused like one that is not granted; any other flaw is the client's own.
fn malformed(error: HeadError) -> (Option<String>, Outcome) {
    match error {
        HeadError::Target { asked, error } => {
            (Some(asked), Outcome::Refused(Refusal::Spelling(error)))
        }
        error => (None, Outcome::Malformed(error)),
    }
}
