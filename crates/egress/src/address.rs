//! Which addresses are not of the public internet, whatever they hide in.
//!
//! The tables follow IANA's registries of special-purpose addresses. For IPv6 the
//! public space is what is listed, so an address of a range nobody has heard of is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range that a name of the public internet has no reason to point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// `0.0.0.0/8` and `::`, which many systems take for themselves.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, or unique local addresses of IPv6.
    Private,
    /// The network between a provider and its customers.
    Shared,
    /// The link itself; the metadata services of clouds are here.
    LinkLocal,
    /// A service of a cloud to its machines at an address that looks public.
    CloudService,
    /// Many machines at once.
    Multicast,
    /// All machines of the link.
    Broadcast,
    /// Examples in documents.
    Documentation,
    /// Measurements between devices.
    Benchmarking,
    /// Kept for protocols, or for a future use.
    Reserved,
}

/// The ranges of IPv4: the first address, the length of the prefix, and what it is.
const IPV4: &[(Ipv4Addr, u8, Range)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, Range::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Range::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Range::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Range::Loopback),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Range::CloudService),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Range::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Range::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Range::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Range::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Range::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Range::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Range::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Range::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Range::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Range::Multicast),
    (Ipv4Addr::BROADCAST, 32, Range::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Range::Reserved),
];

/// The ranges of IPv6, the narrower ones first.
const IPV6: &[(Ipv6Addr, u8, Range)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Range::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Range::Loopback),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, Range::Benchmarking),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Range::Reserved),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Range::Documentation),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Range::Documentation),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Range::Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Range::LinkLocal),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Range::Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Range::Multicast),
];

/// All that was ever given out of IPv6.
const IPV6_PUBLIC: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The range an address belongs to; none if it is of the public internet.
///
/// An IPv6 address that carries an IPv4 address belongs to the range of that one.
pub fn range_of(address: IpAddr) -> Option<Range> {
    match stands_for(address) {
        IpAddr::V4(address) => range_of_ipv4(address),
        IpAddr::V6(address) => match tunnel_ends(address) {
            Some(ends) => ends.into_iter().find_map(range_of_ipv4),
            None => range_of_ipv6(address),
        },
    }
}

/// The machine an address leads to: the IPv4 address within an IPv6 address that is just
/// another way to write it (mapped, compatible, translated, NAT64), else the address itself.
pub fn stands_for(address: IpAddr) -> IpAddr {
    let IpAddr::V6(address) = address else { return address };
    let is_itself = address.is_unspecified() || address.is_loopback();
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            if !is_itself =>
        {
            ipv4(high, low).into()
        }
        _ => address.into(),
    }
}

/// Whether an address begins with the first `length` bits of another.
pub fn is_within(address: IpAddr, first: IpAddr, length: u8) -> bool {
    let same_bits = |ours: u128, theirs: u128, width: u32| {
        let shift = width.saturating_sub(u32::from(length));
        ours.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
    };
    match (address, first) {
        (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
            same_bits(u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
        }
        (IpAddr::V6(ours), IpAddr::V6(theirs)) => same_bits(ours.to_bits(), theirs.to_bits(), 128),
        _ => false,
    }
}

/// Whether every address of a network is of the public internet.
pub fn is_public(first: IpAddr, length: u8) -> bool {
    let overlaps = |other: IpAddr, its_length: u8| is_within(other, first, length.min(its_length));
    match first {
        IpAddr::V4(_) => !IPV4.iter().any(|(special, bits, _)| overlaps((*special).into(), *bits)),
        IpAddr::V6(_) => {
            let (public, bits) = IPV6_PUBLIC;
            let is_given_out = length >= bits && is_within(first, public.into(), bits);
            let tunnelled = |special: Ipv4Addr| {
                let [a, b, c, d] = special.octets().map(u16::from);
                Ipv6Addr::new(0x2002, a << 8 | b, c << 8 | d, 0, 0, 0, 0, 0)
            };
            is_given_out
                && !IPV6.iter().any(|(special, bits, _)| overlaps((*special).into(), *bits))
                && !IPV4
                    .iter()
                    .any(|(special, bits, _)| overlaps(tunnelled(*special).into(), 16 + bits))
        }
    }
}

/// The IPv4 addresses a tunnel runs between or to: 6to4, or the server and the client of Teredo.
fn tunnel_ends(address: Ipv6Addr) -> Option<Vec<Ipv4Addr>> {
    match address.segments() {
        [0x2002, high, low, ..] => Some(vec![ipv4(high, low)]),
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            Some(vec![ipv4(high, low), ipv4(!client_high, !client_low)])
        }
        _ => None,
    }
}

fn range_of_ipv4(address: Ipv4Addr) -> Option<Range> {
    let holds = |(first, length, _): &&(Ipv4Addr, u8, Range)| {
        is_within(address.into(), (*first).into(), *length)
    };
    IPV4.iter().find(holds).map(|(_, _, range)| *range)
}

fn range_of_ipv6(address: Ipv6Addr) -> Option<Range> {
    let holds = |first: Ipv6Addr, length| is_within(address.into(), first.into(), length);
    let listed = IPV6.iter().find(|(first, length, _)| holds(*first, *length));
    match listed {
        Some((_, _, range)) => Some(*range),
        None if holds(IPV6_PUBLIC.0, IPV6_PUBLIC.1) => None,
        None => Some(Range::Reserved),
    }
}

fn ipv4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Range::Unspecified => "an unspecified address",
            Range::Loopback => "this machine itself",
            Range::Private => "a private network",
            Range::Shared => "a provider's own network",
            Range::LinkLocal => "a link-local address",
            Range::CloudService => "a cloud's service to its machines",
            Range::Multicast => "a multicast address",
            Range::Broadcast => "a broadcast address",
            Range::Documentation => "an address for documents",
            Range::Benchmarking => "an address for measurements",
            Range::Reserved => "a reserved address",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Option<Range> {
        range_of(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_internet_have_no_range() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert_eq!(range(text), None, "{text}");
        }
    }

    #[test]
    fn every_special_range_is_known_from_end_to_end() {
        use Range as R;
        for (text, expected) in [
            ("0.0.0.0", R::Unspecified),
            ("0.255.255.255", R::Unspecified),
            ("10.0.0.0", R::Private),
            ("10.255.255.255", R::Private),
            ("100.64.0.0", R::Shared),
            ("100.127.255.255", R::Shared),
            ("100.100.100.200", R::Shared),
            ("127.0.0.1", R::Loopback),
            ("127.255.255.255", R::Loopback),
            ("168.63.129.16", R::CloudService),
            ("169.254.169.254", R::LinkLocal),
            ("172.16.0.0", R::Private),
            ("172.31.255.255", R::Private),
            ("192.0.0.192", R::Reserved),
            ("192.0.2.1", R::Documentation),
            ("192.88.99.1", R::Reserved),
            ("192.168.0.0", R::Private),
            ("198.18.0.0", R::Benchmarking),
            ("198.19.255.255", R::Benchmarking),
            ("198.51.100.7", R::Documentation),
            ("203.0.113.7", R::Documentation),
            ("224.0.0.1", R::Multicast),
            ("239.255.255.255", R::Multicast),
            ("240.0.0.1", R::Reserved),
            ("255.255.255.254", R::Reserved),
            ("255.255.255.255", R::Broadcast),
            ("::", R::Unspecified),
            ("::1", R::Loopback),
            ("fc00::1", R::Private),
            ("fd00:ec2::254", R::Private),
            ("fe80::1", R::LinkLocal),
            ("febf::1", R::LinkLocal),
            ("fec0::1", R::Private),
            ("ff02::1", R::Multicast),
            ("2001:db8::1", R::Documentation),
            ("3fff::1", R::Documentation),
            ("2001:2::1", R::Benchmarking),
            ("2001:10::1", R::Reserved),
            ("100::1", R::Reserved),
            ("64:ff9b:1::1", R::Reserved),
            ("4000::1", R::Reserved),
            ("5f00::1", R::Reserved),
        ] {
            assert_eq!(range(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_address_within_an_address_is_found() {
        for text in [
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "2001:0:808:808::80ff:fffe",
        ] {
            assert_eq!(range(text), Some(Range::Loopback), "{text}");
        }
        assert_eq!(range("::ffff:169.254.169.254"), Some(Range::LinkLocal));
        assert_eq!(range("64:ff9b::a00:1"), Some(Range::Private));
        assert_eq!(range("::2"), Some(Range::Unspecified));
    }
}
