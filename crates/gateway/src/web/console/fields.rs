//! What a browser sends along: the fields of an address or of a form.

use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

/// The most fields that are read.
const MOST: usize = 200;

/// Fields by name. Their values may be secrets, and are cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, Zeroizing<String>)>);

impl Fields {
    /// Reads `name=value&name=value`; what is no text is left out.
    pub(super) fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|part| !part.is_empty()).take(MOST);
        let field = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decode(name)?.to_string(), decode(value)?))
        };
        Self(parts.filter_map(field).collect())
    }

    /// The first of a name; nothing where it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The same, without white space around it.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// All whose names begin so, without that beginning.
    pub(super) fn beginning(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let prefix = prefix.to_owned();
        self.0.iter().filter_map(move |(name, value)| {
            Some((name.strip_prefix(prefix.as_str())?, value.as_str()))
        })
    }
}

fn decode(text: &str) -> Option<Zeroizing<String>> {
    let spaced = Zeroizing::new(text.replace('+', " "));
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(Zeroizing::new(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let fields = Fields::parse("a=b+c&d=%C3%A9%26&e=&f&bad=%ff&value.X=1&value.Y=2");
        assert_eq!(fields.get("a"), Some("b c"));
        assert_eq!(fields.get("d"), Some("é&"));
        for absent in ["e", "f", "bad", "g"] {
            assert_eq!(fields.get(absent), None, "{absent}");
        }
        assert_eq!(fields.beginning("value.").collect::<Vec<_>>(), [("X", "1"), ("Y", "2")]);
        assert_eq!(Fields::parse("").0.len(), 0);
    }
}
