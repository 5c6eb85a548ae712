//! What a client starts: it passes lines on between the client and the host of the home, and outlives that host.
//!
//! When the host is gone, whatever it had not answered is answered with an error, exactly once, and the next message reaches a new
//! one, which is greeted as the first was, and told what else the client said that counts for longer than its answer.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::mcp::client::LEVELS;
use crate::mcp::error::{Code, Error};
use crate::mcp::lines::read_line;
use crate::mcp::message::{self, Id, Message, Request};
use crate::mcp::revision::Revision;
use crate::mcp::watching::{self, UPDATED};
use crate::outbox::{self, Outbox};

/// How much is read at a time.
const ROOM: usize = 64 << 10;

/// The longest address of a resource that a new host is asked for.
const LONGEST: usize = 8 << 10;

/// How long a host may take to end its part of a conversation that the client has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is told of what a host had not answered.
const ENDED: &str =
    "the host of the tools ended before it answered; it is started again with the next request";

/// Brings a connection to the host, which may have to be started first.
pub trait Reach {
    /// A connection on which the host was told what is wanted.
    fn reach(&self) -> impl Future<Output = io::Result<UnixStream>>;
}

/// What is known of the conversation, so that it can go on with another host.
#[derive(Default)]
struct Known {
    /// What the client greeted with, and that it was content.
    greeting: Option<Value>,
    initialized: Option<String>,
    /// From which level on it wants to be told what servers log.
    level: Option<String>,
    /// The resources that it wants to be told of, and those of them that a new host has still to be asked for.
    watched: HashSet<String>,
    unsaid: Vec<String>,
    /// What was asked and not answered, and the resource that its client is told of from then on.
    open: HashMap<Id, Option<String>>,
    /// What goes on until it is called off: nobody waits for its end.
    listening: HashSet<Id>,
    /// How much was said again for the client, whose answers are not for it, and which resource each is about.
    again: u64,
    swallow: HashMap<Id, Option<String>>,
}

/// Passes lines on until the client ends, and what it had asked by then is answered.
///
/// Both ways go on side by side: neither waits for the other, however much is on its way.
pub async fn relay(
    reach: &impl Reach,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut client = BufReader::with_capacity(ROOM, input);
    let mut known = Known::default();
    let mut host = Some(Host::of(reach.reach().await?));
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let (mut to_host, mut to_client) = (Outbox::default(), Outbox::default());
    let mut is_over = false;
    loop {
        let Some(Host { from, to, hears }) = &mut host else {
            // Nobody is there; the next message of the client brings somebody.
            to_client.drain(&mut output).await?;
            if is_over {
                return Ok(());
            }
            is_over = !take(read_line(&mut client, &mut asked).await, &mut asked, &mut to_client)?;
            if asked.is_empty() {
                continue;
            }
            let reached = reach.reach().await;
            if reached.is_err() {
                known.ask(&asked);
                known.give_up("the host of the tools cannot be reached any more", &mut to_client);
                to_client.drain(&mut output).await?;
            }
            host = Some(Host::of(reached?));
            known.greet_again(&mut to_host);
            known.ask(&asked);
            to_host.take(&mut asked);
            continue;
        };
        if is_over && known.open.is_empty() && to_host.is_empty() && to_client.is_empty() {
            return known.hear_out(from, to, &mut output).await;
        }
        tokio::select! {
            read = read_line(&mut client, &mut asked), if !is_over && *hears && to_host.is_empty() => {
                is_over = !take(read, &mut asked, &mut to_client)?;
                known.ask(&asked);
                to_host.take(&mut asked);
            }
            read = from.read_until(b'\n', &mut answered), if to_client.is_empty() => {
                let is_whole = matches!(read, Ok(count) if count > 0) && answered.ends_with(b"\n");
                if !is_whole {
                    known.give_up(ENDED, &mut to_client);
                    to_host.clear();
                    host = None;
                } else if known.answer(&answered, &mut to_client) {
                    to_client.take(&mut answered);
                } else {
                    known.watch_again(&mut to_host);
                }
                outbox::empty(&mut answered);
            }
            told = to_host.drain(to), if !to_host.is_empty() => {
                if told.is_err() {
                    // It is gone; what it had said before that is heard still.
                    *hears = false;
                    to_host.clear();
                }
            }
            told = to_client.drain(&mut output), if !to_client.is_empty() => told?,
        }
    }
}

/// Takes what was read of the client; `false` where nothing more will be. Where its line has no end, where the next begins cannot
/// be told: it hears so, and what it had asked before is answered.
fn take(read: io::Result<bool>, line: &mut Vec<u8>, to_client: &mut Outbox) -> io::Result<bool> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            *line = Vec::new();
            let words = "a message has at most 16 MiB";
            let refused = Err(Error::new(Code::BadRequest, words));
            to_client.line(&message::answer(None, &refused));
            Ok(false)
        }
        read => read,
    }
}

/// The connection to a host.
struct Host {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    /// Whether it takes what it is told, as far as we know.
    hears: bool,
}

impl Host {
    fn of(stream: UnixStream) -> Self {
        let (from, to) = stream.into_split();
        Self { from: BufReader::with_capacity(ROOM, from), to, hears: true }
    }
}

impl Known {
    /// Notes what the client says.
    fn ask(&mut self, line: &[u8]) {
        // Where a host takes no batches, nothing of one is answered by its id.
        if line.trim_ascii_start().starts_with(b"[") && !self.has_batches() {
            return;
        }
        for text in parts(line) {
            match message::parse(text) {
                Ok(Message::Request(request)) => self.ask_one(request),
                Ok(Message::Notification { method, .. })
                    if method == "notifications/initialized" =>
                {
                    self.initialized = Some(text.to_owned());
                }
                Ok(Message::Notification { method, params }) => {
                    // What is called off need not be answered.
                    if let Some(id) = message::called_off(&method, params) {
                        self.forget(&id);
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes a request.
    fn ask_one(&mut self, request: Request<'_>) {
        let said = |name: &str| Some(request.params().ok()?[name].as_str()?.to_owned());
        let mut watched = None;
        match &*request.method {
            "subscriptions/listen" => {
                self.listening.insert(request.id);
                return;
            }
            "initialize" => self.greeting = request.params().ok(),
            "logging/setLevel" => {
                let level = said("level").filter(|level| LEVELS.contains(&&**level));
                self.level = level.or(self.level.take());
            }
            "resources/subscribe" => watched = said("uri").filter(|uri| uri.len() <= LONGEST),
            "resources/unsubscribe" => {
                let uri = said("uri").unwrap_or_default();
                self.watched.remove(&uri);
                self.unsaid.retain(|one| *one != uri);
                self.open.values_mut().for_each(|one| drop(one.take_if(|one| *one == uri)));
            }
            _ => {}
        }
        self.open.insert(request.id, watched);
    }

    /// Notes what the host says; whether it is for the client. Of a resource that is watched again its client is told that it may
    /// have changed meanwhile.
    fn answer(&mut self, line: &[u8], to_client: &mut Outbox) -> bool {
        for text in parts(line) {
            if let Ok(Message::Answer { id, answer }) = message::parse(text) {
                if let Some(watched) = self.swallow.remove(&id) {
                    if let (Some(uri), Ok(_)) = (watched, answer) {
                        let told = message::notification(UPDATED, &json!({ "uri": uri }));
                        to_client.line(&told);
                    }
                    return false;
                }
                if let (Some(Some(uri)), Ok(_)) = (self.open.remove(&id), answer)
                    && self.watched.len() < watching::MOST
                {
                    self.watched.insert(uri);
                }
                self.listening.remove(&id);
            }
        }
        true
    }

    /// Whether the client agreed with its host on a revision that lets several messages be one.
    fn has_batches(&self) -> bool {
        let asked =
            self.greeting.as_ref().and_then(|greeting| greeting["protocolVersion"].as_str());
        asked.is_some_and(|asked| Revision::agreed(asked).has_batches())
    }

    /// Forgets a request that nobody waits for any more.
    fn forget(&mut self, id: &Id) {
        self.open.remove(id);
        self.listening.remove(id);
    }

    /// Lets a host say what it has left to say once it is told that the client ended, such as that a line was none.
    async fn hear_out(
        &mut self,
        from: &mut (impl AsyncBufRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        output: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let hearing = async {
            let mut line = Vec::new();
            to.shutdown().await?;
            while from.read_until(b'\n', &mut line).await? > 0 && line.ends_with(b"\n") {
                if self.answer(&line, &mut Outbox::default()) {
                    output.write_all(&line).await?;
                    output.flush().await?;
                }
                line.clear();
            }
            Ok(())
        };
        // A host that is gone, or does not come to its end, has nothing to say.
        let heard: Result<io::Result<()>, _> = tokio::time::timeout(FAREWELL, hearing).await;
        drop(heard);
        Ok(())
    }

    /// Answers what nobody will answer any more, and says why.
    fn give_up(&mut self, why: &str, to_client: &mut Outbox) {
        for (id, _) in self.open.drain() {
            to_client.line(&message::answer(Some(&id), &Err(Error::new(Code::Internal, why))));
        }
        for id in self.listening.drain() {
            let told = json!({ "requestId": id.to_value(), "reason": why });
            to_client.line(&message::notification("notifications/cancelled", &told));
        }
    }

    /// Greets a new host as the client greeted the first, and says what else counts for it.
    fn greet_again(&mut self, to_host: &mut Outbox) {
        self.swallow.clear();
        let Some(params) = self.greeting.clone() else { return };
        self.say_again("initialize", &params, to_host);
        if let Some(text) = &self.initialized {
            to_host.line(text);
        }
        if let Some(level) = self.level.clone() {
            self.say_again("logging/setLevel", &json!({ "level": level }), to_host);
        }
        self.unsaid = self.watched.iter().cloned().collect();
        // With each answer the next is asked for: a host takes so many requests at a time.
        for _ in 0..watching::AT_A_TIME {
            self.watch_again(to_host);
        }
    }

    /// Has a new host tell of the next resource that the one before it told of.
    fn watch_again(&mut self, to_host: &mut Outbox) {
        if let Some(uri) = self.unsaid.pop() {
            let id = self.say_again("resources/subscribe", &json!({ "uri": uri }), to_host);
            self.swallow.insert(id, Some(uri));
        }
    }

    /// Says something for the client that it has said before.
    fn say_again(&mut self, method: &str, params: &Value, to_host: &mut Outbox) -> Id {
        self.again += 1;
        let id = Id::again(self.again);
        to_host.line(&message::request(&id, method, params));
        self.swallow.insert(id.clone(), None);
        id
    }
}

/// The messages of a line: one, or those of a batch.
fn parts(line: &[u8]) -> Vec<&str> {
    let Ok(text) = std::str::from_utf8(line) else { return Vec::new() };
    match message::batch(text) {
        Some(batch) => batch.into_iter().map(RawValue::get).collect(),
        None => vec![text.trim()],
    }
}

#[cfg(test)]
mod tests;
