//! Who is meant: a name or an address, and a port.
//!
//! A [`Target`] is parsed once, from the authority of a request, and every later
//! step works on the value. There is one spelling for each host. Others are refused and
//! never mended, because two readers that mend differently are how a filter is
//! passed; the only thing that is levelled is the case of letters.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

/// Bytes of a name.
const NAME_BYTES: usize = 253;
/// Bytes of a label.
const LABEL_BYTES: usize = 63;

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name to be looked up.
    Name(Name),
    /// An address, written as such.
    Ip(IpAddr),
}

impl Host {
    /// Whether it is this very machine: an address of its loopback, or the one name that always leads there.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Ip(address) => address.to_canonical().is_loopback(),
            Self::Name(name) => name.as_str() == "localhost",
        }
    }
}

/// A name of the DNS: labels of lower-case letters, digits, hyphens and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A port, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(NonZeroU16);

/// A host and a port: what a connection is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: Port,
}

/// Why a text is no host, or no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// There is no host.
    Empty,
    /// The host is longer than a name can be.
    TooLong,
    /// A NUL or another control byte.
    Control,
    /// A space.
    Space,
    /// A letter outside ASCII.
    NotAscii,
    /// Something before an `@`.
    Userinfo,
    /// A `\`, which some readers take for a `/`.
    Backslash,
    /// A `%`: an encoded byte, or the zone of an IPv6 address.
    Percent,
    /// A dot at the end.
    TrailingDot,
    /// Two dots in a row, or one at the start.
    EmptyLabel,
    /// A label longer than 63 bytes.
    LongLabel,
    /// A label that begins or ends with a hyphen.
    Hyphen,
    /// Any other byte that no name has.
    Character,
    /// A number in place of a name, but no IPv4 address of four plain decimal numbers.
    Numeric,
    /// What is in brackets is no IPv6 address.
    Ipv6,
    /// A bracket without its other half, or something between it and the port.
    Bracket,
    /// There is no port.
    PortMissing,
    /// The port is no number from 1 to 65535 in plain digits.
    Port,
}

impl Target {
    /// Reads `host:port`, as a `CONNECT` request has it.
    pub fn parse(authority: &[u8]) -> Result<Self, TargetError> {
        let (host, port) = split(authority)?;
        Ok(Self {
            host: Host::parse(host)?,
            port: Port::parse(port.ok_or(TargetError::PortMissing)?)?,
        })
    }

    /// Reads `host` or `host:port`, as a URL or a `Host` header has it.
    pub fn parse_or(authority: &[u8], default: Port) -> Result<Self, TargetError> {
        let (host, port) = split(authority)?;
        let port = port.map_or(Ok(default), Port::parse)?;
        Ok(Self { host: Host::parse(host)?, port })
    }

    /// The target as a `Host` header, without the port if it is `default`.
    pub fn authority(&self, default: Port) -> String {
        if self.port == default { self.host.to_string() } else { self.to_string() }
    }
}

impl Host {
    /// Reads a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &[u8]) -> Result<Self, TargetError> {
        check_bytes(text)?;
        let text = std::str::from_utf8(text).map_err(|_| TargetError::NotAscii)?;
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(TargetError::Bracket)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| TargetError::Ipv6)?;
            return Ok(Self::Ip(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Ip(address.into()));
        }
        Name::parse(text).map(Self::Name)
    }
}

impl Name {
    /// The machine of the owner, as a walled tool calls it: in there `localhost` is the tool's own.
    pub const HOST_MACHINE: &str = "host.haft.internal";

    /// Reads a name; upper case is levelled.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        check_bytes(text.as_bytes())?;
        if text.len() > NAME_BYTES {
            return Err(TargetError::TooLong);
        }
        if text.ends_with('.') {
            return Err(TargetError::TrailingDot);
        }
        for label in text.split('.') {
            check_label(label)?;
        }
        if text.rsplit('.').next().is_some_and(is_number) {
            return Err(TargetError::Numeric);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// The name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is the other one with labels before it.
    pub fn is_below(&self, other: &Name) -> bool {
        self.0.strip_suffix(other.as_str()).is_some_and(|before| before.ends_with('.'))
    }

    /// Whether the name always means the owner's machine itself, and is never looked up.
    pub fn is_host_machine(&self) -> bool {
        matches!(self.as_str(), "localhost" | Self::HOST_MACHINE)
    }
}

impl Port {
    /// The port of `http://`.
    pub const HTTP: Self = Self(NonZeroU16::new(80).expect("80 is not zero"));
    /// The port of `https://`.
    pub const HTTPS: Self = Self(NonZeroU16::new(443).expect("443 is not zero"));

    /// A port, unless the number is zero.
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Self)
    }

    /// Reads digits without a sign or a leading zero.
    pub fn parse(text: &[u8]) -> Result<Self, TargetError> {
        let is_plain =
            text.first().is_some_and(|first| *first != b'0') && text.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(text).ok().filter(|_| is_plain);
        let number = text.and_then(|text| text.parse().ok()).ok_or(TargetError::Port)?;
        Self::new(number).ok_or(TargetError::Port)
    }

    /// The number.
    pub fn number(self) -> u16 {
        self.0.get()
    }
}

/// Splits the port off. Colons inside brackets belong to the host.
fn split(authority: &[u8]) -> Result<(&[u8], Option<&[u8]>), TargetError> {
    check_bytes(authority)?;
    let end_of_host = match authority.first() {
        Some(b'[') => {
            let close = authority.iter().position(|byte| *byte == b']');
            close.ok_or(TargetError::Bracket)? + 1
        }
        _ => authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end_of_host);
    match rest {
        [] => Ok((host, None)),
        [b':', port @ ..] => Ok((host, Some(port))),
        _ => Err(TargetError::Bracket),
    }
}

/// Names what is wrong with a byte that no authority may have.
fn check_bytes(text: &[u8]) -> Result<(), TargetError> {
    if text.is_empty() {
        return Err(TargetError::Empty);
    }
    text.iter().try_for_each(|byte| match byte {
        b' ' => Err(TargetError::Space),
        0..=0x1f | 0x7f => Err(TargetError::Control),
        0x80.. => Err(TargetError::NotAscii),
        b'@' => Err(TargetError::Userinfo),
        b'\\' => Err(TargetError::Backslash),
        b'%' => Err(TargetError::Percent),
        _ => Ok(()),
    })
}

fn check_label(label: &str) -> Result<(), TargetError> {
    if label.is_empty() {
        return Err(TargetError::EmptyLabel);
    }
    if label.len() > LABEL_BYTES {
        return Err(TargetError::LongLabel);
    }
    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Err(TargetError::Character);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(TargetError::Hyphen);
    }
    Ok(())
}

/// Whether a browser would read a name with this last label as an address.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => name.fmt(out),
            Host::Ip(IpAddr::V4(address)) => address.fmt(out),
            Host::Ip(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            TargetError::Empty => "there is no host",
            TargetError::TooLong => "the name is longer than 253 bytes",
            TargetError::Control => "a host has no control bytes",
            TargetError::Space => "a host has no spaces",
            TargetError::NotAscii => "a host is ASCII; write other letters as `xn--…`",
            TargetError::Userinfo => "a host has nothing before an `@`",
            TargetError::Backslash => "a host has no backslash",
            TargetError::Percent => "a host has no `%`: no encoded bytes, no zone",
            TargetError::TrailingDot => "a name does not end with a dot",
            TargetError::EmptyLabel => "a label of the name is empty",
            TargetError::LongLabel => "a label of the name is longer than 63 bytes",
            TargetError::Hyphen => "a label of the name begins or ends with a hyphen",
            TargetError::Character => "the name has a character that no name has",
            TargetError::Numeric => {
                "an IPv4 address is four decimal numbers, without leading zeros"
            }
            TargetError::Ipv6 => "what is in brackets is no IPv6 address",
            TargetError::Bracket => "the brackets do not fit",
            TargetError::PortMissing => "there is no port",
            TargetError::Port => "the port is no plain number from 1 to 65535",
        })
    }
}

impl std::error::Error for TargetError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_written_as_it_is_read() {
        for text in [
            "a.test:443",
            "1.2.3.4:80",
            "[::1]:8080",
            "_dmarc.a-b.test:1",
            "xn--bcher-kva.test:443",
        ] {
            assert_eq!(Target::parse(text.as_bytes()).unwrap().to_string(), text);
        }
        assert_eq!(Target::parse(b"API.Test:443").unwrap().to_string(), "api.test:443");
    }

    #[test]
    fn each_odd_spelling_is_refused_by_name() {
        use TargetError as E;
        let long_name = format!("{}a:80", "abcdefgh.".repeat(29));
        let long_label = format!("{}.test:80", "a".repeat(64));
        let odd: &[(&[u8], E)] = &[
            (b"", E::Empty),
            (b":80", E::Empty),
            (b"2130706433:80", E::Numeric),
            (b"0177.0.0.1:80", E::Numeric),
            (b"0x7f.1:80", E::Numeric),
            (b"0x7f000001:80", E::Numeric),
            (b"0X7F.0.0.0x1:80", E::Numeric),
            (b"a.0x:80", E::Numeric),
            (b"127.1:80", E::Numeric),
            (b"127.0.0.1.1:80", E::Numeric),
            (b"256.0.0.1:80", E::Numeric),
            (b"127.0.0.01:80", E::Numeric),
            (b"a.test.1:80", E::Numeric),
            (b"127.0.0.1.:80", E::TrailingDot),
            (b"a.test.:80", E::TrailingDot),
            (b".:80", E::TrailingDot),
            (b"a..test:80", E::EmptyLabel),
            (b".a.test:80", E::EmptyLabel),
            (b"a.test\0.evil.test:80", E::Control),
            (b"a.test\t:80", E::Control),
            (b"a.test\r\n:80", E::Control),
            (b"a.test%00:80", E::Percent),
            (b"%31%32%37.0.0.1:80", E::Percent),
            (b"[fe80::1%eth0]:80", E::Percent),
            (b"a.test@evil.test:80", E::Userinfo),
            (b"a.test\\.evil.test:80", E::Backslash),
            (b"a .test:80", E::Space),
            ("b\u{fc}cher.test:80".as_bytes(), E::NotAscii),
            ("127\u{3002}0.0.1:80".as_bytes(), E::NotAscii),
            ("\u{ff11}27.0.0.1:80".as_bytes(), E::NotAscii),
            (b"a,b.test:80", E::Character),
            (b"a.test/:80", E::Character),
            (b"*.test:80", E::Character),
            (b"-a.test:80", E::Hyphen),
            (b"a-.test:80", E::Hyphen),
            (long_label.as_bytes(), E::LongLabel),
            (long_name.as_bytes(), E::TooLong),
            (b"::1:80", E::Empty),
            (b"a.test:80:80", E::Port),
            (b"[::1:80", E::Bracket),
            (b"[::1]80", E::Bracket),
            (b"[::1]]:80", E::Bracket),
            (b"[127.0.0.1]:80", E::Ipv6),
            (b"[a.test]:80", E::Ipv6),
            (b"[]:80", E::Ipv6),
            (b"[::1]", E::PortMissing),
            (b"a.test", E::PortMissing),
            (b"a.test:", E::Port),
            (b"a.test:0", E::Port),
            (b"a.test:65536", E::Port),
            (b"a.test:+80", E::Port),
            (b"a.test:-1", E::Port),
            (b"a.test:080", E::Port),
            (b"a.test:0x50", E::Port),
        ];
        for (text, error) in odd {
            assert_eq!(Target::parse(text).err(), Some(*error), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_port_may_be_missing_where_there_is_a_default() {
        let target = Target::parse_or(b"a.test", Port::HTTP).unwrap();
        assert_eq!(
            (target.to_string(), target.authority(Port::HTTP)),
            ("a.test:80".into(), "a.test".into())
        );
        assert_eq!(Target::parse_or(b"a.test:", Port::HTTP), Err(TargetError::Port));
    }

    #[test]
    fn below_means_by_whole_labels() {
        let name = |text| Name::parse(text).unwrap();
        assert!(name("a.b.test.dev").is_below(&name("test.dev")));
        assert!(!name("test.dev").is_below(&name("test.dev")));
        assert!(!name("eviltest.dev").is_below(&name("test.dev")));
    }
}
