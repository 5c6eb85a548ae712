//! The head of a request to a proxy.

use super::fields::{is_token, write_field};
use super::{Fields, Framing, HeadError, Version, lines, version};
use crate::escape::escaped;
use crate::host::{Port, Target};
use crate::limits::Limits;

/// A request to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Who is meant.
    pub target: Target,
    /// What is wanted of them.
    pub wanted: Wanted,
    /// Which HTTP the client speaks.
    pub version: Version,
    /// The header lines.
    pub fields: Fields,
}

/// What a client wants of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A connection it can send any bytes through.
    Tunnel,
    /// That this one request is passed on.
    Fetch {
        /// Path and query, never empty.
        path: String,
        /// How long its body is.
        framing: Framing,
    },
}

impl Request {
    /// Reads a head, up to and with its empty line.
    pub fn parse(head: &[u8], limits: &Limits) -> Result<Self, HeadError> {
        if head.len() > limits.head_bytes {
            return Err(HeadError::TooLarge);
        }
        let lines = lines(head)?;
        let (first, rest) = lines.split_first().ok_or(HeadError::FirstLine)?;
        let parts: Vec<_> = first.split(|byte| *byte == b' ').collect();
        let [method, url, own_version] = parts.as_slice() else { return Err(oddness(&parts)) };
        if method.is_empty() || !method.iter().copied().all(is_token) || url.is_empty() {
            return Err(HeadError::FirstLine);
        }
        let version = version(own_version)?;
        let method = String::from_utf8_lossy(method).into_owned();
        if method == "CONNECT" {
            let target = Target::parse(url)
                .map_err(|error| HeadError::Target { asked: escaped(url), error })?;
            let fields = Fields::parse(rest, limits.headers)?;
            return Ok(Self { method, target, wanted: Wanted::Tunnel, version, fields });
        }
        let (target, path) = split_url(url)?;
        let fields = Fields::parse(rest, limits.headers)?;
        check_host(&fields, &target, version)?;
        let framing = fields.framing(version)?.unwrap_or(Framing::Empty);
        Ok(Self { method, target, wanted: Wanted::Fetch { path, framing }, version, fields })
    }

    /// The head as it is sent on: for the server itself, with a `Host` of our own.
    pub(crate) fn for_server(&self, path: &str, framing: Framing) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        write_field(&mut out, "Host", self.target.authority(Port::HTTP).as_bytes());
        for field in self.fields.passed_on() {
            write_field(&mut out, &field.name, &field.value);
        }
        match framing {
            Framing::Length(length) => {
                write_field(&mut out, "Content-Length", length.to_string().as_bytes());
            }
            Framing::Chunked => write_field(&mut out, "Transfer-Encoding", b"chunked"),
            // A server may wait for the length of a body that a client said is empty.
            Framing::Empty if self.fields.all("content-length").next().is_some() => {
                write_field(&mut out, "Content-Length", b"0");
            }
            Framing::Empty | Framing::UntilClose => {}
        }
        out.extend_from_slice(b"Connection: close\r\n\r\n");
        out
    }
}

/// What is wrong with a first line of more or fewer than three parts. Spaces within the
/// target are told as such, because that is a way to say one host and mean another.
fn oddness(parts: &[&[u8]]) -> HeadError {
    match parts {
        [b"CONNECT", target @ .., _] if target.len() > 1 => {
            let target = target.join(&b' ');
            match Target::parse(&target) {
                Err(error) => HeadError::Target { asked: escaped(&target), error },
                Ok(_) => HeadError::FirstLine,
            }
        }
        _ => HeadError::FirstLine,
    }
}

/// The target and the path of an absolute URL.
fn split_url(url: &[u8]) -> Result<(Target, String), HeadError> {
    if url.starts_with(b"/") || url == b"*" {
        return Err(HeadError::NotForProxy);
    }
    let (scheme, rest) = url.split_at_checked(7).ok_or(HeadError::Scheme)?;
    if !scheme.eq_ignore_ascii_case(b"http://") {
        return Err(HeadError::Scheme);
    }
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
    let target = Target::parse_or(authority, Port::HTTP)
        .map_err(|error| HeadError::Target { asked: escaped(authority), error })?;
    if path.iter().any(|byte| matches!(byte, 0..=b' ' | 0x7f | b'#')) {
        return Err(HeadError::FirstLine);
    }
    let path = std::str::from_utf8(path).map_err(|_| HeadError::FirstLine)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((target, path))
}

/// The `Host` header says what the URL says, or there is none where HTTP/1.0 needs none.
fn check_host(fields: &Fields, target: &Target, version: Version) -> Result<(), HeadError> {
    let hosts: Vec<_> = fields.all("host").collect();
    match hosts.as_slice() {
        [] if version == Version::Http10 => Ok(()),
        [host] => match Target::parse_or(host, Port::HTTP) {
            Ok(host) if host == *target => Ok(()),
            _ => Err(HeadError::HostDiffers),
        },
        _ => Err(HeadError::HostCount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::TargetError;

    fn read(head: &str) -> Result<Request, HeadError> {
        Request::parse(head.as_bytes(), &Limits::DEFAULT)
    }

    #[test]
    fn a_plain_request_is_sent_on_for_the_server_itself() {
        let request = read(
            "POST HTTP://A.test:8080?q=1 HTTP/1.1\r\nhost: a.TEST:8080\r\nConnection: x-Own, close\r\n\
             X-Own: 1\r\nProxy-Authorization: secret\r\nKeep-Alive: 1\r\nX-Kept:  two words \r\n\
             Upgrade: h2c\r\nTE: trailers\r\nContent-Length: 5\r\n\r\n",
        )
        .unwrap();
        let Wanted::Fetch { path, framing } = &request.wanted else { panic!("{request:?}") };
        assert_eq!(
            String::from_utf8(request.for_server(path, *framing)).unwrap(),
            "POST /?q=1 HTTP/1.1\r\nHost: a.test:8080\r\nX-Kept: two words\r\nContent-Length: 5\r\n\
             Connection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_tunnel_needs_a_target_and_nothing_else() {
        let request = read("CONNECT a.test:443 HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(
            (request.wanted, request.target.to_string()),
            (Wanted::Tunnel, "a.test:443".into())
        );
    }

    #[test]
    fn whatever_two_readers_may_read_differently_is_refused() {
        use HeadError as E;
        let with =
            |lines: &str| format!("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
        let cases = [
            ("GET http://a.test/ HTTP/1.1\nHost: a.test\n\r\n\r\n".into(), E::LineEnd),
            (with("A: b\nC: d\r\n"), E::LineEnd),
            (with("A: b\rC: d\r\n"), E::LineEnd),
            (with("A: b\r\n c\r\n"), E::Folded),
            (with("A : b\r\n"), E::Field),
            (with(": b\r\n"), E::Field),
            (with("A\r\n"), E::Field),
            (with("A: b\0c\r\n"), E::Field),
            (with("Host: a.test\r\n"), E::HostCount),
            (with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), E::Framing),
            (with("Content-Length: 1\r\nContent-Length: 1\r\n"), E::Framing),
            (with("Content-Length: 1, 1\r\n"), E::Framing),
            (with("Content-Length: +1\r\n"), E::Framing),
            (with("Content-Length: 0x1\r\n"), E::Framing),
            (with("Content-Length: \r\n"), E::Framing),
            (with("Content-Length: 99999999999999999999\r\n"), E::Framing),
            (with("Transfer-Encoding: gzip, chunked\r\n"), E::Framing),
            (with("Transfer-Encoding: identity\r\n"), E::Framing),
            (with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), E::Framing),
            (with("Transfer-Encoding: \u{b}chunked\r\n"), E::Field),
            (with(&"A: b\r\n".repeat(100)), E::TooLarge),
            (with(&format!("A: {}\r\n", "b".repeat(33_000))), E::TooLarge),
            ("GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n".into(), E::HostDiffers),
            ("GET http://a.test/ HTTP/1.1\r\nHost: a.test:81\r\n\r\n".into(), E::HostDiffers),
            ("GET http://a.test/ HTTP/1.1\r\n\r\n".into(), E::HostCount),
            (
                "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
                E::Framing,
            ),
            ("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::NotForProxy),
            ("GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::Scheme),
            ("GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::Scheme),
            ("GET http://a.test/#x HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::FirstLine),
            ("GET  http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::FirstLine),
            ("GET http://a.test/\tx HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::FirstLine),
            ("GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n\r\n".into(), E::Version),
            ("GET http://a.test/\r\nHost: a.test\r\n\r\n".into(), E::FirstLine),
            ("\r\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), E::FirstLine),
            ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n".into(), E::Unfinished),
        ];
        for (head, error) in cases {
            assert_eq!(read(&head).err(), Some(error), "{head:?}");
        }
    }

    #[test]
    fn an_odd_target_is_told_as_it_was_asked() {
        let asked = |head| match read(head) {
            Err(HeadError::Target { asked, error }) => (asked, error),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            asked("GET http://a.test@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
            ("a.test@evil.test".into(), TargetError::Userinfo)
        );
        assert_eq!(
            asked("CONNECT a.test\0:443 HTTP/1.1\r\n\r\n"),
            ("a.test\\x00:443".into(), TargetError::Control)
        );
        assert_eq!(
            asked("CONNECT a.test b:443 HTTP/1.1\r\n\r\n"),
            ("a.test b:443".into(), TargetError::Space)
        );
    }
}
