//! Tells the addresses of machines from those that have a meaning on one network only.
//!
//! Clouds serve their machines' credentials at addresses of the second kind, and they can be written in
//! more than one way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of clouds' own services for their machines that are not link-local: Alibaba, Azure, Equinix.
/// (Oracle's former one is in the block of [`may_be_v4`].)
const CLOUDS_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 80, 8, 124),
];

/// The same of IPv6, as prefixes and their lengths in segments: Amazon, Google, Oracle, Scaleway, Linode.
const CLOUDS_V6: [&[u16]; 5] = [
    &[0xfd00, 0xec2],
    &[0xfd20, 0xce],
    &[0xfd00, 0xc1],
    &[0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42],
    &[0xfd00, 0xa9fe, 0xa9fe],
];

/// A network's own prefix of translation to IPv4 (RFC 8215). Where the IPv4 address is in it is the
/// network's choice.
const OWN_NAT64: [u16; 3] = [0x64, 0xff9b, 1];

/// Whether it can be a machine's address, however it is written. Link-local addresses, groups and the
/// services of clouds cannot.
pub(crate) fn may_be(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => may_be_v4(v4),
        IpAddr::V6(v6) => may_be_v6(v6),
    }
}

fn may_be_v4(v4: Ipv4Addr) -> bool {
    let octets = v4.octets();
    // This network; protocol assignments (RFC 6890), among them a former service of Oracle; reserved.
    let is_special = octets[0] == 0 || octets[..3] == [192, 0, 0] || octets[0] >= 240;
    !v4.is_multicast() && !v4.is_link_local() && !is_special && !CLOUDS_V4.contains(&v4)
}

fn may_be_v6(v6: Ipv6Addr) -> bool {
    let segments = v6.segments();
    let begins = |prefix: &&[u16]| segments.starts_with(prefix);
    let is_cloud = CLOUDS_V6.iter().any(begins) || begins(&&OWN_NAT64[..]);
    if v6.is_loopback() {
        return true;
    }
    let nobody = v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local();
    !nobody && !is_cloud && v4_within(segments).into_iter().flatten().all(may_be_v4)
}

/// The IPv4 addresses that an IPv6 address leads to, by the ways of transition.
fn v4_within(segments: [u16; 8]) -> [Option<Ipv4Addr>; 2] {
    let v4 = |at: usize| Some(from(segments[at], segments[at + 1]));
    match segments {
        // IPv4-compatible (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [v4(6), None]
        }
        // 6to4 (RFC 3056).
        [0x2002, ..] => [v4(1), None],
        // Teredo (RFC 4380): its server, and the client with its bits turned over.
        [0x2001, 0, ..] => [v4(2), Some(from(!segments[6], !segments[7]))],
        // ISATAP (RFC 5214).
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => [v4(6), None],
        _ => [None, None],
    }
}

fn from(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(address: &str) -> bool {
        may_be(address.parse().unwrap())
    }

    #[test]
    fn the_forms_of_a_link_local_address_are_refused_and_those_of_a_public_one_are_not() {
        for (linked, public) in [
            ("169.254.169.254", "192.0.2.7"),
            ("::ffff:169.254.169.254", "::ffff:192.0.2.7"),
            ("::169.254.169.254", "::192.0.2.7"),
            ("::ffff:0:169.254.169.254", "::ffff:0:192.0.2.7"),
            ("64:ff9b::169.254.169.254", "64:ff9b::192.0.2.7"),
            ("2002:a9fe:a9fe::1", "2002:c000:207::1"),
            // A Teredo server, and a client with its bits turned over.
            ("2001:0:a9fe:a9fe:8000:1:3fff:fdf8", "2001:0:c000:207:8000:1:3fff:fdf8"),
            ("2001:0:c000:207:8000:1:5601:5601", "2001:0:c000:207:8000:1:3fff:fdf8"),
            ("2001:db8::5efe:169.254.169.254", "2001:db8::5efe:192.0.2.7"),
            ("2001:db8::200:5efe:169.254.169.254", "2001:db8::200:5efe:192.0.2.7"),
            ("fe80::1", "2001:db8::1"),
        ] {
            assert!(!is_taken(linked), "{linked}");
            assert!(is_taken(public), "{public}");
        }
    }

    #[test]
    fn the_services_of_clouds_are_refused_and_their_neighbours_are_not() {
        for service in [
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "192.80.8.124",
            "64:ff9b::168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
        ] {
            assert!(!is_taken(service), "{service}");
        }
        for machine in [
            "100.100.100.201",
            "100.64.0.1",
            "10.0.0.9",
            "127.0.0.1",
            "::1",
            "fd00:42::1",
            "fd12::1",
        ] {
            assert!(is_taken(machine), "{machine}");
        }
    }

    #[test]
    fn groups_and_reserved_addresses_are_no_machines() {
        for nobody in
            ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::", "ff02::1"]
        {
            assert!(!is_taken(nobody), "{nobody}");
        }
    }
}
