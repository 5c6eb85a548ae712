//! A server behind two pipes. They block, so a thread reads the one and another writes the other.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::health::Health;
use super::line::{self, Fault, Line, Message};
use crate::run::said::Said;

/// How many messages wait in each direction before the other side has to.
const QUEUE: usize = 64;

/// The two pipes of a server as one wire.
#[derive(Debug)]
pub(in crate::run::mcp) struct Wire {
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    incoming: mpsc::Receiver<Message>,
    health: Arc<Health>,
    /// How long a server may keep silent about its era.
    patience: Option<Duration>,
    probe: Option<Probe>,
}

/// The question for a server's era.
#[derive(Debug)]
struct Probe {
    id: RequestId,
    /// When it is given up, unless it was.
    until: Option<tokio::time::Instant>,
}

impl Wire {
    /// Connects to the pipes of a server. One message may be so long, and as much may come unasked.
    pub(in crate::run::mcp) fn open(
        stdin: impl Write + Send + 'static,
        stdout: impl Read + Send + 'static,
        longest: u64,
        patience: Option<Duration>,
        said: Said,
    ) -> io::Result<(Self, Arc<Health>)> {
        let (outgoing, to_write) = mpsc::channel(QUEUE);
        let (was_read, incoming) = mpsc::channel(QUEUE);
        let health = Health::new(longest);
        let watched = Arc::clone(&health);
        thread("mcp-write", move || write(stdin, to_write))?;
        thread("mcp-read", move || {
            let heard = listen(stdout, longest, &was_read, &watched, &said);
            let _ = watched.noting(heard);
        })?;
        let wire = Self {
            outgoing: Some(outgoing),
            incoming,
            health: Arc::clone(&health),
            patience,
            probe: None,
        };
        Ok((wire, health))
    }

    /// The next message, or what stands for it.
    async fn next(&mut self) -> Option<Message> {
        loop {
            let Some(Probe { id, until }) = &mut self.probe else {
                return self.incoming.recv().await;
            };
            let message = match *until {
                None => self.incoming.recv().await?,
                Some(at) => match tokio::time::timeout_at(at, self.incoming.recv()).await {
                    Ok(message) => message?,
                    // Servers of the older era may leave unanswered what they do not know, so its silence is
                    // taken for that answer.
                    Err(_) => {
                        *until = None;
                        self.health.keeps_silent();
                        let silence = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "silence", None);
                        return Some(JsonRpcMessage::error(silence, Some(id.clone())));
                    }
                },
            };
            if line::answered(&message) != Some(&*id) {
                return Some(message);
            }
            let was_given_up = until.is_none();
            self.probe = None;
            if !was_given_up {
                return Some(message);
            }
        }
    }
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let (JsonRpcMessage::Request(request), Some(patience)) = (&message, self.patience)
            && let ClientRequest::DiscoverRequest(_) = request.request
        {
            let until = Some(tokio::time::Instant::now() + patience);
            self.probe = Some(Probe { id: request.id.clone(), until });
        }
        let (outgoing, telling) = (self.outgoing.clone(), self.health.tell(&message));
        async move {
            let _telling = telling;
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let outgoing = outgoing.ok_or(io::ErrorKind::BrokenPipe)?;
            outgoing.send(text).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        let message = self.next().await?;
        self.health.take(&message).ok().map(|()| message)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        self.incoming.close();
        Ok(())
    }
}

fn write(mut stdin: impl Write, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.blocking_recv() {
        if stdin.write_all(&message).is_err() {
            return;
        }
    }
}

/// Reads messages until the end, or until one that must not be.
fn listen(
    stdout: impl Read,
    longest: u64,
    messages: &mpsc::Sender<Message>,
    health: &Health,
    said: &Said,
) -> Result<(), Fault> {
    let mut reader = BufReader::with_capacity(64 << 10, stdout);
    loop {
        let line = match line::read(&mut reader, longest) {
            Ok(Some(line)) => line,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(Fault::TooMuch);
            }
            Ok(None) | Err(_) => return Ok(()),
        };
        let what = line::understand(&line)?;
        health.hear(line.len(), &what)?;
        match what {
            Line::Messages(all) => {
                for one in all {
                    if messages.blocking_send(one).is_err() {
                        return Ok(());
                    }
                }
            }
            // It helps whoever has to find out why a server does not work.
            Line::Noise => said.add_line(&line),
        }
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
