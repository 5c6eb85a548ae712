//! Header lines, and how long the body after them is.

use super::{HeadError, Version};

/// One header line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, as it was written.
    pub name: String,
    /// The value, without the white space around it.
    pub value: Vec<u8>,
}

/// The header lines of a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// It lasts as long as the connection does; only of a response.
    UntilClose,
}

/// Header lines that are about one connection and end here.
const HOP_BY_HOP: &[&str] =
    &["connection", "keep-alive", "te", "trailer", "upgrade", "http2-settings"];

/// Header lines that are written anew.
const OWN: &[&str] = &["host", "content-length", "transfer-encoding"];

impl Fields {
    /// Reads header lines.
    pub(super) fn parse(lines: &[&[u8]], most: usize) -> Result<Self, HeadError> {
        if lines.len() > most {
            return Err(HeadError::TooLarge);
        }
        lines.iter().map(|line| field(line)).collect::<Result<_, _>>().map(Self)
    }

    /// The lines.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.0.iter()
    }

    /// The values of all lines of one name.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.as_slice())
    }

    /// The framing that the lines tell, if they tell one and only one.
    pub(super) fn framing(&self, version: Version) -> Result<Option<Framing>, HeadError> {
        let lengths: Vec<_> = self.all("content-length").collect();
        let codings: Vec<_> = self.all("transfer-encoding").collect();
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => Ok(None),
            ([length], []) => match digits(length) {
                Some(0) => Ok(Some(Framing::Empty)),
                Some(length) => Ok(Some(Framing::Length(length))),
                None => Err(HeadError::Framing),
            },
            ([], [coding])
                if coding.eq_ignore_ascii_case(b"chunked") && version == Version::Http11 =>
            {
                Ok(Some(Framing::Chunked))
            }
            _ => Err(HeadError::Framing),
        }
    }

    /// The lines that are passed on: none of this connection's own, none that we write anew.
    pub(crate) fn passed_on(&self) -> impl Iterator<Item = &Field> {
        let named: Vec<String> = self
            .all("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            .collect();
        self.0.iter().filter(move |field| {
            let name = field.name.to_ascii_lowercase();
            !HOP_BY_HOP.contains(&name.as_str())
                && !OWN.contains(&name.as_str())
                && !name.starts_with("proxy-")
                && !named.contains(&name)
        })
    }
}

/// Writes one header line.
pub(crate) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether a byte may be part of a method or a header's name.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn field(line: &[u8]) -> Result<Field, HeadError> {
    if line.first().is_some_and(|first| matches!(first, b' ' | b'\t')) {
        return Err(HeadError::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadError::Field)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if name.is_empty() || !name.iter().copied().all(is_token) || !value.iter().all(is_text) {
        return Err(HeadError::Field);
    }
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(Field { name, value: value.trim_ascii().to_vec() })
}

/// A number in plain digits that leaves room to count.
fn digits(text: &[u8]) -> Option<u64> {
    let is_plain = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}
