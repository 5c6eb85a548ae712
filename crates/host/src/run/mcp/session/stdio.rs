//! A server behind two pipes. They block, so a thread reads the one, and another writes the other where it has no room.

use std::io::{self, BufReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::health::Health;
use super::lane::{self, Answers, Lane};
use super::line::{self, Fault, Line, Message};
use crate::run::said::Said;

/// How many messages wait in each direction before the other side has to.
const QUEUE: usize = 64;

/// A message of so many bytes fits into a pipe that takes any.
const SMALL: usize = 4096;

/// The way to a server: what has room in its pipe is written at once, and the rest by a thread, in order.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pipe: Arc<Mutex<PipeWriter>>,
    /// How many messages wait for the thread.
    queued: Arc<AtomicUsize>,
    queue: mpsc::Sender<Vec<u8>>,
}

impl Outgoing {
    fn open(stdin: PipeWriter) -> io::Result<Self> {
        let (queue, mut to_write) = mpsc::channel::<Vec<u8>>(QUEUE);
        let outgoing = Self { pipe: Arc::new(Mutex::new(stdin)), queued: Arc::default(), queue };
        let (pipe, queued) = (Arc::clone(&outgoing.pipe), Arc::clone(&outgoing.queued));
        thread("mcp-write", move || {
            while let Some(message) = to_write.blocking_recv() {
                let written = lock(&pipe).write_all(&message);
                queued.fetch_sub(1, Ordering::AcqRel);
                if written.is_err() {
                    return;
                }
            }
        })?;
        Ok(outgoing)
    }

    pub(super) async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        if self.is_written(&message)? {
            return Ok(());
        }
        let place = self.queue.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.queued.fetch_add(1, Ordering::AcqRel);
        place.send(message);
        Ok(())
    }

    /// Writes a message where nobody has to wait for that.
    fn is_written(&self, message: &[u8]) -> io::Result<bool> {
        let is_free = || self.queued.load(Ordering::Acquire) == 0;
        if message.len() > SMALL || !is_free() {
            return Ok(false);
        }
        let Ok(mut pipe) = self.pipe.try_lock() else { return Ok(false) };
        let mut ready = [PollFd::new(&*pipe, PollFlags::OUT)];
        let has_room = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && ready[0].revents() == PollFlags::OUT;
        if !has_room || !is_free() {
            return Ok(false);
        }
        pipe.write_all(message)?;
        Ok(true)
    }
}

fn lock(pipe: &Mutex<PipeWriter>) -> std::sync::MutexGuard<'_, PipeWriter> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two pipes of a server as one wire.
#[derive(Debug)]
pub(in crate::run::mcp) struct Wire {
    outgoing: Option<Outgoing>,
    /// The short way, until somebody has taken it.
    lane: Option<Arc<Lane>>,
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
        stdin: PipeWriter,
        stdout: impl Read + Send + 'static,
        longest: u64,
        patience: Option<Duration>,
        said: Said,
    ) -> io::Result<(Self, Arc<Health>)> {
        let outgoing = Outgoing::open(stdin)?;
        let (was_read, incoming) = mpsc::channel(QUEUE);
        let health = Health::new(longest);
        let lane = Lane::new(outgoing.clone());
        let (watched, answers) = (Arc::clone(&health), lane.answers());
        thread("mcp-read", move || {
            let heard = listen(stdout, longest, (&was_read, &answers), &watched, &said);
            let _ = watched.noting(heard);
            answers.close();
        })?;
        let wire = Self {
            outgoing: Some(outgoing),
            lane: Some(lane),
            incoming,
            health: Arc::clone(&health),
            patience,
            probe: None,
        };
        Ok((wire, health))
    }

    /// The short way to the server, once.
    pub(in crate::run::mcp) fn take_lane(&mut self) -> Option<Arc<Lane>> {
        self.lane.take()
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
            let outgoing = outgoing.ok_or(io::ErrorKind::BrokenPipe)?;
            outgoing.send(lane::line(&message)?).await
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

/// Reads messages until the end, or until one that must not be.
fn listen(
    stdout: impl Read,
    longest: u64,
    (messages, answers): (&mpsc::Sender<Message>, &Answers),
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
        if answers.take(line::within(&line)?, health)? {
            continue;
        }
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
