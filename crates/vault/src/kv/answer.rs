//! One field of an answer. The others are stepped over, so no copies of them are made.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use zeroize::Zeroizing;

use super::{KvError, Version};
use crate::secret::Secret;

/// Reads a field: of `data` in version 1, of `data` in `data` in version 2.
pub(super) fn read<E>(body: &[u8], version: Version, field: &str) -> Result<Secret, KvError<E>> {
    let steps: &[&str] = match version {
        Version::V1 => &["data", field],
        Version::V2 => &["data", "data", field],
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let found = Steps(steps).deserialize(&mut json).map_err(|_| KvError::Malformed)?;
    json.end().map_err(|_| KvError::Malformed)?;
    match found {
        Found::Text(mut text) => Secret::new(std::mem::take(&mut *text)).map_err(KvError::Value),
        // The field itself is there, and what it holds is no text.
        Found::Other { left: 0 } => Err(KvError::NotText(field.to_owned())),
        Found::Nothing { left: 1 } => Err(KvError::NoField(field.to_owned())),
        Found::Other { .. } | Found::Nothing { .. } => Err(KvError::Malformed),
    }
}

enum Found {
    Text(Zeroizing<String>),
    /// Something that is no text and that no step leads into; so many steps were left.
    Other {
        left: usize,
    },
    /// An object without the next step; so many steps were left.
    Nothing {
        left: usize,
    },
}

/// The names that lead to the field.
struct Steps<'s>(&'s [&'s str]);

impl<'de> DeserializeSeed<'de> for Steps<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Found, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Steps<'_> {
    type Value = Found;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an answer of a key-value store")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match self.0.split_first() {
                Some((step, rest)) if *step == key => {
                    if found.is_some() {
                        return Err(A::Error::custom("a name stands twice"));
                    }
                    found = Some(map.next_value_seed(Steps(rest))?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let left = self.0.len();
        Ok(found.unwrap_or(if left == 0 { Found::Other { left } } else { Found::Nothing { left } }))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Other { left: self.0.len() })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Found, E> {
        let left = self.0.len();
        Ok(if left == 0 {
            Found::Text(Zeroizing::new(text.to_owned()))
        } else {
            Found::Other { left }
        })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other { left: self.0.len() })
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Other { left: self.0.len() })
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other { left: self.0.len() })
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Other { left: self.0.len() })
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        Ok(Found::Other { left: self.0.len() })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn of(body: &str, version: Version) -> Result<String, KvError<Infallible>> {
        read(body.as_bytes(), version, "token").map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn a_field_is_found_in_both_versions() {
        let v1 = r#"{"lease_id":"","data":{"user":"me","token":"a\nb"},"auth":null}"#;
        assert_eq!(of(v1, Version::V1).unwrap(), "a\nb");
        let v2 =
            r#"{"data":{"metadata":{"token":1},"data":{"n":[1,{}],"token":"c"}},"wrap_info":null}"#;
        assert_eq!(of(v2, Version::V2).unwrap(), "c");
        assert!(matches!(of(v1, Version::V2), Err(KvError::Malformed)));
    }

    #[test]
    fn what_is_missing_or_strange_is_told_apart() {
        let v1 = |body: &str| of(body, Version::V1).unwrap_err();
        assert!(matches!(v1(r#"{"data":{"other":"x"}}"#), KvError::NoField(_)));
        for value in ["1", "-1", "1.5", "true", "null", "[]", r#"["x"]"#, "{}", r#"{"token":"x"}"#]
        {
            let body = format!(r#"{{"data":{{"token":{value}}}}}"#);
            assert!(matches!(v1(&body), KvError::NotText(_)), "{body}");
        }
        assert!(matches!(v1(r#"{"data":{"token":""}}"#), KvError::Value(_)));
        for body in [
            "",
            "[]",
            "{}",
            "null",
            "\"data\"",
            r#"{"data":null}"#,
            r#"{"data":"token"}"#,
            r#"{"data":{"token":"x"}} {}"#,
            r#"{"data":{"token":"x","token":"y"}}"#,
            r#"{"data":{"token":"x"}"#,
        ] {
            assert!(matches!(v1(body), KvError::Malformed), "{body}");
        }
    }
}
