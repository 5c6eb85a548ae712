//! What a package has run beside its calls, so far as its owner is shown it: the hosts of its smoke test and of its kill
//! switch, and the secret that revokes.

use egress::Rule;
use manifest::kill_switch::KillSwitch;
use manifest::model::{InputSource, Package};
use manifest::smoke::{Smoke, Way};
use serde::{Deserialize, Serialize};

/// What is reached beside the calls of a package. Calls are given none of these hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Hosts of its smoke test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub smoke: Vec<String>,
    /// Hosts of its kill switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kill_switch: Vec<String>,
    /// The secret that its kill switch is told, where the owner was asked which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl Beside {
    /// What a package says. A host that only a value will tell is on no card, and is not reached for being here.
    pub fn of(package: &Package) -> Self {
        let smoke = Smoke::of(package).and_then(|smoke| match smoke.way {
            Way::Http { url, .. } => host_of(&url),
            Way::Shell { .. } | Way::McpToolCall { .. } | Way::ActionCall { .. } => None,
        });
        let kill_switch = KillSwitch::of(package).and_then(|switch| match switch {
            KillSwitch::Url(url) => host_of(&url),
            KillSwitch::Shell(_) | KillSwitch::Manual(_) | KillSwitch::None => None,
        });
        Self {
            smoke: smoke.into_iter().collect(),
            kill_switch: kill_switch.into_iter().collect(),
            secret: None,
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The secrets among which the owner chooses the one that revokes, where a kill switch is told one of several.
pub fn revoking_secrets(package: &Package) -> Vec<&str> {
    if !matches!(KillSwitch::of(package), Some(KillSwitch::Url(_))) {
        return Vec::new();
    }
    let of_owner = package.inputs.iter().filter(|input| input.source != InputSource::Caller);
    let secrets: Vec<_> =
        of_owner.filter(|input| input.secret).map(|input| input.name.as_str()).collect();
    if secrets.len() > 1 { secrets } else { Vec::new() }
}

/// The host of an address, with its port where that is not the usual one, as a rule.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    // A host with a template in it is no host, and neither is a rule for many.
    let is_one = !host.contains(['*', '$', '{']);
    (is_one && Rule::parse(&host).is_ok()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_from_an_address_and_from_no_template() {
        for (url, host) in [
            ("https://api.example.com/v1/keys", Some("api.example.com")),
            ("https://API.example.com:8443?x=1", Some("api.example.com:8443")),
            ("https://evil.example@api.example.com/", Some("api.example.com")),
            ("http://127.0.0.1:80/x", Some("127.0.0.1:80")),
            ("https://${HOST}/x", None),
            ("${BASE}/x", None),
            ("https://*.example.com/", None),
            ("ftp://example.com/", None),
            ("https:///x", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
