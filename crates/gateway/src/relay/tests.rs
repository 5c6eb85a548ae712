use std::cell::RefCell;

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex};

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

type Ends = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// A client for whom so much may be on its way: where it hears and where it speaks, and the same of whoever relays for it.
fn client(room: usize) -> (BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>, Ends) {
    let (client, ours) = duplex(room);
    let (from, to) = tokio::io::split(client);
    (BufReader::new(from), to, tokio::io::split(ours))
}

async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> String {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    line
}

#[tokio::test]
async fn both_may_write_before_they_read() {
    let (reach, host) = there();
    let (mut from, mut to, (input, output)) = client(64);
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
    let (mut from, mut to, (input, output)) = client(1 << 20);
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
    let (mut from, mut to, (input, output)) = client(1 << 20);
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
        tells.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"half").await.unwrap();
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
    let (mut from, mut to, (input, output)) = client(1 << 20);
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
    let (mut from, mut to, (input, output)) = client(1 << 20);
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
