//! The client address of a request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use actix_web::HttpRequest;

use crate::settings::Network;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the address for rate limits. For IPv6 this is the /64 prefix, because clients choose the remaining bits
/// themselves.
pub(crate) fn counted(request: &HttpRequest, trusted: &[Network]) -> IpAddr {
    subscriber(of(request, trusted))
}

/// Returns the peer address or, behind trusted proxies, the address of the proxies' client.
pub(crate) fn of(request: &HttpRequest, trusted: &[Network]) -> IpAddr {
    let peer = request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    let lists: Vec<&str> = request.headers().get_all(FORWARDED_FOR).filter_map(|list| list.to_str().ok()).collect();
    nearest_untrusted(peer, &lists.join(","), trusted).to_canonical()
}

/// Each proxy appends its client's address, so the list is read from the end, as long as the addresses are trusted
/// proxies.
fn nearest_untrusted(peer: IpAddr, forwarded_for: &str, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut nearest = peer;
    for entry in forwarded_for.rsplit(',') {
        if !is_trusted(nearest) {
            break;
        }
        match entry.trim().parse() {
            Ok(address) => nearest = address,
            Err(_) => break,
        }
    }
    nearest
}

fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_are_believed_as_far_as_the_proxies_are() {
        let trusted: Vec<Network> = ["10.0.0.0/8", "127.0.0.1"].iter().map(|text| text.parse().expect(text)).collect();
        for (peer, list, expected) in [
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "192.0.2.66, 198.51.100.1, 10.1.1.1", "198.51.100.1"),
            ("127.0.0.1", "nonsense, 10.1.1.1", "10.1.1.1"),
            ("127.0.0.1", "10.2.2.2,10.1.1.1", "10.2.2.2"),
        ] {
            let peer = peer.parse().expect(peer);
            assert_eq!(nearest_untrusted(peer, list, &trusted).to_string(), expected, "{list}");
        }
    }

    #[test]
    fn ipv6_addresses_of_one_subscriber_count_as_one() {
        let of = |text: &str| subscriber(text.parse().expect(text)).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
