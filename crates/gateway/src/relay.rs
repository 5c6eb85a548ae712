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
mod tests {
    use std::cell::RefCell;

    use tokio::io::duplex;

    use super::*;
    use crate::mcp::lines;

    /// How long what should happen may take.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Connections to hosts that are there already.
    struct There(RefCell<Vec<UnixStream>>);

    impl Reach for There {
        async fn reach(&self) -> io::Result<UnixStream> {
            self.0.borrow_mut().pop().ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    fn there() -> (There, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (There(RefCell::new(vec![ours])), theirs)
    }

    async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> String {
        let mut line = String::new();
        from.read_line(&mut line).await.unwrap();
        line
    }

    #[tokio::test]
    async fn both_may_write_before_they_read() {
        let (reach, host) = there();
        let (client, ours) = duplex(64);
        let (input, output) = tokio::io::split(ours);
        let long = |id: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"x\",\"params\":{{\"a\":\"{}\"}}}}\n",
                "x".repeat(2 << 20)
            )
        };
        let (asked, told) = (long("1"), long("\"haft-1\""));
        let hosting = async {
            let (from, mut to) = host.into_split();
            let mut from = BufReader::new(from);
            for _ in 0..3 {
                // It reads when it has written.
                to.write_all(told.as_bytes()).await.unwrap();
                assert!(line(&mut from).await == asked);
            }
            to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").await.unwrap();
            assert_eq!(line(&mut from).await, "");
        };
        let (from, mut to) = tokio::io::split(client);
        let mut from = BufReader::new(from);
        let asking = async {
            for _ in 0..3 {
                to.write_all(asked.as_bytes()).await.unwrap();
            }
            to.shutdown().await.unwrap();
        };
        let reading = async {
            for _ in 0..3 {
                assert!(line(&mut from).await == told);
            }
            assert!(line(&mut from).await.contains("result"));
        };
        let all = async { tokio::join!(relay(&reach, input, output), hosting, asking, reading) };
        let (relayed, ..) = tokio::time::timeout(PATIENCE, all).await.expect("both wait for ever");
        relayed.unwrap();
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused_and_what_was_asked_before_is_answered() {
        let (reach, host) = there();
        let (client, ours) = duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let (from, mut to) = tokio::io::split(client);
        let mut from = BufReader::new(from);
        let asking = async {
            to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n").await.unwrap();
            let endless = vec![b'x'; usize::try_from(lines::LONGEST).unwrap()];
            to.write_all(&endless).await.unwrap();
        };
        let hosting = async {
            let (from, mut to) = host.into_split();
            let mut from = BufReader::new(from);
            assert!(line(&mut from).await.contains("\"id\":1"));
            to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").await.unwrap();
            assert_eq!(line(&mut from).await, "");
        };
        let reading = async {
            let told = [line(&mut from).await, line(&mut from).await].concat();
            assert!(told.contains("at most 16 MiB") && told.contains("\"result\""), "{told}");
        };
        let all = async { tokio::join!(relay(&reach, input, output), asking, hosting, reading) };
        let (relayed, ..) = tokio::time::timeout(PATIENCE, all).await.expect("somebody waits");
        relayed.unwrap();
    }

    #[tokio::test]
    async fn what_a_host_said_before_it_went_is_passed_on_and_the_rest_is_answered_once() {
        let (reach, host) = there();
        let (client, ours) = duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let (from, mut to) = tokio::io::split(client);
        let mut from = BufReader::new(from);
        let talking = async {
            for text in [
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n",
                "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"x\"}\n",
                "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\"}\n",
                "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"subscriptions/listen\"}\n",
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}\n",
            ] {
                to.write_all(text.as_bytes()).await.unwrap();
            }
            let (hears, mut tells) = host.into_split();
            let mut hears = BufReader::new(hears);
            for _ in 0..5 {
                line(&mut hears).await;
            }
            tells
                .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"half")
                .await
                .unwrap();
            drop((hears, tells));
            let told = [line(&mut from).await, line(&mut from).await, line(&mut from).await];
            assert!(told[0].contains("\"id\":1,\"result\""), "{told:?}");
            assert!(told[1].contains("\"id\":3,\"error\""), "{told:?}");
            assert!(
                told[2].contains("notifications/cancelled") && told[2].contains("\"requestId\":4"),
                "{told:?}"
            );
            to.shutdown().await.unwrap();
            assert_eq!(line(&mut from).await, "");
        };
        let all = async { tokio::join!(relay(&reach, input, output), talking) };
        let (relayed, ()) = tokio::time::timeout(PATIENCE, all).await.expect("nobody waits");
        relayed.unwrap();
    }

    #[tokio::test]
    async fn what_is_asked_when_no_host_can_be_reached_any_more_is_answered_once() {
        let (reach, host) = there();
        let (client, ours) = duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let (from, mut to) = tokio::io::split(client);
        let mut from = BufReader::new(from);
        let talking = async {
            let ask = |id: i64| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"x\"}}\n");
            to.write_all(ask(1).as_bytes()).await.unwrap();
            let mut host = BufReader::new(host);
            assert_eq!(line(&mut host).await, ask(1));
            drop(host);
            assert!(line(&mut from).await.contains("\"id\":1,\"error\""));
            to.write_all(ask(2).as_bytes()).await.unwrap();
            let told = line(&mut from).await;
            assert!(told.contains("\"id\":2,\"error\"") && told.contains("reached"), "{told}");
        };
        let all = async { tokio::join!(relay(&reach, input, output), talking) };
        let (relayed, ()) = tokio::time::timeout(PATIENCE, all).await.expect("nobody waits");
        assert_eq!(relayed.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(line(&mut from).await, "");
    }

    #[test]
    fn what_a_batch_asked_is_forgotten_only_where_no_host_would_take_it() {
        let batch = |ids: &[i64]| {
            let each = ids.iter().map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "x" }));
            format!("{}\n", Value::Array(each.collect())).into_bytes()
        };
        let open_after = |revision: &str| {
            let mut known = Known::default();
            let params = json!({ "protocolVersion": revision });
            known.ask(message::request(&Id::own(0), "initialize", &params).as_bytes());
            known.ask(&batch(&[1, 2]));
            known.ask(&batch(&(3..200).collect::<Vec<_>>()));
            // Something else is refused.
            let refused = Err(Error::new(Code::NoJson, "this is no JSON"));
            for answer in [
                message::answer(Some(&Id::own(0)), &Ok("{}".to_owned())),
                message::answer(None, &refused),
            ] {
                assert!(known.answer(answer.as_bytes(), &mut Outbox::default()));
            }
            known.open.len()
        };
        assert_eq!((open_after("2025-03-26"), open_after("2025-06-18")), (2, 0));
    }

    /// Answers the next request of a client or of its relay, and says what it was.
    async fn answered(
        from: &mut (impl AsyncBufRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Value {
        loop {
            let asked: Value = serde_json::from_str(&line(from).await).unwrap();
            let uri = asked["params"]["uri"].as_str();
            let told = match &asked["id"] {
                Value::Null => continue,
                id if uri == Some("x://refused") => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "no" } })
                }
                id => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            };
            to.write_all(format!("{told}\n").as_bytes()).await.unwrap();
            return asked;
        }
    }

    #[tokio::test]
    async fn a_new_host_is_told_what_counts_for_the_client() {
        let ((first, ours), (second, ours_then)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let reach = There(RefCell::new(vec![ours_then, ours]));
        let (client, ours) = duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let (from, mut to) = tokio::io::split(client);
        let mut from = BufReader::new(from);
        let said = [
            ("initialize", json!({ "protocolVersion": "2025-11-25" })),
            ("logging/setLevel", json!({ "level": "warning" })),
            ("logging/setLevel", json!({ "level": "loud" })),
            ("resources/subscribe", json!({ "uri": "x://kept" })),
            ("resources/subscribe", json!({ "uri": "x://left" })),
            ("resources/subscribe", json!({ "uri": "x://refused" })),
            ("resources/unsubscribe", json!({ "uri": "x://left" })),
        ];
        let talking = async {
            let (hears, mut tells) = first.into_split();
            let mut hears = BufReader::new(hears);
            for (method, params) in &said {
                let asked = message::request(&Id::own(0), method, params);
                to.write_all(format!("{asked}\n").as_bytes()).await.unwrap();
                answered(&mut hears, &mut tells).await;
                line(&mut from).await;
            }
            let ping = message::request(&Id::own(0), "ping", &json!({})) + "\n";
            to.write_all(ping.as_bytes()).await.unwrap();
            line(&mut hears).await;
            drop((hears, tells));
            assert!(line(&mut from).await.contains(ENDED));
            to.write_all(ping.as_bytes()).await.unwrap();
            let (hears, mut tells) = second.into_split();
            let mut hears = BufReader::new(hears);
            for (method, params) in [&said[0], &said[1], &said[3], &("ping", json!({}))] {
                let again = answered(&mut hears, &mut tells).await;
                assert_eq!((&again["method"], &again["params"]), (&json!(method), params));
            }
            // What was not told meanwhile may have been anything; of the rest the client hears nothing.
            let told = line(&mut from).await;
            assert!(told.contains(UPDATED) && told.contains("x://kept"), "{told}");
            assert!(line(&mut from).await.contains("\"haft-0\""));
            drop((hears, tells));
            to.shutdown().await.unwrap();
            assert_eq!(line(&mut from).await, "");
        };
        let all = async { tokio::join!(relay(&reach, input, output), talking) };
        let (relayed, ()) = tokio::time::timeout(PATIENCE, all).await.expect("nobody waits");
        relayed.unwrap();
    }

    #[test]
    fn of_many_resources_a_new_host_is_asked_for_some_at_a_time() {
        let (mut known, mut outbox) = (Known::default(), Outbox::default());
        known.greeting = Some(json!({}));
        known.watched = (0..100).map(|number| format!("x://{number}")).collect();
        known.greet_again(&mut outbox);
        assert_eq!(known.swallow.len(), 1 + watching::AT_A_TIME);
        for number in 1..=101 {
            let answer = message::answer(Some(&Id::again(number)), &Ok("{}".to_owned()));
            assert!(!known.answer(answer.as_bytes(), &mut Outbox::default()));
            known.watch_again(&mut outbox);
        }
        assert!(known.swallow.is_empty() && known.unsaid.is_empty());
        assert_eq!(known.again, 101);
    }
}
