//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The special-purpose blocks of IPv4 (IANA registry, RFC 6890) and multicast: first address and prefix length.
const SPECIAL_V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, reserved addresses and the limited broadcast address.
    ([224, 0, 0, 0], 3),
];

/// The block of global unicast addresses of IPv6. No address outside it is public.
const GLOBAL_V6: (u128, u32) = (0x2000 << 112, 3);
/// The blocks within it that are not public: protocol assignments (with Teredo), documentation, 6to4, and documentation.
const SPECIAL_V6: [(u128, u32); 4] = [(0x2001 << 112, 23), (0x2001_0db8 << 96, 32), (0x2002 << 112, 16), (0x3fff << 112, 20)];
/// The prefix of addresses that translators between IPv6 and IPv4 (NAT64) use.
const NAT64: (u128, u32) = (0x0064_ff9b << 96, 96);

/// Returns the IPv4 address that an address stands for, or the address itself. IPv4-mapped addresses and those of NAT64 contain
/// an IPv4 address.
fn meant(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if is_in_v6(v6, NAT64) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        canonical => canonical,
    }
}

/// Returns whether an address is public. An IPv6 address that contains an IPv4 address is judged as the IPv4 address.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match meant(address) {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|(first, length)| is_in_v4(v4, *first, *length)),
        IpAddr::V6(v6) => is_in_v6(v6, GLOBAL_V6) && !SPECIAL_V6.iter().any(|block| is_in_v6(v6, *block)),
    }
}

fn is_in_v4(address: Ipv4Addr, first: [u8; 4], length: u32) -> bool {
    (u32::from(address) ^ u32::from_be_bytes(first)).leading_zeros() >= length
}

fn is_in_v6(address: Ipv6Addr, (first, length): (u128, u32)) -> bool {
    (u128::from(address) ^ first).leading_zeros() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of addresses")]
    fn public_are_addresses_outside_the_special_purpose_blocks() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
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
            "2001:200::1",
            "2001:db7::1",
            "2003::1",
            "2606:4700:4700::1111",
            "3ffe::1",
            "3fff:1000::1",
            // IPv4 within IPv6 is judged as IPv4.
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ];
        let special = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.9",
            "192.0.2.1",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.99.1",
            "192.168.1.1",
            "192.175.48.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "1fff:ffff::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:0a00:0001::1",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for (addresses, expected) in [(&public[..], true), (&special[..], false)] {
            for address in addresses {
                assert_eq!(is_public(address.parse().expect(address)), expected, "{address}");
            }
        }
    }
}
