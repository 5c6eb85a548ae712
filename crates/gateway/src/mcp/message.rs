//! Messages of JSON-RPC: read without being taken apart, and written.
//!
//! What is passed on between a client and a server is kept as the text it came as, so nothing that we do not know is lost.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::{Code, Error};

/// How many messages one text may hold.
const MOST_IN_BATCH: usize = 100;

/// A message as it came.
#[derive(Debug)]
pub(crate) enum Message<'m> {
    /// Somebody asks.
    Request(Request<'m>),
    /// Somebody tells.
    Notification { method: Cow<'m, str>, params: Option<&'m RawValue> },
    /// Somebody answers what they were asked.
    Answer { id: Id, answer: Result<&'m RawValue, &'m RawValue> },
}

/// A question.
#[derive(Debug)]
pub(crate) struct Request<'m> {
    pub(crate) id: Id,
    pub(crate) method: Cow<'m, str>,
    pub(crate) params: Option<&'m RawValue>,
}

impl Request<'_> {
    /// The parameters as a value; none are an empty object.
    pub(crate) fn params(&self) -> Result<Value, Error> {
        match self.params {
            None => Ok(json!({})),
            Some(params) => read(params),
        }
    }
}

/// Reads a part of a message.
pub(crate) fn read<'p, T: Deserialize<'p>>(part: &'p RawValue) -> Result<T, Error> {
    serde_json::from_str(part.get()).map_err(|error| {
        Error::new(
            Code::BadParameters,
            format!("the parameters are not what the method takes: {error}"),
        )
    })
}

/// What a question is called: a text or a whole number, each written in one way alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(String);

impl Id {
    /// Of a question of our own.
    pub(crate) fn own(number: u64) -> Self {
        Self(format!("\"haft-{number}\""))
    }

    /// Of what is said again for a client.
    pub(crate) fn again(number: u64) -> Self {
        Self(format!("\"haft-again-{number}\""))
    }

    /// As JSON.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// As a value.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.starts_with('"') && text.contains('\\') {
            // What is escaped may still be no text. Where it is one, it is the same without needless escapes.
            let said: String = serde_json::from_str(text).ok()?;
            return Some(Self(Value::from(said).to_string()));
        }
        let is_number = text.len() <= 20
            && text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        (text.starts_with('"') || is_number).then(|| Self(text.to_owned()))
    }
}

#[derive(Deserialize)]
struct Envelope<'m> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'m, str>>,
    #[serde(borrow, default, deserialize_with = "said")]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
    #[serde(borrow, default, deserialize_with = "said")]
    result: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

/// What stands there, `null` too.
fn said<'m, D: Deserializer<'m>>(from: D) -> Result<Option<&'m RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads a message. What is none has no id that an answer could name, or it has, and then the error says which.
pub(crate) fn parse(text: &str) -> Result<Message<'_>, (Option<Id>, Error)> {
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() && text.trim_start().starts_with('[') => {
            let words = format!(
                "several messages in one are spoken in revision 2025-03-26 alone, and of them there are 1 to {MOST_IN_BATCH}"
            );
            return Err((None, Error::new(Code::BadRequest, words)));
        }
        Err(error) if error.is_data() => {
            return Err((None, Error::new(Code::BadRequest, "this is no message of JSON-RPC")));
        }
        Err(_) => return Err((None, Error::new(Code::NoJson, "this is no JSON"))),
    };
    let wrong = |id: Option<&RawValue>, words: &str| {
        Err((id.and_then(Id::read), Error::new(Code::BadRequest, words)))
    };
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    if jsonrpc.as_deref() != Some("2.0") {
        return wrong(id, "`jsonrpc` is not \"2.0\"");
    }
    let read_id = match id {
        None => None,
        Some(raw) => match Id::read(raw) {
            Some(id) => Some(id),
            None => return wrong(None, "an id is a text or a whole number"),
        },
    };
    if params.is_some_and(|params| !params.get().starts_with('{')) {
        return wrong(id, "`params` is no object");
    }
    match (method, read_id, result, error) {
        (Some(method), Some(id), None, None) => {
            Ok(Message::Request(Request { id, method, params }))
        }
        (Some(method), None, None, None) => Ok(Message::Notification { method, params }),
        (None, Some(id), Some(result), None) => Ok(Message::Answer { id, answer: Ok(result) }),
        (None, Some(id), None, Some(error)) => Ok(Message::Answer { id, answer: Err(error) }),
        _ => wrong(id, "this is neither a question nor an answer"),
    }
}

/// The request that a notification calls off.
pub(crate) fn called_off(method: &str, params: Option<&RawValue>) -> Option<Id> {
    #[derive(Deserialize)]
    struct CalledOff<'m> {
        #[serde(borrow, rename = "requestId")]
        request: &'m RawValue,
    }
    if method != "notifications/cancelled" {
        return None;
    }
    let said: CalledOff<'_> = serde_json::from_str(params?.get()).ok()?;
    Id::read(said.request)
}

/// The messages of a text that holds several.
pub(crate) fn batch(text: &str) -> Option<Vec<&RawValue>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let batch: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    (1..=MOST_IN_BATCH).contains(&batch.len()).then_some(batch)
}

/// An answer, as it is sent. To what had no id that could be read, the answer has none.
pub(crate) fn answer(id: Option<&Id>, answer: &Result<String, Error>) -> String {
    let mut text = String::with_capacity(answer.as_ref().map_or(256, String::len) + 64);
    text.push_str("{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        text.push_str("\"id\":");
        text.push_str(id.text());
        text.push(',');
    }
    match answer {
        Ok(result) => {
            text.push_str("\"result\":");
            text.push_str(result);
        }
        Err(error) => {
            text.push_str("\"error\":");
            text.push_str(&error.to_value().to_string());
        }
    }
    text.push('}');
    text
}

/// A question of ours, as it is sent.
pub(crate) fn request(id: &Id, method: &str, params: &Value) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":{},\"params\":{params}}}",
        id.text(),
        Value::from(method)
    )
}

/// A notification, as it is sent.
pub(crate) fn notification(method: &str, params: &Value) -> String {
    match params {
        Value::Null => json!({ "jsonrpc": "2.0", "method": method }).to_string(),
        params => json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let request = parse(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap();
        assert!(matches!(request, Message::Request(one) if one.id.text() == "7"));
        let told = parse(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#).unwrap();
        assert!(matches!(told, Message::Notification { .. }));
        let answered = parse(r#"{"jsonrpc":"2.0","id":"haft-1","result":{"a": 1}}"#).unwrap();
        assert!(
            matches!(answered, Message::Answer { id, answer: Ok(raw) } if id == Id::own(1) && raw.get() == r#"{"a": 1}"#)
        );
    }

    #[test]
    fn what_is_no_message_is_refused_and_its_id_is_named_where_there_is_one() {
        for (text, code, id) in [
            ("{", Code::NoJson, None),
            ("[]", Code::BadRequest, None),
            (r#"{"id":1,"method":"a"}"#, Code::BadRequest, Some("1")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, Code::BadRequest, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, Code::BadRequest, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, Code::BadRequest, None),
            (r#"{"jsonrpc":"2.0","id":"\ud800","method":"a"}"#, Code::BadRequest, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#, Code::BadRequest, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, Code::BadRequest, None),
            (r#"{"jsonrpc":"2.0","id":1}"#, Code::BadRequest, Some("1")),
        ] {
            let (found, error) = parse(text).unwrap_err();
            assert_eq!((error.code, found.as_ref().map(Id::text)), (code, id), "{text}");
        }
    }

    #[test]
    fn a_request_is_called_off_however_its_id_is_written() {
        let asked = parse(r#"{"jsonrpc":"2.0","id":"a\u00e9\/\"","method":"x"}"#).unwrap();
        let Message::Request(Request { id, .. }) = asked else { panic!("{asked:?}") };
        assert_eq!(id.text(), r#""aé/\"""#);
        let params = |id: &str| RawValue::from_string(format!(r#"{{"requestId":{id}}}"#)).unwrap();
        let named = |method: &str, id: &str| called_off(method, Some(&params(id)));
        assert_eq!(named("notifications/cancelled", r#""\u0061\u00E9/\u0022""#), Some(id));
        for (method, id) in [("notifications/cancelled", "{}"), ("notifications/progress", "1")] {
            assert_eq!(named(method, id), None, "{method} {id}");
        }
        assert_eq!(
            named("notifications/cancelled", "99999999999999999999").unwrap().text(),
            "99999999999999999999"
        );
        assert_eq!(called_off("notifications/cancelled", None), None);
    }

    #[test]
    fn several_messages_may_stand_after_white_space() {
        assert_eq!(batch("\n [7]").map(|all| all.len()), Some(1));
        assert!(batch("7").is_none() && batch("[]").is_none());
    }

    #[test]
    fn who_puts_too_many_messages_in_one_is_told_how_many_there_may_be() {
        let of = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert!(batch(&of(MOST_IN_BATCH)).is_some());
        for text in [of(0), of(MOST_IN_BATCH + 1)] {
            assert!(batch(&text).is_none());
            assert!(parse(&text).unwrap_err().1.message.contains("1 to 100"), "{text}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let id = Id::own(3);
        let text = answer(Some(&id), &Ok("{\"a\":[1]}".to_owned()));
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":"haft-3","result":{"a":[1]}}"#);
        let text = answer(None, &Err(Error::new(Code::NoJson, "no")));
        assert_eq!(text, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#);
        assert!(parse(&request(&id, "roots/list", &json!({}))).is_ok());
        assert!(parse(&notification("notifications/x", &Value::Null)).is_ok());
    }
}
