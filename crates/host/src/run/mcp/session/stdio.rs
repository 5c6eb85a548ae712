//! A server behind two pipes. What it says is read by a task when it comes; what it is told is written by whoever says it where there
//! is room, and else by a thread.

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
use crate::run::pipe::Pipe;
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
    queue: mpsc::Sender<Vec<u8>>,
}

/// What the thread has before it, and who waits for that.
#[derive(Debug, Default)]
struct Told {
    now: Mutex<ToBeTold>,
    /// It has written something, or will never again.
    news: Notify,
}

/// Messages for the thread are counted in the order in which they are written.
#[derive(Debug, Default)]
struct ToBeTold {
    /// How many there were, and how many of them were written. As long as any are left, nobody else writes.
    count: u64,
    written: u64,
    /// Nothing will be written any more.
    is_broken: bool,
}

impl Outgoing {
    fn open(stdin: PipeWriter) -> io::Result<Self> {
        let (queue, mut to_write) = mpsc::channel::<Vec<u8>>(QUEUE);
        let (pipe, told) = (Arc::new(Pipe::new(stdin)?), Arc::<Told>::default());
        let way = Way { pipe: Arc::clone(&pipe), told: Arc::clone(&told), queue };
        thread("mcp-write", move || {
            while let Some(message) = to_write.blocking_recv() {
                let done = pipe.write_all(&message, None);
                let mut now = told.lock();
                match done {
                    Ok(()) => now.written += 1,
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

    /// Writes a message at once, where it is short and there is room for it; whether it did.
    pub(super) fn try_send(&self, message: &[u8]) -> io::Result<bool> {
        let Way { pipe, told, .. } = &*self.0;
        let mut now = told.lock();
        if now.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if now.written < now.count {
            return Ok(false);
        }
        pipe.try_write(message).inspect_err(|_| now.is_broken = true)
    }

    /// Returns when the message is written.
    pub(super) async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        if self.try_send(&message)? {
            return Ok(());
        }
        let Way { told, queue, .. } = &*self.0;
        let place = queue.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        let number = {
            let mut now = told.lock();
            now.count += 1;
            place.send(message);
            now.count
        };
        loop {
            let mut news = pin!(told.news.notified());
            news.as_mut().enable();
            if let Some(done) = told.lock().is_written(number) {
                return done;
            }
            news.await;
        }
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
        let outgoing = Outgoing::open(stdin)?;
        let (was_read, incoming) = mpsc::channel(QUEUE);
        let health = Health::new(longest);
        let lane = Lane::new(outgoing.clone(), Arc::clone(&answers));
        let watched = Arc::clone(&health);
        let incoming_bytes = Incoming::open(stdout)?;
        tokio::spawn(async move {
            let _closing = Closing(&answers);
            let to = (&was_read, &*answers);
            tokio::select! {
                heard = listen(incoming_bytes, longest, to, &watched, &said) => {
                    let _ = watched.noting(heard);
                }
                // Nobody waits for what it might still say.
                () = watched.broken() => {}
            }
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
    use crate::run::pipe::SMALL;

    fn lines(count: usize) -> impl Iterator<Item = String> {
        // Some are longer than what is written at once.
        (0..count).map(|number| {
            let length = if number % 50 == 7 { SMALL + 1 } else { 100 };
            format!("{number} {}\n", "x".repeat(length))
        })
    }

    #[tokio::test]
    async fn everything_goes_out_in_order_also_where_there_is_no_room() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        let mut said = String::new();
        let mut say = |line: String| {
            said += &line;
            Box::pin(outgoing.send(line.into()))
        };
        // Nobody reads yet, so at some time nothing more goes in.
        let mut sending = Vec::new();
        while sending.is_empty() {
            let mut one = say("x".repeat(SMALL - 1) + "\n");
            if futures_util::poll!(one.as_mut()).is_pending() {
                sending.push(one);
            }
        }
        // No more than find a place before the thread.
        for line in lines(QUEUE - 2) {
            let mut one = say(line);
            assert!(futures_util::poll!(one.as_mut()).is_pending());
            sending.push(one);
        }
        let reading = std::thread::spawn(move || {
            let mut all = String::new();
            reader.read_to_string(&mut all).map(|_| all)
        });
        for one in sending {
            one.await.unwrap();
        }
        drop(outgoing);
        let read = tokio::task::spawn_blocking(|| reading.join().unwrap()).await.unwrap().unwrap();
        assert!(read == said);
    }

    #[tokio::test]
    async fn whoever_leaves_has_it_written_and_nobody_writes_into_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        // More than a pipe holds.
        let long = "x".repeat(1 << 21) + "\n";
        let mut leaving = Box::pin(outgoing.send(long.clone().into()));
        assert!(futures_util::poll!(leaving.as_mut()).is_pending());
        drop(leaving);
        assert!(!outgoing.try_send(b"too soon\n").unwrap());
        let reading = tokio::task::spawn_blocking(move || {
            let mut all = String::new();
            reader.read_to_string(&mut all).map(|_| all)
        });
        outgoing.send(b"second\n".to_vec()).await.unwrap();
        // The thread has nothing left.
        assert!(outgoing.try_send(b"third\n").unwrap());
        drop(outgoing);
        assert!(reading.await.unwrap().unwrap() == long + "second\nthird\n");
    }

    #[test]
    fn what_was_written_stays_written_when_the_rest_cannot_be() {
        let now = ToBeTold { count: 2, written: 1, is_broken: true };
        assert!(matches!(now.is_written(1), Some(Ok(()))));
        assert!(matches!(now.is_written(2), Some(Err(_))));
        assert!(ToBeTold { is_broken: false, ..now }.is_written(2).is_none());
    }

    #[tokio::test]
    async fn whoever_says_what_cannot_be_written_learns_it_and_nobody_else() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outgoing = Outgoing::open(writer).unwrap();
        outgoing.send(b"first\n".to_vec()).await.unwrap();
        assert!(outgoing.try_send(b"second\n").unwrap());
        let mut read = [0; 13];
        reader.read_exact(&mut read).unwrap();
        drop(reader);
        let broken = |done: io::Result<()>| done.unwrap_err().kind() == io::ErrorKind::BrokenPipe;
        let (short, long) = (b"third\n".to_vec(), vec![b'x'; SMALL + 1]);
        let (short, long) = tokio::join!(outgoing.send(short), outgoing.send(long));
        assert!(broken(short) && broken(long));
        assert!(broken(outgoing.try_send(b"fourth\n").map(drop)));
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
