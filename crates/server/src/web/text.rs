//! Paths and parameters, decoded strictly.

use super::refused::Refused;

/// Decodes `%XX`; what is no such thing, no UTF-8, or holds a NUL is refused.
pub(super) fn decode(text: &str) -> Result<String, Refused> {
    if !text.contains(['%', '\0']) {
        return Ok(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'%' {
            decoded.push(*byte);
            at += 1;
            continue;
        }
        let digit = |place: usize| {
            let byte = bytes.get(at + place).copied();
            byte.and_then(|byte| char::from(byte).to_digit(16))
        };
        let (Some(high), Some(low)) = (digit(1), digit(2)) else {
            return Err(Refused::invalid("the percent-encoding of the address is broken"));
        };
        decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
        at += 3;
    }
    let decoded = String::from_utf8(decoded)
        .map_err(|_| Refused::invalid("the address is not UTF-8 when it is decoded"))?;
    if decoded.contains('\0') {
        return Err(Refused::invalid("the address holds a NUL"));
    }
    Ok(decoded)
}

/// The parameters of an address, in order.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refused> {
        let mut parameters = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |text: &str| decode(&text.replace('+', " "));
            parameters.push((text(name)?, text(value)?));
        }
        Ok(Self(parameters))
    }

    /// The first value of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of this name, as they are.
    pub(super) fn each(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of this name; several may be in one, with commas between them.
    pub(super) fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        let parts = named.flat_map(|(_, value)| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty())
    }

    /// A number within bounds; the default when there is none, or something else.
    pub(super) fn number(&self, name: &str, default: usize, least: usize, most: usize) -> usize {
        let text = self.get(name).unwrap_or_default().trim();
        let (digits, is_negative) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return default;
        }
        if is_negative {
            return least;
        }
        // What has too many digits to be read is too much.
        digits.parse().unwrap_or(usize::MAX).clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_refused_and_not_guessed() {
        assert_eq!(decode("tool%3Aa.b+c").unwrap(), "tool:a.b+c");
        assert_eq!(decode("caf%C3%A9").unwrap(), "caf\u{e9}");
        for broken in ["%", "%2", "%zz", "a%", "%+1", "%ff", "%c3", "%00"] {
            assert!(decode(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn numbers_are_brought_within_bounds_and_junk_is_the_default() {
        for (query, limit) in [
            ("", 20),
            ("limit=", 20),
            ("limit=abc", 20),
            ("limit=1.5", 20),
            ("limit=0", 1),
            ("limit=-7", 1),
            ("limit=50", 50),
            ("limit=101", 100),
            ("limit=99999999999999999999999999", 100),
        ] {
            let parameters = Parameters::read(Some(query)).unwrap();
            assert_eq!(parameters.number("limit", 20, 1, 100), limit, "{query}");
        }
    }

    #[test]
    fn a_plus_is_a_space_and_lists_have_commas() {
        let parameters = Parameters::read(Some("q=read+pdf&tags=a,,b%2Cc&tags=d&x")).unwrap();
        assert_eq!(parameters.get("q"), Some("read pdf"));
        assert_eq!(parameters.list("tags").collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(parameters.get("x"), Some(""));
    }
}
