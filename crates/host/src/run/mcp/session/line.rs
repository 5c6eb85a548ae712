//! One line of a server's output: what it is, and whether there is too much of it.

use std::borrow::Cow;
use std::collections::HashSet;

use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use serde_json::Value;

use crate::weight::is_bearable;

/// A message from a server.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// How many lines that are no messages a server may write between two answers.
const MOST_NOISE: usize = 1000;

/// What is wrong with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::run::mcp) enum Fault {
    /// It says what is not of the protocol.
    Garbled(&'static str),
    /// It says more than it may.
    TooMuch,
}

/// What a line is.
#[derive(Debug)]
pub(super) enum Line {
    /// Messages; one, or those of a batch.
    Messages(Vec<Message>),
    /// Nothing of the protocol: some servers greet on the wrong stream.
    Noise,
}

/// The next line of what has come, without its end, if it has ended; what has begun is kept. No line has more bytes than so many.
pub(super) fn next<'n>(
    begun: &mut Vec<u8>,
    rest: &mut &'n [u8],
    longest: u64,
) -> Result<Option<Cow<'n, [u8]>>, Fault> {
    let is_bounded = |line: &[u8]| line.len() as u64 <= longest;
    let Some(at) = memchr::memchr(b'\n', rest) else {
        begun.extend_from_slice(rest);
        *rest = &[];
        return if is_bounded(begun) { Ok(None) } else { Err(Fault::TooMuch) };
    };
    let (line, after) = (&rest[..at], &rest[at + 1..]);
    *rest = after;
    let line = if begun.is_empty() {
        Cow::Borrowed(line)
    } else {
        begun.extend_from_slice(line);
        Cow::Owned(std::mem::take(begun))
    };
    if is_bounded(&line) { Ok(Some(line)) } else { Err(Fault::TooMuch) }
}

/// What may be a message in a line, if it can be borne to be read.
pub(super) fn within(line: &[u8]) -> Result<&[u8], Fault> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if is_bearable(line) { Ok(line) } else { Err(Fault::TooMuch) }
}

/// Says what a line is.
pub(super) fn understand(line: &[u8]) -> Result<Line, Fault> {
    let line = within(line)?;
    let parsed = match line.first() {
        Some(b'[') => serde_json::from_slice(line),
        Some(b'{') => serde_json::from_slice(line).map(|one| vec![one]),
        _ => return Ok(Line::Noise),
    };
    let value: Option<Value> = match parsed {
        Ok(messages) => return Ok(Line::Messages(messages)),
        Err(_) => serde_json::from_slice(line).ok(),
    };
    match value {
        None => Ok(Line::Noise),
        // A notification of another protocol asks nothing of us.
        Some(value) if value.get("method").is_some() && value.get("id").is_none() => {
            Ok(Line::Noise)
        }
        Some(_) => Err(Fault::Garbled("it sent JSON that is no message")),
    }
}

/// The same of what may be for somebody else: there only too much of it is a fault.
pub(super) fn understand_any(data: &[u8]) -> Result<Line, Fault> {
    match understand(data) {
        Err(Fault::Garbled(_)) => Ok(Line::Noise),
        understood => understood,
    }
}

/// Counts what a server says that nobody asked for. An answer to a question sets it back.
#[derive(Debug)]
pub(super) struct Tally {
    most: u64,
    bytes: u64,
    noise: usize,
}

impl Tally {
    /// A count that goes to so many bytes.
    pub(super) fn new(most: u64) -> Self {
        Self { most, bytes: 0, noise: 0 }
    }

    /// An answer came that was asked for.
    pub(super) fn begin_anew(&mut self) {
        (self.bytes, self.noise) = (0, 0);
    }

    /// Counts what was said beside the messages.
    pub(super) fn overhear(&mut self, length: usize) -> Result<(), Fault> {
        self.bytes += length as u64;
        if self.bytes > self.most { Err(Fault::TooMuch) } else { Ok(()) }
    }

    /// Counts a line. Says whether an answer was among it.
    pub(super) fn count(
        &mut self,
        length: usize,
        line: &Line,
        asked: &mut HashSet<RequestId>,
    ) -> Result<bool, Fault> {
        let is_answer = match line {
            Line::Messages(messages) => {
                let answers = messages.iter().filter_map(answered);
                answers.filter(|id| asked.remove(*id)).count() > 0
            }
            Line::Noise => {
                self.noise += 1;
                false
            }
        };
        if is_answer {
            self.begin_anew();
            return Ok(true);
        }
        self.overhear(length + 1)?;
        if self.noise > MOST_NOISE {
            return Err(Fault::Garbled(
                "more than 1000 lines that are no message came before an answer",
            ));
        }
        Ok(false)
    }
}

/// Which request a message answers.
pub(super) fn answered(message: &Message) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn lines_are_bounded_and_put_together() {
        let lines = |pieces: &[&str]| {
            let (mut begun, mut lines) = (Vec::new(), Vec::new());
            for piece in pieces {
                let mut rest = piece.as_bytes();
                while let Some(line) = next(&mut begun, &mut rest, 10)? {
                    lines.push(String::from_utf8(line.into_owned()).unwrap());
                }
            }
            Ok(lines)
        };
        assert_eq!(lines(&["one\n\ntwo\n"]).unwrap(), ["one", "", "two"]);
        assert_eq!(lines(&["o", "n", "e\ntw", "o\nunfinished"]).unwrap(), ["one", "two"]);
        assert_eq!(lines(&["exactly10!\n"]).unwrap(), ["exactly10!"]);
        assert_eq!(lines(&["exactly", "10!", "\n"]).unwrap(), ["exactly10!"]);
        for long in [&["longer than ten\n"][..], &["longer ", "than ten"], &["short\nlonger than"]]
        {
            assert_eq!(lines(long), Err(Fault::TooMuch), "{long:?}");
        }
    }

    #[test]
    fn noise_is_told_from_messages_and_from_what_pretends_to_be_one() {
        for noise in [
            "",
            "ready on port 7",
            "{ broken",
            "[1, 2",
            "[2026-11-15 10:00] up",
            "\u{1b}[32mok",
            "7",
            "null",
        ] {
            assert!(matches!(understand(noise.as_bytes()), Ok(Line::Noise)), "{noise}");
        }
        let one = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        for (text, count) in [
            (one.to_owned(), 1),
            (format!("\u{feff}{one}\r"), 1),
            (format!("[{one},{one}]"), 2),
            (r#"{"jsonrpc":"2.0","method":"notifications/odd","params":{"x":[1]}}"#.to_owned(), 1),
        ] {
            match understand(text.as_bytes()) {
                Ok(Line::Messages(messages)) => assert_eq!(messages.len(), count, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for bad in [r#"{"id":1}"#, r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "[1]"] {
            assert!(understand(bad.as_bytes()).is_err(), "{bad}");
            assert!(matches!(understand_any(bad.as_bytes()), Ok(Line::Noise)), "{bad}");
        }
        let heavy = one.replace("[]", &format!("[{}]", "[],".repeat(1 << 20)));
        assert_eq!(understand_any(heavy.as_bytes()).unwrap_err(), Fault::TooMuch);
    }

    #[test]
    fn only_answers_that_were_asked_for_set_the_count_back() {
        let line = |number: i64| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
            understand(text.as_bytes()).unwrap()
        };
        let mut asked = HashSet::from([id(1), id(2)]);
        let mut tally = Tally::new(100);
        assert_eq!(tally.count(60, &line(9), &mut asked), Ok(false));
        assert_eq!(tally.count(60, &line(1), &mut asked), Ok(true));
        assert_eq!(tally.count(60, &line(1), &mut asked), Ok(false));
        assert_eq!(tally.count(60, &line(1), &mut asked), Err(Fault::TooMuch));
        let mut tally = Tally::new(u64::MAX);
        let counted = (0..=MOST_NOISE).map(|_| tally.count(1, &Line::Noise, &mut asked));
        assert!(matches!(counted.last(), Some(Err(Fault::Garbled(_)))));
    }
}
