//! A server behind two pipes. What it says is read by a task when it comes; what it is told is written at once where there is
//! room, and else by a thread.

use std::io::{self, PipeWriter, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sandbox::Output;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::lane::{self, Answers, Lane};
use super::line::{self, Fault, Line, Message};
use crate::run::pipe::{Pipe, SMALL};
use crate::run::said::Said;

/// How many messages wait in each direction before the other side has to.
const QUEUE: usize = 64;

/// The way to a server: what is short and has room in its pipe is written at once, and the rest by a thread, in order.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(Arc<Way>);

#[derive(Debug)]
struct Way {
    pipe: Arc<Pipe>,
    told: Arc<Mutex<ToBeTold>>,
    queue: mpsc::Sender<Vec<u8>>,
    answers: Arc<Answers>,
}

/// What a server is to be told.
#[derive(Debug, Default)]
struct ToBeTold {
    /// How many messages wait for the thread. As long as there are any, nobody else writes.
    queued: usize,
    /// Lines that are about to be written together: a server that is woken for each would work on one at a time, and so would
    /// whoever reads its answers.
    gathered: Vec<u8>,
    /// Whether somebody is going to write them.
    is_led: bool,
}

impl Outgoing {
    /// Who waits for answers is told where nothing can be written any more.
    fn open(stdin: PipeWriter, answers: Arc<Answers>) -> io::Result<Self> {
        let (queue, mut to_write) = mpsc::channel::<Vec<u8>>(QUEUE);
        let (pipe, told) = (Arc::new(Pipe::new(stdin)?), Arc::default());
        let way = Way { pipe: Arc::clone(&pipe), told: Arc::clone(&told), queue, answers };
        thread("mcp-write", move || {
            while let Some(message) = to_write.blocking_recv() {
                let written = pipe.write_all(&message, None);
                lock(&told).queued -= 1;
                if written.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(Arc::new(way)))
    }

    pub(super) async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        if self.gather(&message) {
            return Ok(());
        }
        let place = self.0.queue.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.0.hand_over(place, message);
        Ok(())
    }

    /// Has a short message written together with whatever else is said in the same moment.
    fn gather(&self, message: &[u8]) -> bool {
        let mut told = lock(&self.0.told);
        if told.queued > 0 || message.len() > SMALL {
            return false;
        }
        if told.gathered.len() + message.len() > SMALL {
            if !matches!(self.0.pipe.try_write(&told.gathered), Ok(true)) {
                return false;
            }
            told.gathered.clear();
        }
        told.gathered.extend_from_slice(message);
        if !std::mem::replace(&mut told.is_led, true) {
            let way = Arc::clone(&self.0);
            tokio::spawn(async move {
                // Until everybody who can go on now has had their turn.
                tokio::task::yield_now().await;
                if way.write().is_err() {
                    way.answers.close();
                }
                way.write_later().await;
            });
        }
        true
    }
}

impl Way {
    /// Writes what was gathered where nobody has to wait for that.
    fn write(&self) -> io::Result<()> {
        let mut told = lock(&self.told);
        if told.queued > 0 || told.gathered.is_empty() {
            return Ok(());
        }
        let is_written = self.pipe.try_write(&told.gathered);
        if !matches!(is_written, Ok(false)) {
            told.gathered.clear();
        }
        is_written.map(drop)
    }

    /// Has the thread write what is still left.
    async fn write_later(&self) {
        loop {
            {
                let mut told = lock(&self.told);
                if told.gathered.is_empty() {
                    told.is_led = false;
                    return;
                }
            }
            match self.queue.reserve().await {
                Ok(place) => self.hand_over(place, Vec::new()),
                Err(_) => {
                    lock(&self.told).gathered.clear();
                    self.answers.close();
                }
            }
        }
    }

    /// Has the thread write a message, after everything that was said before it.
    fn hand_over(&self, place: mpsc::Permit<'_, Vec<u8>>, message: Vec<u8>) {
        let mut told = lock(&self.told);
        let mut text = std::mem::take(&mut told.gathered);
        if text.is_empty() {
            text = message;
        } else {
            text.extend_from_slice(&message);
        }
        if !text.is_empty() {
            told.queued += 1;
            place.send(text);
        }
    }
}

/// It is held by nobody who waits.
fn lock(told: &Mutex<ToBeTold>) -> MutexGuard<'_, ToBeTold> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
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
        stdout: Output,
        longest: u64,
        patience: Option<Duration>,
        said: Said,
    ) -> io::Result<(Self, Arc<Health>)> {
        let answers = Answers::new();
        let outgoing = Outgoing::open(stdin, Arc::clone(&answers))?;
        let (was_read, incoming) = mpsc::channel(QUEUE);
        let health = Health::new(longest);
        let lane = Lane::new(outgoing.clone(), Arc::clone(&answers));
        let watched = Arc::clone(&health);
        let incoming_bytes = Incoming::open(stdout)?;
        tokio::spawn(async move {
            let _closing = Closing(&answers);
            let to = (&was_read, &*answers);
            let heard = listen(incoming_bytes, longest, to, &watched, &said).await;
            let _ = watched.noting(heard);
        });
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

/// What a server says, as it comes.
struct Incoming {
    output: Output,
    pipe: Receiver,
    /// Nothing more will be said than what is in the pipe.
    ended: CancellationToken,
}

impl Incoming {
    fn open(output: Output) -> io::Result<Self> {
        let (pipe, end) = output.watch()?.into_parts();
        let ended = CancellationToken::new();
        if let Some(end) = end {
            let ended = ended.clone();
            thread("mcp-end", move || {
                let _ = end.wait();
                ended.cancel();
            })?;
        }
        Ok(Self { output, pipe: Receiver::from_owned_fd(pipe)?, ended })
    }

    /// Waits for more; nothing at the end.
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended.is_cancelled() {
            tokio::select! {
                biased;
                ready = self.pipe.readable() => ready?,
                () = self.ended.cancelled() => break,
            }
            match self.pipe.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(count) => return self.output.read_elsewhere(count).map(|()| count),
                Err(error) => return Err(error),
            }
        }
        // It does not wait for more than is there, since the end is.
        self.output.read(buffer)
    }
}

/// Tells those who wait for answers when none will come any more, however that is.
struct Closing<'c>(&'c Answers);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Reads messages until the end, or until one that must not be.
async fn listen(
    mut incoming: Incoming,
    longest: u64,
    to: (&mpsc::Sender<Message>, &Answers),
    health: &Health,
    said: &Said,
) -> Result<(), Fault> {
    let (mut buffer, mut begun) = (vec![0; 64 << 10], Vec::new());
    loop {
        let count = match incoming.read(&mut buffer).await {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(Fault::TooMuch);
            }
            // A line that was not finished is none.
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        let mut rest = &buffer[..count];
        while let Some(line) = line::next(&mut begun, &mut rest, longest)? {
            if !hear(&line, to, health, said).await? {
                return Ok(());
            }
        }
    }
}

/// Takes a line; whether anybody wants more of them.
async fn hear(
    line: &[u8],
    (messages, answers): (&mpsc::Sender<Message>, &Answers),
    health: &Health,
    said: &Said,
) -> Result<bool, Fault> {
    if answers.take(line::within(line)?, health)? {
        return Ok(true);
    }
    let what = line::understand(line)?;
    health.hear(line.len(), &what)?;
    match what {
        Line::Messages(all) => {
            for one in all {
                if messages.send(one).await.is_err() {
                    return Ok(false);
                }
            }
        }
        // It helps whoever has to find out why a server does not work.
        Line::Noise => said.add_line(line),
    }
    Ok(true)
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_in_one_moment_goes_out_together_and_everything_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer, Answers::new()).unwrap();
        let mut said = Vec::new();
        for line in ["one\n", "two\n", "three\n"] {
            outgoing.send(line.into()).await.unwrap();
            said.extend_from_slice(line.as_bytes());
        }
        assert_eq!(lock(&outgoing.0.told).gathered, said);
        // More than a pipe holds, and some of it longer than what is written at once.
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        for number in 0..2_000 {
            let length = if number % 50 == 7 { SMALL + 1 } else { 100 };
            let line = format!("{number} {}\n", "x".repeat(length));
            said.extend_from_slice(line.as_bytes());
            outgoing.send(line.into()).await.unwrap();
            if number % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(outgoing);
        let read = tokio::task::spawn_blocking(|| reading.join().unwrap()).await.unwrap().unwrap();
        assert!(read == said);
    }

    #[tokio::test]
    async fn whoever_waits_for_an_answer_hears_that_nothing_can_be_asked() {
        let (reader, writer) = io::pipe().unwrap();
        let answers = Answers::new();
        let outgoing = Outgoing::open(writer, Arc::clone(&answers)).unwrap();
        let lane = Lane::new(outgoing.clone(), answers);
        drop(reader);
        outgoing.send(b"hello\n".to_vec()).await.unwrap();
        while !lane.is_closed() {
            tokio::task::yield_now().await;
        }
    }
}
