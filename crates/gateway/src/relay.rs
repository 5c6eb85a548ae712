//! What a client starts: it passes lines on between the client and the host of the home, and outlives that host.
//!
//! When the host is gone, whatever it had not answered is answered with an error, exactly once, and the next message reaches a new
//! one, which is greeted as the first was.

use std::collections::HashSet;
use std::io;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::mcp::error::{Code, Error};
use crate::mcp::message::{self, Id, Message};

/// How much is read at a time.
const ROOM: usize = 64 << 10;

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
    /// What was asked and not answered.
    open: HashSet<Id>,
    /// What of that was asked in a batch. One that is refused is answered without an id, for all of it.
    batched: HashSet<Id>,
    /// How often a host was greeted for the client, and whose answer is not for it.
    greeted: u64,
    swallow: Option<Id>,
}

/// Passes lines on until the client ends, and what it had asked by then is answered.
pub async fn relay(
    reach: &impl Reach,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut client = BufReader::with_capacity(ROOM, input);
    let mut known = Known::default();
    let mut host = Some(Host::of(reach.reach().await?));
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut is_over = false;
    loop {
        if is_over && (host.is_none() || known.open.is_empty()) {
            return Ok(());
        }
        let Some(Host { from, to }) = &mut host else {
            // Nobody is there; the next message of the client brings somebody.
            is_over = client.read_until(b'\n', &mut asked).await? == 0;
            if !is_over {
                let mut new = Host::of(reach.reach().await?);
                known.greet_again(&mut new.to).await?;
                known.ask(&asked);
                new.to.write_all(&asked).await?;
                host = Some(new);
            }
            asked.clear();
            continue;
        };
        tokio::select! {
            read = client.read_until(b'\n', &mut asked), if !is_over => {
                is_over = read? == 0 && asked.is_empty();
                known.ask(&asked);
                if to.write_all(&asked).await.is_err() {
                    known.give_up(&mut output).await?;
                    host = None;
                }
                asked.clear();
            }
            read = from.read_until(b'\n', &mut answered) => {
                let is_whole = matches!(read, Ok(count) if count > 0) && answered.ends_with(b"\n");
                if !is_whole {
                    known.give_up(&mut output).await?;
                    host = None;
                } else if known.answer(&answered) {
                    output.write_all(&answered).await?;
                    output.flush().await?;
                }
                answered.clear();
            }
        }
    }
}

/// The connection to a host.
struct Host {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Host {
    fn of(stream: UnixStream) -> Self {
        let (from, to) = stream.into_split();
        Self { from: BufReader::with_capacity(ROOM, from), to }
    }
}

impl Known {
    /// Notes what the client says.
    fn ask(&mut self, line: &[u8]) {
        let is_batch = line.trim_ascii_start().starts_with(b"[");
        for text in parts(line) {
            match message::parse(text) {
                Ok(Message::Request(request)) => {
                    if is_batch {
                        self.batched.insert(request.id.clone());
                    }
                    if request.method == "initialize" {
                        self.greeting = request.params().ok();
                    }
                    // Nobody waits for the end of what goes on until the end.
                    if request.method != "subscriptions/listen" {
                        self.open.insert(request.id);
                    }
                }
                Ok(Message::Notification { method, .. })
                    if method == "notifications/initialized" =>
                {
                    self.initialized = Some(format!("{text}\n"));
                }
                _ => {}
            }
        }
    }

    /// Notes what the host says; whether it is for the client.
    fn answer(&mut self, line: &[u8]) -> bool {
        for text in parts(line) {
            match message::parse(text) {
                Ok(Message::Answer { id, .. }) => {
                    if self.swallow.take_if(|ours| *ours == id).is_some() {
                        return false;
                    }
                    self.open.remove(&id);
                    self.batched.remove(&id);
                }
                Err(_) if is_refusal(text) => {
                    for id in self.batched.drain() {
                        self.open.remove(&id);
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// Answers what nobody will answer any more.
    async fn give_up(&mut self, output: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        for id in self.open.drain() {
            let words = "the host of the tools ended before it answered; it is started again with the next request";
            let mut text = message::answer(Some(&id), &Err(Error::new(Code::Internal, words)));
            text.push('\n');
            output.write_all(text.as_bytes()).await?;
        }
        output.flush().await
    }

    /// Greets a new host as the client greeted the first.
    async fn greet_again(&mut self, host: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if let Some(params) = &self.greeting {
            self.greeted += 1;
            let id = Id::again(self.greeted);
            let line = message::request(&id, "initialize", params);
            host.write_all(line.as_bytes()).await?;
            host.write_all(b"\n").await?;
            self.swallow = Some(id);
        }
        if let Some(line) = &self.initialized {
            host.write_all(line.as_bytes()).await?;
        }
        Ok(())
    }
}

/// Whether a host refuses what has no id.
fn is_refusal(text: &str) -> bool {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    said["id"].is_null() && said["error"].is_object()
}

/// The messages of a line: one, or those of a batch.
fn parts(line: &[u8]) -> Vec<&str> {
    let Ok(text) = std::str::from_utf8(line) else { return Vec::new() };
    let text = text.trim();
    if !text.starts_with('[') {
        return vec![text];
    }
    let batch: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    batch.into_iter().map(RawValue::get).collect()
}
