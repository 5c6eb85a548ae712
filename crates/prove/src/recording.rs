//! Requests and their answers in a file, so that a tool that asks a server can be tested without it.
//!
//! The file is JSON lines: one that says what it is, then one for each request and its answer. A request that was made
//! several times with other answers has as many lines, which are given in order; the last is given from then on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host::tape::{Answer, Asked, Tape, Turn};
use serde_json::{Map, Value, json};

/// The largest file, in bytes.
pub const LARGEST: usize = 64 << 20;

/// How many answers a file has at most.
const MOST: usize = 100_000;

/// The longest method, URL and value of a header, in bytes.
const LONGEST: usize = 64 << 10;

/// The key by which a file is known, with its version.
const MARK: &str = "haft_recording";
const VERSION: u64 = 1;

/// Why there is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingError {
    /// There is too much of it.
    TooLarge,
    /// It is none.
    NoRecording,
    /// It is of a version that is not known here.
    Version(String),
    /// A line of it cannot be read, for this reason.
    Line(usize, &'static str),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => {
                write!(out, "a recording has at most {MOST} answers and {} MiB", LARGEST >> 20)
            }
            Self::NoRecording => write!(out, "it does not begin as a recording does"),
            Self::Version(version) => write!(out, "it is of version {version}, not {VERSION}"),
            Self::Line(number, why) => write!(out, "line {number}: {why}"),
        }
    }
}

impl std::error::Error for RecordingError {}

/// Writes down what servers answer.
#[derive(Debug, Default)]
pub struct Recorder {
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    lines: Vec<String>,
    bytes: usize,
    is_too_much: bool,
}

impl Recorder {
    /// How many answers were heard.
    pub fn len(&self) -> usize {
        lock(&self.heard).lines.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file of what was heard.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecordingError> {
        let heard = lock(&self.heard);
        if heard.is_too_much {
            return Err(RecordingError::TooLarge);
        }
        let mut text = format!("{}\n", json!({ MARK: VERSION }));
        for line in &heard.lines {
            text += line;
            text.push('\n');
        }
        Ok(text.into_bytes())
    }
}

impl Tape for Recorder {
    fn answer(&self, _: &Asked) -> Turn {
        Turn::Server
    }

    fn heard(&self, asked: Asked, answer: Answer) {
        let line = line_of(&asked, &answer);
        let mut heard = lock(&self.heard);
        // To be told the same again adds nothing: the last answer is given from then on.
        if heard.lines.last() == Some(&line) {
            return;
        }
        heard.bytes += line.len() + 1;
        heard.is_too_much |= heard.bytes > LARGEST - 64 || heard.lines.len() >= MOST;
        if !heard.is_too_much {
            heard.lines.push(line);
        }
    }

    fn is_offline(&self) -> bool {
        false
    }
}

/// Answers as servers once did, and asks none.
#[derive(Debug, Default)]
pub struct Recording {
    answers: Mutex<HashMap<Asked, Answers>>,
}

#[derive(Debug, Default)]
struct Answers {
    all: Vec<Answer>,
    given: usize,
}

impl Recording {
    /// Whether a file begins as a recording does.
    pub fn is_one(bytes: &[u8]) -> bool {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        first.len() < 256
            && serde_json::from_slice::<Value>(first).is_ok_and(|line| line.get(MARK).is_some())
    }

    /// Reads a file.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordingError> {
        if bytes.len() > LARGEST {
            return Err(RecordingError::TooLarge);
        }
        if !Self::is_one(bytes) {
            return Err(RecordingError::NoRecording);
        }
        let mut answers: HashMap<Asked, Answers> = HashMap::new();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let wrong = |why| RecordingError::Line(index + 1, why);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let value: Value = serde_json::from_slice(line).map_err(|_| wrong("it is no JSON"))?;
            if index == 0 {
                let version = &value[MARK];
                if *version != VERSION {
                    return Err(RecordingError::Version(crate::value::shown(version)));
                }
                continue;
            }
            if index > MOST {
                return Err(RecordingError::TooLarge);
            }
            let (asked, answer) = read_line(&value).map_err(wrong)?;
            answers.entry(asked).or_default().all.push(answer);
        }
        Ok(Self { answers: Mutex::new(answers) })
    }
}

impl Tape for Recording {
    fn answer(&self, asked: &Asked) -> Turn {
        let mut answers = lock(&self.answers);
        let Some(answers) = answers.get_mut(asked) else { return Turn::Nobody };
        let at = answers.given.min(answers.all.len().saturating_sub(1));
        answers.given = at + 1;
        answers.all.get(at).cloned().map_or(Turn::Nobody, Turn::Kept)
    }

    fn heard(&self, _: Asked, _: Answer) {}

    fn is_offline(&self) -> bool {
        true
    }
}

fn line_of(asked: &Asked, answer: &Answer) -> String {
    let headers: Map<String, Value> =
        answer.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut line = json!({ "method": asked.method, "url": asked.url });
    if let Some(digest) = &asked.body_sha256 {
        line["body_sha256"] = json!(digest);
    }
    line["status"] = json!(answer.status);
    line["headers"] = Value::Object(headers);
    match std::str::from_utf8(&answer.body) {
        Ok(text) => line["text"] = json!(text),
        Err(_) => line["base64"] = json!(STANDARD.encode(&answer.body)),
    }
    line.to_string()
}

fn read_line(line: &Value) -> Result<(Asked, Answer), &'static str> {
    let text = |key: &str| line[key].as_str().filter(|text| text.len() <= LONGEST);
    let digest = match &line["body_sha256"] {
        Value::Null => None,
        Value::String(digest)
            if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Some(digest.to_ascii_lowercase())
        }
        _ => return Err("`body_sha256` is no digest"),
    };
    let asked = Asked {
        method: text("method").ok_or("there is no `method`")?.to_owned(),
        url: text("url").ok_or("there is no `url`")?.to_owned(),
        body_sha256: digest,
    };
    let status = line["status"].as_u64().filter(|status| (100..1000).contains(status));
    let status = status.ok_or("`status` is none of HTTP")?;
    let mut headers = Vec::new();
    for (name, value) in line["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().filter(|value| value.len() <= LONGEST);
        let value = value.ok_or("a header has no text")?;
        if Answer::keeps(name) {
            headers.push((name.clone(), value.to_owned()));
        }
    }
    let body = match (&line["text"], &line["base64"]) {
        (Value::String(text), Value::Null) => text.clone().into_bytes(),
        (Value::Null, Value::String(packed)) => {
            STANDARD.decode(packed).map_err(|_| "`base64` is none")?
        }
        _ => return Err("there is neither `text` nor `base64`, or both"),
    };
    let status = u16::try_from(status).map_err(|_| "`status` is none of HTTP")?;
    Ok((asked, Answer { status, headers, body }))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Asked {
        Asked { method: "GET".to_owned(), url: url.to_owned(), body_sha256: None }
    }

    fn answer(body: &[u8]) -> Answer {
        let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
        Answer { status: 200, headers, body: body.to_vec() }
    }

    #[test]
    fn what_was_heard_is_answered_again_in_order_and_nothing_else_is() {
        let recorder = Recorder::default();
        assert_eq!(recorder.answer(&asked("a")), Turn::Server);
        for (url, body) in [("a", "1"), ("a", "1"), ("a", "2"), ("b", "3")] {
            recorder.heard(asked(url), answer(body.as_bytes()));
        }
        recorder.heard(asked("c"), answer(&[0xff, 0]));
        assert_eq!(recorder.len(), 4);
        let recording = Recording::read(&recorder.to_bytes().unwrap()).unwrap();
        assert!(recording.is_offline() && !recorder.is_offline());
        for (url, body) in [("a", &b"1"[..]), ("b", b"3"), ("a", b"2"), ("a", b"2"), ("b", b"3")] {
            assert_eq!(recording.answer(&asked(url)), Turn::Kept(answer(body)), "{url}");
        }
        assert_eq!(recording.answer(&asked("c")), Turn::Kept(answer(&[0xff, 0])));
        assert_eq!(recording.answer(&asked("d")), Turn::Nobody);
        let posted = Asked { body_sha256: Some("0".repeat(64)), ..asked("a") };
        assert_eq!(recording.answer(&posted), Turn::Nobody);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let good = r#"{"method":"GET","url":"u","status":200,"headers":{},"text":""}"#;
        let read = |text: String| Recording::read(text.as_bytes()).unwrap_err();
        assert_eq!(read(String::new()), RecordingError::NoRecording);
        assert_eq!(read("{}".to_owned()), RecordingError::NoRecording);
        let later = read("{\"haft_recording\":2}\n".to_owned());
        assert_eq!(later, RecordingError::Version("2".to_owned()));
        for (old, new) in [
            ("\"GET\"", "7"),
            ("\"u\"", "null"),
            ("200", "99"),
            ("200", "99999"),
            ("{}", "{\"content-type\":1}"),
            ("\"text\":\"\"", "\"x\":1"),
            ("\"text\":\"\"", "\"text\":\"\",\"base64\":\"\""),
            ("\"text\":\"\"", "\"base64\":\"!\""),
            ("\"status\"", "\"body_sha256\":\"zz\",\"status\""),
            (good, "{"),
        ] {
            let text = format!("{{\"haft_recording\":1}}\n{good}\n{}\n", good.replace(old, new));
            assert!(matches!(read(text), RecordingError::Line(3, _)), "{old} {new}");
        }
        let whole = format!("{{\"haft_recording\":1}}\n\n{good}\n");
        assert!(Recording::read(whole.as_bytes()).is_ok());
    }

    #[test]
    fn too_much_is_told_instead_of_being_cut() {
        let recorder = Recorder::default();
        let body = vec![b'x'; 16 << 20];
        for url in 0..5 {
            recorder.heard(asked(&url.to_string()), answer(&body));
        }
        assert_eq!(recorder.to_bytes(), Err(RecordingError::TooLarge));
    }
}
