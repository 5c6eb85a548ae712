//! What went into the last calls and came out of them: so much that one finds where a result became an input, and
//! nothing that says what it was.
//!
//! A value is kept as a digest made with a key of this home, eight bytes of it, together with the name of the member or
//! the path where it was. Names are kept only where they look like those of a schema; short and common values are not
//! kept at all, since their digests could be guessed and say nothing.

use std::io::Write;

use super::query::{Alone, query};
use super::{State, StateError};
use crate::Time;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;

/// How many calls are kept.
pub const KEPT: i64 = 5_000;
/// How many are kept by one question, and how many values each has.
const AT_ONCE: usize = 32;
const COLUMNS: usize = 7;
/// How many places of one value are.
const MOST_PLACES: usize = 48;
/// How deep below a result they are looked for.
const DEEPEST: usize = 4;
/// The most members that something has which is no list of somebody's data.
const MOST_MEMBERS: usize = 24;
/// The longest value that is looked at, in bytes of JSON.
const LONGEST: usize = 64 << 10;
/// The shortest text that says something by being the same.
const SHORTEST: usize = 6;
/// The smallest number that does.
const LEAST: f64 = 10_000.0;

/// What flows are made with in a home.
#[derive(Clone, Debug)]
pub struct Key([u8; 32]);

/// A place and what stands for the value there.
pub type Place = (String, u64);

/// What went into a call and came out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The package, by its id with the dialect.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The action.
    pub action: String,
    /// When it began.
    pub began: Time,
    /// When it ended.
    pub ended: Time,
    /// The members of its input, by name.
    pub inputs: Vec<Place>,
    /// The places of its result, by path.
    pub outputs: Vec<Place>,
}

impl Key {
    /// The members of an input that say something.
    pub fn inputs(&self, input: &Value) -> Vec<Place> {
        let members = input.as_object().into_iter().flatten();
        let members = members.filter(|(name, _)| is_name(name)).take(MOST_MEMBERS);
        members.filter_map(|(name, value)| Some((name.clone(), self.digest(value)?))).collect()
    }

    /// The places of a result that say something, the widest first.
    pub fn outputs(&self, result: &Value) -> Vec<Place> {
        let mut places = Vec::new();
        let mut left = std::collections::VecDeque::from([("$".to_owned(), result, 0)]);
        while let Some((path, value, depth)) = left.pop_front() {
            if places.len() == MOST_PLACES {
                break;
            }
            places.extend(self.digest(value).map(|digest| (path.clone(), digest)));
            if depth == DEEPEST {
                continue;
            }
            match value {
                Value::Object(members)
                    if members.len() <= MOST_MEMBERS
                        && members.keys().all(|name| is_name(name)) =>
                {
                    let below = |(name, value)| (format!("{path}.{name}"), value, depth + 1);
                    left.extend(members.iter().map(below));
                }
                // Of a list, the first may have been taken for all.
                Value::Array(items) => {
                    left.extend(
                        items.first().map(|first| (format!("{path}[0]"), first, depth + 1)),
                    );
                }
                _ => {}
            }
        }
        places
    }

    /// What stands for a value; nothing where it says nothing, or is too long to be looked at.
    fn digest(&self, value: &Value) -> Option<u64> {
        let says_something = match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() >= LEAST),
            Value::String(text) => text.len() >= SHORTEST,
            Value::Array(items) => items.len() > 1 || items.iter().any(|item| !item.is_null()),
            Value::Object(members) => !members.is_empty(),
        };
        if !says_something {
            return None;
        }
        let mut sink = Sink { hash: Sha256::new_with_prefix(self.0), left: LONGEST };
        feed(value, &mut sink).ok()?;
        // The key at both ends, so that nothing can be added to what was digested.
        let digest = sink.hash.chain_update(self.0).finalize();
        digest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// Writes a value so that equal ones are equal texts: members in the order of their names.
fn feed(value: &Value, sink: &mut Sink) -> std::io::Result<()> {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            sink.write_all(b"{")?;
            for (name, value) in members {
                serde_json::to_writer(&mut *sink, name)?;
                feed(value, sink)?;
            }
            sink.write_all(b"}")
        }
        Value::Array(items) => {
            sink.write_all(b"[")?;
            for item in items {
                feed(item, sink)?;
                sink.write_all(b",")?;
            }
            sink.write_all(b"]")
        }
        plain => Ok(serde_json::to_writer(sink, plain)?),
    }
}

/// Takes so many bytes and no more.
struct Sink {
    hash: Sha256,
    left: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether a name is one that a schema would have. Others may be somebody's data.
fn is_name(name: &str) -> bool {
    name.len() <= 40
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl State {
    /// What flows are made with here; it is made by whoever comes first.
    pub async fn flow_key(&self) -> Result<Key, StateError> {
        let failed = |error| self.failed("read the key of flows", error);
        let mut connection = self.connection().await?;
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|error| {
            self.failed("make the key of flows", sqlx::Error::Io(std::io::Error::other(error)))
        })?;
        let known: Option<(Vec<u8>,)> = query("SELECT key FROM flow_key")
            .fetch_optional(&mut connection)
            .await
            .map_err(failed)?;
        let (known,) = match known {
            Some(known) => known,
            None => {
                query("INSERT INTO flow_key VALUES (1, $1) ON CONFLICT DO NOTHING")
                    .bind(&fresh[..])
                    .execute(&mut connection)
                    .await
                    .map_err(failed)?;
                let kept = query("SELECT key FROM flow_key");
                kept.fetch_one(&mut connection).await.map_err(failed)?
            }
        };
        let key = known.try_into().map_err(|_| {
            let error = std::io::Error::other("it has another length");
            self.failed("read the key of flows", sqlx::Error::Io(error))
        })?;
        Ok(Key(key))
    }

    /// What is kept of the last calls, in the order in which they began.
    pub async fn flows(&self) -> Result<Vec<Flow>, StateError> {
        let rows: Vec<(String, String, String, i64, i64, String, String)> = query(
            "SELECT package, version, action, began, ended, inputs, outputs FROM flows ORDER BY began, id",
        )
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("read flows", error))?;
        let places = |text: String| serde_json::from_str(&text).unwrap_or_default();
        let flow = |(package, version, action, began, ended, inputs, outputs)| Flow {
            package,
            version,
            action,
            began: Time::from_unix_millis(began),
            ended: Time::from_unix_millis(ended),
            inputs: places(inputs),
            outputs: places(outputs),
        };
        Ok(rows.into_iter().map(flow).collect())
    }

    /// Forgets what is kept of calls: of one package, or of all.
    pub async fn forget_flows(&self, package: Option<&str>) -> Result<u64, StateError> {
        query("DELETE FROM flows WHERE $1 IS NULL OR package = $1")
            .bind(package)
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("forget flows", error))
    }
}

/// Keeps what went into calls and came out of them. Each question to the database wakes a thread, so it is asked for many at once.
pub(super) async fn put(alone: &mut Alone<'_>, flows: &[&Flow]) -> Result<(), sqlx::Error> {
    let text = |places: &[Place]| serde_json::to_string(places).unwrap_or_default();
    let kept = usize::try_from(KEPT).unwrap_or(usize::MAX);
    let last = &flows[flows.len().saturating_sub(kept)..];
    for some in last.chunks(AT_ONCE) {
        let row = |number: usize| {
            let columns: Vec<_> =
                (1..=COLUMNS).map(|at| format!("${}", number * COLUMNS + at)).collect();
            format!("({})", columns.join(", "))
        };
        let rows: Vec<_> = (0..some.len()).map(row).collect();
        let mut asked = query(AssertSqlSafe(format!(
            "INSERT INTO flows (package, version, action, began, ended, inputs, outputs) VALUES {}",
            rows.join(", ")
        )));
        for flow in some {
            asked = asked
                .bind(&flow.package)
                .bind(&flow.version)
                .bind(&flow.action)
                .bind(flow.began.unix_millis())
                .bind(flow.ended.unix_millis())
                .bind(text(&flow.inputs))
                .bind(text(&flow.outputs));
        }
        asked.execute(&mut *alone).await?;
    }
    Ok(())
}

/// Forgets all but the last.
pub(super) async fn forget_old(alone: &mut Alone<'_>) -> Result<(), sqlx::Error> {
    query("DELETE FROM flows WHERE id <= (SELECT max(id) FROM flows) - $1")
        .bind(KEPT)
        .execute(alone)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(byte: u8) -> Key {
        Key([byte; 32])
    }

    #[test]
    fn equal_values_are_equal_wherever_they_are_and_mean_nothing_elsewhere() {
        let result = json!({"pages": ["first page", "second"], "text": "a long text", "n": 3});
        let out = key(1).outputs(&result);
        let at = |path: &str| out.iter().find(|(one, _)| one == path).map(|(_, digest)| *digest);
        let given = key(1).inputs(&json!({"b": "a long text", "a": ["first page", "second"]}));
        assert_eq!(given[0], ("b".to_owned(), at("$.text").unwrap_or_default()));
        assert_eq!(given[1], ("a".to_owned(), at("$.pages").unwrap_or_default()));
        assert_eq!(
            at("$.pages[0]"),
            key(1).inputs(&json!({"x": "first page"})).first().map(|(_, it)| *it)
        );
        assert_ne!(key(1).inputs(&result), key(2).inputs(&result));
        // The order in which members are written is none of theirs.
        let [one, other] =
            [r#"{"x":{"a":"123456","b":"654321"}}"#, r#"{"x":{"b":"654321","a":"123456"}}"#];
        let read = |text| key(1).inputs(&serde_json::from_str(text).unwrap_or_default());
        assert_eq!(read(one), read(other));
    }

    #[test]
    fn what_says_nothing_or_may_be_somebody_s_data_is_not_kept() {
        let dull =
            json!({"a": true, "b": null, "c": 7, "d": "short", "e": [], "f": {}, "g": [null]});
        assert_eq!(key(1).inputs(&dull), []);
        assert_eq!(
            key(1).inputs(&json!({"ann@example.com": "a long text", "a b": "a long text"})),
            []
        );
        // A table by people's names is kept as a whole, and no name of it.
        let table = json!({"by": {"ann@example.com": "some text", "bob": "other text"}});
        let paths: Vec<_> = key(1).outputs(&table).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["$", "$.by"]);
        let many: serde_json::Map<_, _> =
            (0..100).map(|at| (format!("name{at}"), json!("some text"))).collect();
        assert_eq!(key(1).outputs(&Value::Object(many)).len(), 1);
    }

    #[test]
    fn a_large_or_deep_value_takes_no_longer_than_it_should() {
        let large = json!({"x": "y".repeat(LONGEST + 1), "z": "a long text"});
        let paths: Vec<_> = key(1).outputs(&large).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["$.z"]);
        let mut deep = json!("a long text");
        for _ in 0..100 {
            deep = json!({"a": deep, "b": deep.to_string().len()});
        }
        assert!(key(1).outputs(&deep).len() <= MOST_PLACES);
    }
}
