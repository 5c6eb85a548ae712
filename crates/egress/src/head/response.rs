//! The head of a server's response.

use super::fields::write_field;
use super::{Fields, Framing, HeadError, Version, lines, version};
use crate::limits::Limits;

/// A response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, from 100 to 999.
    pub status: u16,
    /// What the server says to it.
    pub reason: Vec<u8>,
    /// The header lines.
    pub fields: Fields,
    /// How long its body is, if it is one that has a body.
    framing: Framing,
}

impl Response {
    /// Reads a head, up to and with its empty line.
    pub fn parse(head: &[u8], limits: &Limits) -> Result<Self, HeadError> {
        if head.len() > limits.head_bytes {
            return Err(HeadError::TooLarge);
        }
        let lines = lines(head)?;
        let (first, rest) = lines.split_first().ok_or(HeadError::FirstLine)?;
        let mut parts = first.splitn(3, |byte| *byte == b' ');
        let version = version(parts.next().unwrap_or_default())?;
        let status = parts.next().unwrap_or_default();
        let [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = status else {
            return Err(HeadError::FirstLine);
        };
        let status = status.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        let reason = parts.next().unwrap_or_default().to_vec();
        if reason.iter().any(|byte| matches!(byte, 0..=8 | 10..=31 | 0x7f)) {
            return Err(HeadError::FirstLine);
        }
        let fields = Fields::parse(rest, limits.headers)?;
        let framing = fields.framing(version)?.unwrap_or(Framing::UntilClose);
        Ok(Self { status, reason, fields, framing })
    }

    /// Whether another response follows.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// How long the body is, for an answer to this method.
    pub fn framing(&self, method: &str) -> Framing {
        match self.status {
            100..200 | 204 | 304 => Framing::Empty,
            _ if method == "HEAD" => Framing::Empty,
            _ => self.framing,
        }
    }

    /// The head as the client gets it, with the framing that its body will have.
    pub(crate) fn for_client(&self, framing: Framing) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} ", self.status).into_bytes();
        out.extend_from_slice(&self.reason);
        out.extend_from_slice(b"\r\n");
        for field in self.fields.passed_on() {
            write_field(&mut out, &field.name, &field.value);
        }
        match framing {
            Framing::Chunked => write_field(&mut out, "Transfer-Encoding", b"chunked"),
            // An answer to HEAD tells the length of a body that does not follow.
            Framing::Length(_) | Framing::Empty => {
                for length in self.fields.all("content-length") {
                    write_field(&mut out, "Content-Length", length);
                }
            }
            Framing::UntilClose => {}
        }
        if !self.is_interim() {
            write_field(&mut out, "Connection", b"close");
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// The framing of the body on its way to a client that speaks this version.
    pub(crate) fn framing_for(framing: Framing, client: Version) -> Framing {
        match (framing, client) {
            (Framing::Chunked, Version::Http10) => Framing::UntilClose,
            (framing, _) => framing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Response, HeadError> {
        Response::parse(head.as_bytes(), &Limits::DEFAULT)
    }

    #[test]
    fn a_response_is_passed_on_without_what_is_of_the_connection() {
        let response = read(
            "HTTP/1.1 200 Fine thing\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nContent-Length: 3\r\nX-B: 2\r\n\r\n",
        )
        .unwrap();
        assert_eq!(response.framing("GET"), Framing::Length(3));
        assert_eq!(response.framing("HEAD"), Framing::Empty);
        assert_eq!(
            String::from_utf8(response.for_client(Framing::Length(3))).unwrap(),
            "HTTP/1.1 200 Fine thing\r\nX-B: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_response_without_a_length_lasts_until_the_close() {
        assert_eq!(read("HTTP/1.0 200\r\n\r\n").unwrap().framing("GET"), Framing::UntilClose);
        assert_eq!(read("HTTP/1.1 204 \r\n\r\n").unwrap().framing("GET"), Framing::Empty);
    }

    #[test]
    fn a_response_with_two_lengths_is_refused() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(head), Err(HeadError::Framing));
        assert_eq!(read("HTTP/1.1 20 OK\r\n\r\n"), Err(HeadError::FirstLine));
        assert_eq!(read("ICY 200 OK\r\n\r\n"), Err(HeadError::Version));
    }
}
