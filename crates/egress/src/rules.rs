//! What the owner allows, and why something is not.
//!
//! [`Rules::decide`] is asked before a name is looked up, [`Rules::check_address`] for
//! each address it turned out to have. Both are pure functions. No rule leads anywhere
//! private, by name or by address, unless it was built with [`Rule::reaching_private`]
//! or [`Rule::as_typed`], and only the owner's are.

mod rule;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use rule::{Reach, Rule, RuleError};

use crate::address::{Range, range_of};
use crate::host::{Host, Port, Target, TargetError};

/// Everything the owner allows one tool. Without rules, nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    allowed: Vec<Rule>,
    denied: Vec<Rule>,
}

/// Whether a target may be asked for at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'r> {
    /// This rule allows it, so far as its addresses may be reached too.
    Allowed(&'r Rule),
    /// Nothing allows it.
    Refused(Refusal),
}

/// Why a target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The target is spelled in a way that nothing can be decided on.
    Spelling(TargetError),
    /// The URL is neither of `http` nor of `https`.
    Scheme,
    /// The owner refuses the host, whatever else allows it.
    Denied,
    /// No rule names the host.
    Host,
    /// A rule names the host, but not this port.
    Port,
    /// The name points to an address where names have no business.
    Address {
        /// The address.
        address: IpAddr,
        /// What it is.
        range: Range,
    },
}

/// Where the names of the owner's machine lead.
pub const HOST_MACHINE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

impl Rules {
    /// Reads each text as one rule, and tells of the first that is none.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, RuleError> {
        texts.into_iter().map(Rule::parse).collect()
    }

    /// The same rules, less what these are about: a refusal goes before everything. One without a port
    /// refuses all of them.
    #[must_use]
    pub fn denying(mut self, denied: Vec<Rule>) -> Self {
        self.denied.extend(denied);
        self
    }

    /// The same rules, and more that are allowed; what is refused stays refused.
    #[must_use]
    pub fn allowing(mut self, more: impl IntoIterator<Item = Rule>) -> Self {
        self.allowed.extend(more);
        self
    }

    /// What is allowed, in the order it was given.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.allowed.iter()
    }

    /// The ports at which a program that knows of no proxy finds a door, each once.
    pub fn doors(&self) -> Vec<Port> {
        let mut ports: Vec<Port> = self.allowed.iter().flat_map(Rule::likely_ports).collect();
        let mut seen = std::collections::HashSet::new();
        ports.retain(|port| seen.insert(*port));
        ports
    }

    fn is_denied(&self, target: &Target, is_meant: impl Fn(&Rule) -> bool) -> bool {
        self.denied.iter().any(|rule| rule.may_refuse(target.port) && is_meant(rule))
    }

    /// Whether a host is denied as a whole or at the port that it is written with.
    pub fn refuses(&self, host: &str) -> bool {
        let target = Target::parse(host.as_bytes())
            .or_else(|_| Target::parse(format!("{host}:443").as_bytes()));
        target.is_ok_and(|target| self.decide(&target) == Decision::Refused(Refusal::Denied))
    }

    /// Says which rule allows a target, or why none does. Nothing is looked up.
    pub fn decide(&self, target: &Target) -> Decision<'_> {
        if self.is_denied(target, |rule| names_host(rule, &target.host, Rule::has_address)) {
            return Decision::Refused(Refusal::Denied);
        }
        let is_meant = |rule: &&Rule| names_host(rule, &target.host, Rule::leads_to);
        let mut of_host = self.allowed.iter().filter(is_meant).peekable();
        let is_known = of_host.peek().is_some();
        match of_host.find(|rule| rule.has_port(target.port)) {
            Some(rule) => Decision::Allowed(rule),
            None if is_known => Decision::Refused(Refusal::Port),
            None => Decision::Refused(Refusal::Host),
        }
    }

    /// Says which rule allows to connect to this address when that target was asked for.
    pub fn check_address(&self, target: &Target, address: IpAddr) -> Result<&Rule, Refusal> {
        let asked = match self.decide(target) {
            Decision::Allowed(rule) => rule,
            Decision::Refused(refusal) => return Err(refusal),
        };
        if self.is_denied(target, |rule| rule.has_address(address)) {
            return Err(Refusal::Denied);
        }
        let with_port = || self.allowed.iter().filter(|rule| rule.has_port(target.port));
        let by_address = || with_port().find(|rule| rule.leads_to(address));
        let range = range_of(address);
        let by_name = match &target.host {
            Host::Ip(_) => None,
            Host::Name(name) if name.is_host_machine() => with_port()
                .find(|rule| rule.has_name(name) && rule.reach() == Reach::Private)
                .filter(|_| range == Some(Range::Loopback)),
            Host::Name(_) if range.is_none() => Some(asked),
            Host::Name(name) => {
                with_port().find(|rule| rule.has_name(name) && rule.reach() == Reach::Private)
            }
        };
        by_name.or_else(by_address).ok_or(match range {
            Some(range) => Refusal::Address { address, range },
            None => Refusal::Host,
        })
    }
}

/// Whether a rule speaks of a host, whatever the port.
///
/// The owner's machine is named by its names, and by its addresses: a tool cannot write
/// `127.0.0.1` for it, because in there that is the tool's own.
fn names_host(rule: &Rule, host: &Host, has_address: fn(&Rule, IpAddr) -> bool) -> bool {
    match host {
        Host::Ip(address) => has_address(rule, *address),
        Host::Name(name) if name.is_host_machine() => {
            rule.has_name(name) || HOST_MACHINE.iter().any(|address| has_address(rule, *address))
        }
        Host::Name(name) => rule.has_name(name),
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { allowed: rules.into_iter().collect(), denied: Vec::new() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Spelling(error) => error.fmt(out),
            Refusal::Scheme => out.write_str("only `http` and `https` are spoken"),
            Refusal::Denied => out.write_str("the owner refuses this host"),
            Refusal::Host => out.write_str("no grant names this host"),
            Refusal::Port => out.write_str("no grant for this host names this port"),
            Refusal::Address { address, range } => {
                write!(out, "the name points to `{address}`, {range}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_goes_before_everything() {
        let deny = |texts: &[&str]| texts.iter().map(|text| Rule::parse(text).unwrap()).collect();
        let denying = |texts: &[&str]| {
            rules(&["example.com", "*.example.com:*", "10.0.0.0/8:*"]).denying(deny(texts))
        };
        let decide =
            |rules: &Rules, text: &str| matches!(rules.decide(&target(text)), Decision::Allowed(_));
        let one = denying(&["bad.example.com"]);
        assert!(decide(&one, "good.example.com:443") && decide(&one, "example.com:80"));
        assert!(!decide(&one, "bad.example.com:443") && !decide(&one, "bad.example.com:9000"));
        assert!(!decide(&denying(&["*.example.com"]), "x.example.com:443"));
        let port = denying(&["x.example.com:25"]);
        assert!(!decide(&port, "x.example.com:25") && decide(&port, "x.example.com:26"));
        let network = denying(&["10.1.0.0/16"]);
        assert!(decide(&network, "10.2.0.1:80") && !decide(&network, "10.1.0.1:80"));
        let led_there =
            network.check_address(&target("example.com:80"), "10.1.2.3".parse().unwrap());
        assert_eq!(led_there, Err(Refusal::Denied));
    }

    #[test]
    fn a_rule_knows_whether_it_names_a_private_place() {
        for (text, is_private) in [
            ("example.com", false),
            ("*.example.com", false),
            ("localhost:3000", true),
            ("host.haft.internal", true),
            ("127.0.0.1", true),
            ("10.0.0.0/8", true),
            ("[fd00::/8]:443", true),
            ("169.254.169.254", true),
            ("93.184.216.34", false),
            // A network that holds a private one names it too.
            ("126.0.0.0/7:*", true),
            ("168.0.0.0/5", true),
            ("0.0.0.0/1", true),
            ("192.0.0.0/9", true),
            ("8.0.0.0/9", false),
            ("93.184.0.0/16", false),
            ("2000::/3", true),
            ("2001::/16", true),
            ("2002::/16", true),
            ("2002:7e00::/23", true),
            ("2002:808::/32", false),
            ("fc00::/6", true),
            ("64::/16", true),
            ("2606:4700::/32", false),
        ] {
            assert_eq!(Rule::parse(text).unwrap().names_private(), is_private, "{text}");
        }
    }

    /// Rules that the owner typed.
    fn rules(texts: &[&str]) -> Rules {
        texts.iter().map(|text| Rule::parse(text).unwrap().as_typed()).collect()
    }

    #[test]
    fn no_rule_leads_anywhere_private_unless_the_owner_made_it() {
        for (text, place) in [
            ("126.0.0.0/7:*", "127.0.0.1"),
            ("168.0.0.0/5:*", "169.254.169.254"),
            ("127.0.0.1:*", "127.0.0.1"),
            ("126.0.0.0/7:*", "::ffff:127.0.0.1"),
            ("126.0.0.0/7:*", "64:ff9b::7f00:1"),
            ("[fc00::/6]:*", "fd00::1"),
            ("[::1]:*", "::1"),
            ("[2000::/3]:*", "2002:7f00:1::"),
            ("[2002:7e00::/23]:*", "2002:7f00:1::"),
        ] {
            let address: IpAddr = place.parse().unwrap();
            let strangers = Rules::parse([text, "db.dev:*"]).unwrap();
            let asked = Target { host: Host::Ip(address), port: Port::HTTPS };
            assert!(!matches!(strangers.decide(&asked), Decision::Allowed(_)), "{text} {place}");
            assert!(strangers.check_address(&asked, address).is_err(), "{text} {place}");
            let named = target("db.dev:443");
            assert!(strangers.check_address(&named, address).is_err(), "{text} {place}");
            assert!(rules(&[text]).check_address(&asked, address).is_ok(), "{text} {place}");
        }
        for name in ["localhost:8080", "host.haft.internal:8080"] {
            for rule in ["localhost:8080", "126.0.0.0/7:*"] {
                let strangers = Rules::parse([rule]).unwrap();
                assert!(strangers.check_address(&target(name), HOST_MACHINE[0]).is_err(), "{rule}");
            }
        }
        let open = Rules::parse(["126.0.0.0/7:*"]).unwrap();
        assert!(matches!(open.decide(&target("126.1.2.3:80")), Decision::Allowed(_)));
    }

    fn target(text: &str) -> Target {
        Target::parse(text.as_bytes()).unwrap()
    }

    fn decided(rules: &Rules, text: &str) -> Result<String, Refusal> {
        match rules.decide(&target(text)) {
            Decision::Allowed(rule) => Ok(rule.to_string()),
            Decision::Refused(refusal) => Err(refusal),
        }
    }

    #[test]
    fn nothing_is_allowed_without_rules() {
        assert_eq!(decided(&Rules::default(), "a.test:443"), Err(Refusal::Host));
    }

    #[test]
    fn names_match_by_whole_labels_and_ports_as_granted() {
        let rules = rules(&["API.example.com", "*.wild.dev", "odd.dev:8443", "any.dev:*"]);
        for allowed in [
            "api.example.com:443",
            "api.example.com:80",
            "a.b.wild.dev:443",
            "odd.dev:8443",
            "any.dev:25",
        ] {
            assert!(decided(&rules, allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "example.com:443",
            "x.api.example.com:443",
            "xapi.example.com:443",
            "wild.dev:443",
            "evilwild.dev:443",
        ] {
            assert_eq!(decided(&rules, refused), Err(Refusal::Host), "{refused}");
        }
        for refused in ["api.example.com:22", "odd.dev:443", "a.wild.dev:8080"] {
            assert_eq!(decided(&rules, refused), Err(Refusal::Port), "{refused}");
        }
    }

    #[test]
    fn addresses_match_in_any_dress_but_never_a_name() {
        let rules = rules(&["10.0.0.0/8:5432", "[::1]:8080", "8.8.8.8"]);
        for allowed in [
            "10.1.2.3:5432",
            "[::ffff:10.1.2.3]:5432",
            "[64:ff9b::a01:203]:5432",
            "[::1]:8080",
            "8.8.8.8:443",
        ] {
            assert!(decided(&rules, allowed).is_ok(), "{allowed}");
        }
        for refused in
            ["11.0.0.1:5432", "db.internal:5432", "[2002:a01:203::]:5432", "127.0.0.1:8080"]
        {
            assert_eq!(decided(&rules, refused), Err(Refusal::Host), "{refused}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_private_unless_the_owner_says_so() {
        let address = "10.0.0.5".parse().unwrap();
        let asked = target("db.dev:443");
        let check = |rules: &Rules| rules.check_address(&asked, address).map(ToString::to_string);
        let private = Err(Refusal::Address { address, range: Range::Private });
        assert_eq!(check(&rules(&["db.dev"])), private);
        assert_eq!(check(&rules(&["db.dev", "10.0.0.0/8:80"])), private, "another port");
        assert_eq!(check(&rules(&["db.dev", "10.0.0.0/8"])), Ok("10.0.0.0/8".into()));
        assert_eq!(check(&rules(&["10.0.0.0/8"])), Err(Refusal::Host), "a name is not an address");
        let own: Rules = [Rule::parse("db.dev").unwrap().reaching_private()].into_iter().collect();
        assert!(own.check_address(&asked, address).is_ok());
        assert!(rules(&["db.dev"]).check_address(&asked, "1.1.1.1".parse().unwrap()).is_ok());
    }

    #[test]
    fn there_are_doors_for_names_and_for_the_owners_machine() {
        let ports =
            |rules: &Rules| -> Vec<u16> { rules.doors().into_iter().map(Port::number).collect() };
        for (text, doors) in [
            ("a.test", &[443, 80][..]),
            ("*.a.test:7", &[7]),
            ("localhost:7", &[7]),
            ("127.0.0.1:7", &[7]),
            ("[::1]:7", &[7]),
            ("127.0.0.0/8:*", &[443, 80]),
            ("10.0.0.1:7", &[]),
            ("1.1.1.1", &[]),
        ] {
            assert_eq!(ports(&rules(&[text])), doors, "{text}");
        }
        // A stranger's word does not lead there.
        assert!(Rules::parse(["127.0.0.1:7"]).unwrap().doors().is_empty());
    }

    #[test]
    fn the_owners_machine_is_reached_by_its_names_and_only_there() {
        let by_name = rules(&["localhost:8080"]);
        for asked in ["localhost:8080", "host.haft.internal:8080"] {
            for address in HOST_MACHINE {
                assert!(by_name.check_address(&target(asked), address).is_ok(), "{asked}");
            }
            assert!(by_name.check_address(&target(asked), "1.1.1.1".parse().unwrap()).is_err());
            assert!(by_name.check_address(&target(asked), "10.0.0.1".parse().unwrap()).is_err());
        }
        let by_address = rules(&["127.0.0.1:8080"]);
        let asked = target("host.haft.internal:8080");
        assert!(by_address.check_address(&asked, HOST_MACHINE[0]).is_ok());
        assert!(by_address.check_address(&asked, HOST_MACHINE[1]).is_err());
        let broad = rules(&["*.haft.internal:8080"]);
        assert_eq!(decided(&broad, "host.haft.internal:8080"), Err(Refusal::Host));
    }
}
