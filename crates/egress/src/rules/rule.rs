//! One rule, as a person types it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use super::HOST_MACHINE;
use crate::address::{is_public, is_within, range_of, stands_for};
use crate::escape::escaped;
use crate::host::{Host, Name, Port, TargetError};

/// A host, or many, and the ports that may be asked for.
///
/// ```
/// # use egress::Rule;
/// for text in ["api.example.com", "*.example.com", "example.com:8443", "any.example.com:*",
///     "localhost:3000", "127.0.0.1:8080", "[::1]:8080", "10.0.0.0/8", "[fd00::/8]:443"]
/// {
///     assert_eq!(Rule::parse(text).unwrap().to_string(), text);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: Pattern,
    ports: Ports,
    reach: Reach,
}

/// How far a rule leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// To addresses of the public internet.
    #[default]
    Public,
    /// Also to private addresses.
    Private,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// The text has a scheme or a path.
    Url(String),
    /// A wildcard for everything, for a whole top-level domain, or in the middle.
    Wildcard(String),
    /// A network that is no network: host bits, a bad length, or the whole internet.
    Network(String),
    /// An IPv6 address that is an IPv4 address in disguise.
    Disguise(String),
    /// The host or the port is wrong.
    Target(String, TargetError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(Name),
    Below(Name),
    Network(Network),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    first: IpAddr,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Web,
    One(Port),
    Any,
}

impl Rule {
    /// Reads a rule. Without a port it is about 80 and 443; `:*` means any.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let shown = || escaped(text.as_bytes());
        if text.contains("//") || text.matches('/').count() > 1 || text.ends_with('/') {
            return Err(RuleError::Url(shown()));
        }
        let (host, ports) = split(text).map_err(|error| RuleError::Target(shown(), error))?;
        let pattern = if let Some((first, length)) = host.split_once('/') {
            Pattern::Network(network(first, length).ok_or_else(|| RuleError::Network(shown()))?)
        } else if host.contains('*') {
            let name = host.strip_prefix("*.").and_then(|rest| Name::parse(rest).ok());
            let name = name.filter(|name| name.as_str().contains('.'));
            Pattern::Below(name.ok_or_else(|| RuleError::Wildcard(shown()))?)
        } else {
            let host = match host.parse::<Ipv6Addr>() {
                Ok(address) => Ok(Host::Ip(address.into())),
                Err(_) => Host::parse(host.as_bytes()),
            };
            match host.map_err(|error| RuleError::Target(shown(), error))? {
                Host::Name(name) => Pattern::Name(name),
                Host::Ip(first) => Pattern::Network(Network {
                    first,
                    length: if first.is_ipv4() { 32 } else { 128 },
                }),
            }
        };
        match pattern {
            Pattern::Network(Network { first, .. }) if stands_for(first) != first => {
                Err(RuleError::Disguise(shown()))
            }
            pattern => Ok(Self { pattern, ports, reach: Reach::Public }),
        }
    }

    /// The same rule, which may lead to private addresses too. Only the owner decides so.
    pub fn reaching_private(self) -> Self {
        Self { reach: Reach::Private, ..self }
    }

    /// The same rule as the owner's own word: a private place that it names itself is meant. A name still
    /// leads nowhere private.
    #[must_use]
    pub fn as_typed(self) -> Self {
        if self.names_private() { self.reaching_private() } else { self }
    }

    /// How far the rule leads.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether the rule is about a name. The names of the owner's machine stand for each other,
    /// and no wildcard means them.
    pub(super) fn has_name(&self, name: &Name) -> bool {
        match &self.pattern {
            Pattern::Name(own) if own.is_host_machine() => name.is_host_machine(),
            Pattern::Name(own) => own == name,
            Pattern::Below(own) => name.is_below(own) && !name.is_host_machine(),
            Pattern::Network(_) => false,
        }
    }

    /// Whether the rule names a private place itself: an address or network that is not wholly of the public
    /// internet, or the owner's machine.
    pub fn names_private(&self) -> bool {
        match &self.pattern {
            Pattern::Name(name) => name.is_host_machine(),
            Pattern::Below(_) => false,
            Pattern::Network(Network { first, length }) => !is_public(*first, *length),
        }
    }

    /// Whether the rule, as a refusal, is about a port: without one it is about all.
    pub(super) fn may_refuse(&self, port: Port) -> bool {
        self.ports == Ports::Web || self.has_port(port)
    }

    /// The ports that programs are likely to ask for at an address of their own: for a name, and for the owner's
    /// machine. Of any other address they know that it is not their own.
    pub(super) fn likely_ports(&self) -> Vec<Port> {
        let is_address = matches!(self.pattern, Pattern::Network(_));
        if is_address && !HOST_MACHINE.iter().any(|address| self.leads_to(*address)) {
            return Vec::new();
        }
        match self.ports {
            Ports::One(port) => vec![port],
            Ports::Web | Ports::Any => vec![Port::HTTPS, Port::HTTP],
        }
    }

    /// Whether the rule is about a port.
    pub(super) fn has_port(&self, port: Port) -> bool {
        match self.ports {
            Ports::Web => port == Port::HTTP || port == Port::HTTPS,
            Ports::One(own) => own == port,
            Ports::Any => true,
        }
    }

    /// Whether the rule is about an address, in whatever dress.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        match &self.pattern {
            Pattern::Network(Network { first, length }) => {
                is_within(stands_for(address), *first, *length)
            }
            Pattern::Name(_) | Pattern::Below(_) => false,
        }
    }

    /// Whether the rule leads to an address that it is about: to a private one only if it reaches so far.
    pub(super) fn leads_to(&self, address: IpAddr) -> bool {
        let is_near = self.reach == Reach::Private || range_of(address).is_none();
        is_near && self.has_address(address)
    }
}

/// Splits the ports off. A bare IPv6 address or network has none.
fn split(text: &str) -> Result<(&str, Ports), TargetError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(TargetError::Bracket)?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(TargetError::Bracket),
            }
        }
        None if text.matches(':').count() > 1 => (text, None),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    // What stood in brackets must be of IPv6.
    if text.starts_with('[') && !host.contains(':') {
        return Err(TargetError::Ipv6);
    }
    let ports = match port {
        None => Ports::Web,
        Some("*") => Ports::Any,
        Some(port) => Ports::One(Port::parse(port.as_bytes())?),
    };
    Ok((host, ports))
}

/// A network whose address has no bits beyond its length. The whole internet is none.
fn network(first: &str, length: &str) -> Option<Network> {
    let first: IpAddr = first.parse().ok()?;
    let width = if first.is_ipv4() { 32 } else { 128 };
    let is_plain = length.bytes().all(|byte| byte.is_ascii_digit()) && !length.starts_with('0');
    let length = length.parse::<u8>().ok().filter(|length| is_plain && *length <= width)?;
    let free_bits = u32::from(width - length);
    let trailing_zeros = match first {
        IpAddr::V4(address) => address.to_bits().trailing_zeros(),
        IpAddr::V6(address) => address.to_bits().trailing_zeros(),
    };
    (trailing_zeros >= free_bits).then_some(Network { first, length })
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::Name(name) => name.fmt(out)?,
            Pattern::Below(name) => write!(out, "*.{name}")?,
            Pattern::Network(network) => {
                let is_one = network.length == if network.first.is_ipv4() { 32 } else { 128 };
                match (network.first, is_one) {
                    (IpAddr::V4(first), true) => first.fmt(out)?,
                    (IpAddr::V4(first), false) => write!(out, "{first}/{}", network.length)?,
                    (IpAddr::V6(first), true) => write!(out, "[{first}]")?,
                    (IpAddr::V6(first), false) => write!(out, "[{first}/{}]", network.length)?,
                }
            }
        }
        match self.ports {
            Ports::Web => Ok(()),
            Ports::One(port) => write!(out, ":{port}"),
            Ports::Any => out.write_str(":*"),
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Url(text) => write!(out, "`{text}` is a URL; a rule is a host and a port"),
            RuleError::Wildcard(text) => {
                write!(
                    out,
                    "`{text}` allows too much; a wildcard stands first, before two labels or more, as in `*.example.com`"
                )
            }
            RuleError::Network(text) => {
                write!(
                    out,
                    "`{text}` is no network such as `10.0.0.0/8`, with nothing after its prefix"
                )
            }
            RuleError::Disguise(text) => {
                write!(out, "`{text}` is an IPv4 address in disguise; write that one")
            }
            RuleError::Target(text, _) => write!(out, "`{text}` is no rule"),
        }
    }
}

impl std::error::Error for RuleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RuleError::Target(_, error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rule_is_refused_by_name() {
        let error = |text: &str| Rule::parse(text).unwrap_err();
        for text in [
            "*",
            "*.com",
            "*.localhost",
            "a.*.com",
            "*a.example.com",
            "*.*.com",
            "**.example.com",
            "*:443",
        ] {
            assert!(matches!(error(text), RuleError::Wildcard(_)), "{text}");
        }
        for text in ["https://a.test", "a.test/", "a.test/b/c", "//a.test"] {
            assert!(matches!(error(text), RuleError::Url(_)), "{text}");
        }
        for text in [
            "10.0.0.1/8",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "a.test/8",
            "10.0.0.0/+8",
            "10.0.0.0/",
        ] {
            assert!(matches!(error(text), RuleError::Network(_) | RuleError::Url(_)), "{text}");
        }
        for text in ["[::ffff:1.2.3.4]:80", "::ffff:1.2.3.4", "64:ff9b::/96"] {
            assert!(matches!(error(text), RuleError::Disguise(_)), "{text}");
        }
        for text in [
            "",
            "a.test:",
            "a.test:0",
            "a.test.",
            "127.1",
            "0x7f000001",
            "b\u{fc}cher.test",
            "a@b.test",
            "[1.2.3.4]:80",
            "[::1",
            "[::1]x",
            "a b.test",
        ] {
            assert!(matches!(error(text), RuleError::Target(..)), "{text}");
        }
    }

    #[test]
    fn a_bare_ipv6_address_needs_no_brackets() {
        assert_eq!(Rule::parse("::1").unwrap().to_string(), "[::1]");
        assert_eq!(Rule::parse("fd00::/8").unwrap().to_string(), "[fd00::/8]");
    }
}
