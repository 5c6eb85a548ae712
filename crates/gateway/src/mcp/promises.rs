//! What must hold for any text of a client.
//!
//! Each function takes bytes as a fuzzer or a stranger would hand them over and says which promise is broken, if any. The targets
//! in `fuzz/` call them, and so do ordinary tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::{Code, Error};
use super::headers::{AFTER, BEFORE, decoded};
use super::message::{Id, Message, answer, batch, parse};
use super::revision::Meta;
use super::seal::{Binding, Seal, State};

/// The longest state that comes back.
const LONGEST: usize = 64 << 10;

/// Whether every promise is kept, and which one is not.
pub type Kept = Result<(), String>;

/// A message, or several of them: what is read of one is what stands there, and what is answered names its id.
pub fn message(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    one_message(text)?;
    for part in batch(text).into_iter().flatten() {
        holds(text.contains(part.get()), || format!("a batch has no {part}"))?;
        one_message(part.get())?;
    }
    Ok(())
}

/// What a client brings back sealed: nobody can make it or change it, and what was sealed comes back for its request alone.
pub fn sealed(bytes: &[u8]) -> Kept {
    if bytes.len() > LONGEST {
        return Ok(());
    }
    let seal = Seal::new(&[7; 32]);
    let text = String::from_utf8_lossy(bytes);
    let binding = Binding::of(&["me", &text]);
    holds(seal.open(&text, &binding).is_none(), || format!("nobody sealed {text:?}"))?;
    let state = State::Server(Some(text.to_string()));
    let Some(closed) = seal.close(state.clone(), &binding) else { return Ok(()) };
    holds(seal.open(&closed, &binding) == Some(state), || format!("{text:?} does not come back"))?;
    let other = Binding::of(&["you", &text]);
    holds(seal.open(&closed, &other).is_none(), || format!("{text:?} comes back for another"))?;
    // The last letter may hold bits that stand for nothing.
    let at = bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % (closed.len() - 1);
    let mut changed = closed.into_bytes();
    changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8_lossy(&changed);
    holds(seal.open(&changed, &binding).is_none(), || format!("{text:?} was changed at {at}"))
}

/// The value of a header: as it stands there, or what was written so that it can.
pub fn header(bytes: &[u8]) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let is_coded = text.starts_with(BEFORE) && text.ends_with(AFTER);
    if !is_coded {
        holds(decoded(&text).as_deref() == Some(&*text), || format!("{text:?} is another"))?;
    }
    let written = format!("{BEFORE}{}{AFTER}", STANDARD.encode(text.as_bytes()));
    holds(decoded(&written).as_deref() == Some(&*text), || format!("{written:?} is another"))
}

fn one_message(text: &str) -> Kept {
    // It refuses more than is refused of a message: what is passed on is not taken apart.
    let whole: Option<Value> = serde_json::from_str(text).ok();
    let read = match parse(text) {
        Ok(read) => read,
        Err((id, error)) => {
            let is_right = match error.code {
                Code::NoJson => whole.is_none() && id.is_none(),
                Code::BadRequest => true,
                _ => false,
            };
            holds(is_right, || format!("{error:?} of {text:?}"))?;
            if let (Some(id), Some(whole)) = (&id, &whole) {
                holds(id.to_value() == whole["id"], || format!("{id:?} of {text:?}"))?;
            }
            return answered(id.as_ref(), &Err(error));
        }
    };
    let expected = match &read {
        Message::Request(request) => {
            if let Ok(params) = request.params() {
                // Whatever they say, it is looked at.
                let _ = Meta::of(&params).check();
            }
            answered(Some(&request.id), &Ok("{}".to_owned()))?;
            json!({ "id": request.id.to_value(), "method": request.method })
        }
        Message::Notification { method, .. } => json!({ "method": method }),
        Message::Answer { id, .. } => json!({ "id": id.to_value() }),
    };
    let Some(whole) = whole else { return Ok(()) };
    for name in ["id", "method"] {
        holds(expected[name] == whole[name], || format!("`{name}` of {text:?} is {expected}"))?;
    }
    let raw = match read {
        Message::Request(request) => ("params", request.params),
        Message::Notification { params, .. } => ("params", params),
        Message::Answer { answer: Ok(result), .. } => ("result", Some(result)),
        Message::Answer { answer: Err(error), .. } => ("error", Some(error)),
    };
    let (name, raw) = raw;
    let said = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    holds(said.unwrap_or_default() == whole[name], || format!("`{name}` of {text:?}"))
}

/// Whatever is answered is a message with that id.
fn answered(id: Option<&Id>, with: &Result<String, Error>) -> Kept {
    let text = answer(id, with);
    let whole: Option<Value> = serde_json::from_str(&text).ok();
    let named = whole.as_ref().map(|whole| whole["id"].clone());
    holds(named == Some(id.map(Id::to_value).unwrap_or_default()), || format!("{text:?}"))
}

fn holds(is_kept: bool, words: impl FnOnce() -> String) -> Kept {
    if is_kept { Ok(()) } else { Err(words()) }
}

#[cfg(test)]
mod tests {
    use testkit::bytes::damaged;
    use testkit::draws::holds;

    use super::*;

    /// How many damaged texts are made of each.
    const CASES: u32 = 1_500;

    /// Texts as clients send them, and as some would.
    const MESSAGES: [&str; 8] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1.5,"\ud83d\ude00",null]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}}}"#,
        r#"{"jsonrpc":"2.0","id":"a-1","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":"haft-1","result":{"action":"accept","content":{}}}"#,
        r#"{"jsonrpc":"2.0","id":-3,"error":{"code":-32601,"message":"no"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},7]"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"p\u0069ng","params":{"a":1e999}}"#,
    ];

    fn kept(seed: &[u8], promise: fn(&[u8]) -> Kept) {
        promise(seed).unwrap();
        holds(CASES, &damaged(seed.to_vec()), |bytes| {
            promise(&bytes).map_err(proptest::test_runner::TestCaseError::fail)
        });
    }

    #[test]
    fn every_promise_is_kept_for_damaged_messages() {
        for seed in MESSAGES {
            kept(seed.as_bytes(), message);
        }
        // What is nested deeper than anybody reads is passed over or refused.
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}1{}}}"#,
            r#"{"a":"#.repeat(500),
            "}".repeat(500)
        );
        message(deep.as_bytes()).unwrap();
    }

    #[test]
    fn every_promise_is_kept_for_damaged_states() {
        let binding = Binding::of(&["me", ""]);
        let state = State::TaskOf("mcpb:a".to_owned(), "1".to_owned());
        let sealed_state = Seal::new(&[7; 32]).close(state, &binding).unwrap();
        for seed in ["", "A", &sealed_state] {
            kept(seed.as_bytes(), sealed);
        }
    }

    #[test]
    fn every_promise_is_kept_for_damaged_headers() {
        for seed in ["tools/call", "=?base64?SGVsbG8=?=", "=?base64??=", "=?base64?=", "Grüße"] {
            kept(seed.as_bytes(), header);
        }
    }
}
