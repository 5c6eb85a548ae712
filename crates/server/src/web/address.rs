//! From where somebody asks.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// Who is at the other end of the connection, in one spelling: an address of IPv4 is one on a socket of IPv6 too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// The most addresses of a header that are looked at.
const MOST: usize = 50;

/// Whether an address is in one of these networks.
pub(super) fn is_among(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// From where somebody asks: the other end, or, when that is a proxy that is trusted, the last address
/// before the trusted ones. What others write into a header is believed no further than that.
pub(super) fn of(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address| is_among(trusted, address);
    let mut address = peer;
    if !is_trusted(address) {
        return address;
    }
    let before = match told(headers, "x-forwarded-for", plain) {
        Some(addresses) => addresses,
        None => told(headers, "forwarded", element).unwrap_or_default(),
    };
    for next in before.into_iter().rev().take(MOST) {
        // Whoever wrote what cannot be read is not known any better.
        let Some(next) = next else { return address };
        address = next;
        if !is_trusted(address) {
            return address;
        }
    }
    address
}

/// The addresses of a header, in order; none where there is no such header.
fn told(
    headers: &HeaderMap,
    name: &str,
    read: fn(&str) -> Option<IpAddr>,
) -> Option<Vec<Option<IpAddr>>> {
    headers.contains_key(name).then(|| {
        let lines = headers.get_all(name).iter();
        lines
            .flat_map(|line| line.to_str().unwrap_or("?").split(','))
            .map(|part| read(part.trim()))
            .collect()
    })
}

/// One address, perhaps with a port.
fn plain(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|with| with.ip()));
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    address.or_else(bracketed).map(|address| address.to_canonical())
}

/// One element of `Forwarded`.
fn element(text: &str) -> Option<IpAddr> {
    let pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    named.next().and_then(|(_, value)| plain(value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, fields: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        of(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let told = [("x-forwarded-for", "192.0.2.7")];
        assert_eq!(from("203.0.113.1", &told), "203.0.113.1");
        assert_eq!(from("10.0.0.1", &told), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn what_a_client_writes_itself_is_not_believed() {
        let name = "x-forwarded-for";
        assert_eq!(from("10.0.0.1", &[(name, "198.51.100.1, 192.0.2.7")]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &[(name, "192.0.2.7, 10.0.0.2")]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &[(name, "192.0.2.7"), (name, "192.0.2.8")]), "192.0.2.8");
        assert_eq!(from("10.0.0.1", &[(name, "192.0.2.7, nonsense")]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &[(name, "192.0.2.7, nonsense, 10.0.0.2")]), "10.0.0.2");
        assert_eq!(from("10.0.0.1", &[(name, "192.0.2.7:4711")]), "192.0.2.7");
    }

    #[test]
    fn the_header_of_the_standard_is_read_too() {
        let told = [("forwarded", "for=192.0.2.7;proto=https, for=\"[2001:db8:1::5]:80\"")];
        assert_eq!(from("10.0.0.1", &told), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &[("forwarded", "for=_hidden")]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &[("forwarded", "proto=https")]), "10.0.0.1");
    }
}
