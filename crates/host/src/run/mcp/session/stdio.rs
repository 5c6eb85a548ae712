//! A server behind two pipes. What it says is read by a task when it comes; what it is told in one moment is written together, by
//! whoever says it where there is room, and else by a thread.

use std::io::{self, PipeWriter, Read};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sandbox::Output;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::lane::{self, Answers, Lane};
use super::line::{self, Fault, Line, Message};
use crate::run::pipe::{Pipe, SMALL};
use crate::run::said::Said;

/// How many messages wait in each direction before the other side has to.
const QUEUE: usize = 64;

/// The way to a server.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(Arc<Way>);

#[derive(Debug)]
struct Way {
    pipe: Arc<Pipe>,
    told: Arc<Told>,
    queue: mpsc::Sender<ToWrite>,
}

/// What the server is told, and who waits until it is.
#[derive(Debug, Default)]
struct Told {
    now: Mutex<ToBeTold>,
    /// The thread has written something, or will never again.
    news: Notify,
}

/// Messages are counted in the order in which they are written.
#[derive(Debug, Default)]
struct ToBeTold {
    /// How many there were, how many of them were written, and whether that is all that ever will be.
    count: u64,
    written: u64,
    is_broken: bool,
    /// How many lie before the thread. As long as there are any, nobody else writes.
    queued: usize,
    /// Lines that are about to be written together: a server that is woken for each would work on one at a time, and so would
    /// whoever reads its answers.
    gathered: Vec<u8>,
}

/// What the thread writes, after what was gathered, and how many are written then.
#[derive(Debug)]
struct ToWrite {
    message: Vec<u8>,
    written: u64,
}

impl Outgoing {
    fn open(stdin: PipeWriter) -> io::Result<Self> {
        let (queue, mut to_write) = mpsc::channel::<ToWrite>(QUEUE);
        let (pipe, told) = (Arc::new(Pipe::new(stdin)?), Arc::<Told>::default());
        let way = Way { pipe: Arc::clone(&pipe), told: Arc::clone(&told), queue };
        thread("mcp-write", move || {
            while let Some(ToWrite { message, written }) = to_write.blocking_recv() {
                let gathered = std::mem::take(&mut told.lock().gathered);
                let done = pipe.write_all(&gathered, None);
                let done = done.and_then(|()| pipe.write_all(&message, None));
                let mut now = told.lock();
                now.queued -= 1;
                match done {
                    Ok(()) => now.written = written,
                    Err(_) => now.is_broken = true,
                }
                drop(now);
                told.news.notify_waiters();
                if done.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(Arc::new(way)))
    }

    /// Returns when the message is written. What is gathered is written although nobody waits for that.
    pub(super) async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        let way = &*self.0;
        let number = match way.gather(&message)? {
            Some(number) => {
                let _writing = Writing(way);
                // Until everybody who can go on now has had their turn.
                tokio::task::yield_now().await;
                number
            }
            None => {
                let place = way.queue.reserve().await;
                let place = place.map_err(|_| io::ErrorKind::BrokenPipe)?;
                let mut now = way.told.lock();
                now.queued += 1;
                now.count += 1;
                place.send(ToWrite { message, written: now.count });
                now.count
            }
        };
        loop {
            if let Some(done) = way.told.lock().is_written(number) {
                return done;
            }
            let mut news = pin!(way.told.news.notified());
            news.as_mut().enable();
            if let Some(done) = way.told.lock().is_written(number) {
                return done;
            }
            news.await;
        }
    }
}

impl Way {
    /// Has a short message written with whatever else is said in the same moment; its number, unless it is for the thread.
    fn gather(&self, message: &[u8]) -> io::Result<Option<u64>> {
        let mut now = self.told.lock();
        if now.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if now.queued > 0 || message.len() > SMALL {
            return Ok(None);
        }
        if now.gathered.len() + message.len() > SMALL && !self.write(&mut now) {
            return Ok(None);
        }
        now.gathered.extend_from_slice(message);
        now.count += 1;
        Ok(Some(now.count))
    }

    /// Writes what was gathered where there is room for it; whether it did.
    fn write(&self, now: &mut ToBeTold) -> bool {
        let is_written = self.pipe.try_write(&now.gathered);
        if !matches!(is_written, Ok(false)) {
            now.gathered.clear();
        }
        match is_written {
            Ok(true) => now.written = now.count,
            Ok(false) => {}
            Err(_) => now.is_broken = true,
        }
        matches!(is_written, Ok(true))
    }
}

impl Told {
    /// It is held by nobody who waits.
    fn lock(&self) -> MutexGuard<'_, ToBeTold> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToBeTold {
    /// Whether a message was written, as soon as that is known.
    fn is_written(&self, number: u64) -> Option<io::Result<()>> {
        if number <= self.written {
            return Some(Ok(()));
        }
        self.is_broken.then(|| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Writes what was gathered when it is dropped; has the thread do it where there is no room.
struct Writing<'w>(&'w Way);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut now = self.0.told.lock();
        // What lies before the thread is written with what was gathered.
        if now.queued > 0 || now.gathered.is_empty() || self.0.write(&mut now) {
            return;
        }
        let rest = ToWrite { message: Vec::new(), written: now.count };
        match self.0.queue.try_send(rest) {
            Ok(()) => now.queued += 1,
            // Nothing lies before the thread, so it has room, if it is there.
            Err(_) => now.is_broken = true,
        }
    }
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
        let outgoing = Outgoing::open(stdin)?;
        let (was_read, incoming) = mpsc::channel(QUEUE);
        let health = Health::new(longest);
        let lane = Lane::new(outgoing.clone());
        let (watched, answers) = (Arc::clone(&health), lane.answers());
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

    fn lines(count: usize) -> impl Iterator<Item = String> {
        // Some are longer than what is written at once.
        (0..count).map(|number| {
            let length = if number % 50 == 7 { SMALL + 1 } else { 100 };
            format!("{number} {}\n", "x".repeat(length))
        })
    }

    #[tokio::test]
    async fn what_is_said_in_one_moment_goes_out_together_and_everything_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        let mut said: Vec<u8> = b"one\ntwo\n".to_vec();
        let sending = |line: &str| Box::pin(outgoing.send(line.into()));
        let (mut first, mut second) = (sending("one\n"), sending("two\n"));
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        first.await.unwrap();
        let mut read = [0; 20];
        let count = reader.read(&mut read).unwrap();
        assert!(read[..count] == said);
        second.await.unwrap();
        // More than a pipe holds.
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        said.clear();
        for line in lines(2_000) {
            said.extend_from_slice(line.as_bytes());
            let is_short = line.len() <= SMALL && outgoing.0.told.lock().queued == 0;
            let mut sending = pin!(outgoing.send(line.into()));
            // Whoever leaves has it written nevertheless.
            if !is_short || futures_util::poll!(sending.as_mut()).is_ready() {
                sending.await.unwrap();
            }
        }
        while outgoing.0.told.lock().written < 2 + 2_000 {
            tokio::task::yield_now().await;
        }
        drop(outgoing);
        let read = tokio::task::spawn_blocking(|| reading.join().unwrap()).await.unwrap().unwrap();
        assert!(read == said);
    }

    #[tokio::test]
    async fn whoever_says_what_cannot_be_written_learns_it_and_nobody_else() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        // What was written stays written, although its sender looks only later.
        let mut first = pin!(outgoing.send(b"first\n".to_vec()));
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        outgoing.send(b"second\n".to_vec()).await.unwrap();
        let mut read = [0; 13];
        reader.read_exact(&mut read).unwrap();
        drop(reader);
        let broken = |done: io::Result<()>| done.unwrap_err().kind() == io::ErrorKind::BrokenPipe;
        let (short, long) = (b"third\n".to_vec(), vec![b'x'; SMALL + 1]);
        let (short, long) = tokio::join!(outgoing.send(short), outgoing.send(long));
        assert!(broken(short) && broken(long));
        assert!(broken(outgoing.send(b"fourth\n".to_vec()).await));
        first.await.unwrap();
    }

    #[tokio::test]
    async fn what_the_thread_cannot_write_is_told_too() {
        let (reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        let long = || outgoing.send(vec![b'x'; 1 << 20]);
        let gone = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(reader);
        };
        let (first, second, ()) = tokio::join!(long(), long(), gone);
        assert!(first.is_err() && second.is_err());
    }
}
