//! Bytes from outside, read strictly.

use std::fmt;

use manifest::json::parse;
use serde::de::DeserializeOwned;

/// A wire type that is looked at once more after its structure fits.
pub trait Checked {
    /// What is wrong with it, if anything.
    fn check(&self) -> Result<(), Fault>;
}

/// What is wrong with a value whose structure fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This must not be empty.
    Empty(&'static str),
    /// This is too long.
    Long(&'static str),
    /// This holds a character that is not seen and steers whatever shows it.
    Control(&'static str),
    /// This is no semantic version.
    Version(String),
    /// This is no SHA-256.
    Digest(&'static str),
    /// This is no path that a file in a package may have.
    Path(String),
    /// The content of the file at this path is not in the encoding that is named.
    Content(String),
    /// This cannot be a name.
    Name(String),
    /// This stands there twice.
    Twice(String),
    /// This cannot be the namespace of a tool.
    Namespace(String),
    /// Everybody's names are no namespace.
    Everybody,
    /// This is no address.
    Address(String),
    /// The claims leave it open whom of an issuer's users is meant.
    Anybody,
    /// This number cannot be, or does not fit the rest.
    Number(&'static str),
}

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They are no text.
    Utf8,
    /// They are no JSON, or say something twice.
    Json(String),
    /// They are JSON of another structure.
    Structure(String),
    /// A value is not what it should be.
    Value(Fault),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty(field) => write!(out, "`{field}` is empty"),
            Fault::Long(field) => write!(out, "`{field}` is too long"),
            Fault::Control(field) => write!(out, "`{field}` holds a control character"),
            Fault::Version(version) => write!(out, "`{version}` is no semantic version"),
            Fault::Digest(field) => write!(out, "`{field}` is no SHA-256"),
            Fault::Path(path) => write!(out, "`{path}` is no path a file may have"),
            Fault::Content(path) => write!(out, "the content of `{path}` is not in its encoding"),
            Fault::Name(name) => write!(out, "`{name}` cannot be a name"),
            Fault::Twice(name) => write!(out, "`{name}` stands there twice"),
            Fault::Namespace(name) => write!(
                out,
                "`{name}` cannot be the namespace of a tool: that has no blanks, no `*`, no `tool:` before it, and \
                 nothing empty between slashes"
            ),
            Fault::Everybody => {
                out.write_str("`*` is for everybody's names, and one namespace is meant")
            }
            Fault::Anybody => write!(
                out,
                "the claims name nobody in particular, so any user of the issuer could publish: write out whose builds \
                 they are, up to the slash, as in `repository=acme/*` (`acme*` is also `acme-other`); one of {} is needed",
                crate::access::NAMING.join(", ")
            ),
            Fault::Address(text) => write!(out, "`{text}` is no address"),
            Fault::Number(field) => {
                write!(out, "`{field}` cannot be that, or does not fit the rest")
            }
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Utf8 => out.write_str("it is not UTF-8"),
            Unreadable::Json(why) | Unreadable::Structure(why) => out.write_str(why),
            Unreadable::Value(fault) => fault.fmt(out),
        }
    }
}

impl std::error::Error for Unreadable {}

/// The longest reason that somebody gives, in characters.
const LONGEST_REASON: usize = 1_000;

/// Whether a text can be a reason: others are shown it, and not every database keeps a NUL.
pub(crate) fn check_reason(reason: &str) -> Result<(), Fault> {
    if reason.chars().count() > LONGEST_REASON {
        return Err(Fault::Long("reason"));
    }
    if reason.chars().any(|c| c.is_control() && !"\n\t".contains(c)) {
        return Err(Fault::Control("reason"));
    }
    Ok(())
}

/// Reads a value of the wire. Members that are not known are passed over, one that stands twice is refused.
pub fn read<T: DeserializeOwned + Checked>(bytes: &[u8]) -> Result<T, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::Utf8)?;
    let parsed = parse(text);
    if let Some(fault) = parsed.faults.first() {
        return Err(Unreadable::Json(fault.message.clone()));
    }
    let root = parsed.root.ok_or_else(|| Unreadable::Json("there is nothing".to_owned()))?;
    // A list would do for an object whose members are in order, or may all be left out.
    if !root.is_object() {
        return Err(Unreadable::Structure(format!("it is {}, no object", root.type_name())));
    }
    let value: T = serde_json::from_value(root.to_value())
        .map_err(|error| Unreadable::Structure(in_words(&error.to_string())))?;
    value.check().map_err(Unreadable::Value)?;
    Ok(value)
}

/// What a value lacks or has too much, in words for whoever sent it: the library speaks of fields and variants.
fn in_words(said: &str) -> String {
    let names = |text: &str| text.replace("one of ", "").replace(" or ", ", ");
    let expected =
        |rest: &'_ str| rest.split_once(", expected ").map(|(a, b)| (a.to_owned(), names(b)));
    if let Some(field) = said.strip_prefix("missing field ") {
        return format!("{field} is missing");
    }
    if let Some((name, known)) = said.strip_prefix("unknown variant ").and_then(expected) {
        return format!("{name} is none of {known}");
    }
    if let Some((name, known)) = said.strip_prefix("unknown field ").and_then(expected) {
        return format!("{name} is not known, there are {known}");
    }
    match said.strip_prefix("invalid type: ").and_then(expected) {
        Some((found, _)) => format!("it holds the {found} where something else belongs"),
        None => "its structure is another".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Decision;
    use crate::describe::Describe;
    use crate::find::Page;
    use crate::versions::Yank;

    const TOOL: &str = r#"{"id":"tool:a.b","name":"a.b","version":"1.0.0","summary":"Does it",
        "entry":{"runtime":"node","main":"index.js"},"more":1}"#;

    #[test]
    fn what_others_add_is_passed_over() {
        let tool: Describe = read(TOOL.as_bytes()).unwrap();
        assert_eq!((tool.id.as_str(), tool.entry.is_node()), ("tool:a.b", true));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_refused() {
        for (from, to) in [
            ("\"1.0.0\"", "\"1.0\""),
            ("\"1.0.0\"", "1"),
            ("\"Does it\"", "\" \""),
            ("\"more\":1", "\"id\":\"tool:c.d\""),
            ("\"more\":1", "\"sha256\":\"abc\""),
            ("\"more\":1", "\"tags\":\"a\""),
            ("\"more\":1}", "\"more\":1}}"),
            ("\"name\":\"a.b\",", ""),
        ] {
            let changed = TOOL.replace(from, to);
            assert_ne!(changed, TOOL);
            assert!(read::<Describe>(changed.as_bytes()).is_err(), "{changed}");
        }
        assert_eq!(read::<Describe>(b"\xff"), Err(Unreadable::Utf8));
        assert!(read::<Yank>(b"[]").is_err());
        assert!(read::<Page>(br#"{"results":[],"total":-1}"#).is_err());
        assert!(read::<Yank>(br#"{"reasons":"x"}"#).is_err());
        let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(1_001));
        assert_eq!(read::<Yank>(long.as_bytes()), Err(Unreadable::Value(Fault::Long("reason"))));
        for control in ["\\u0000", "\\u001b[2J", "\\r", "\\u009b"] {
            let text = format!(r#"{{"reason":"a{control}b"}}"#);
            let fault = Err(Unreadable::Value(Fault::Control("reason")));
            assert_eq!(read::<Yank>(text.as_bytes()), fault, "{text}");
        }
        assert!(read::<Yank>(br#"{"reason":"one line\n\tand another"}"#).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_structure_is_said_in_words_of_ours() {
        let said = |text: &str| read::<Decision>(text.as_bytes()).unwrap_err().to_string();
        for (text, words) in [
            (r#"{"channel":"x","reason":""}"#, "`x` is none of `stable`, `beta`"),
            (r#"{"channels":"x"}"#, "`channels` is not known, there are `channel`, `reason`"),
            (r#"{"reason":7}"#, "it holds the integer `7` where something else belongs"),
        ] {
            assert_eq!(said(text), words, "{text}");
        }
        let missing = TOOL.replace("\"name\":\"a.b\",", "");
        let said = read::<Describe>(missing.as_bytes()).unwrap_err().to_string();
        assert_eq!(said, "`name` is missing");
    }
}
