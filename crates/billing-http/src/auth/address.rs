//! The client address of a request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;

use crate::settings::Network;

const FORWARDED_FOR: &str = "x-forwarded-for";
/// The header of RFC 7239.
const FORWARDED: &str = "forwarded";

/// The client of a request, for rate limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// The counted address. For IPv6 this is the /64 prefix, because clients choose the remaining bits themselves.
    pub(crate) counted: IpAddr,
    /// The peer, if it is not a trusted proxy but sent a header of a proxy.
    pub(crate) unlisted_proxy: Option<IpAddr>,
}

/// Returns the client of a request.
pub(crate) fn client(request: &HttpRequest, trusted: &[Network]) -> ClientAddress {
    let (peer, headers) = (peer(request), request.headers());
    let has_header = headers.contains_key(FORWARDED_FOR) || headers.contains_key(FORWARDED);
    let unlisted_proxy = (has_header && !is_trusted(peer, trusted)).then(|| peer.to_canonical());
    ClientAddress { counted: subscriber(of(request, trusted)), unlisted_proxy }
}

/// Returns the peer address or, behind trusted proxies, the address of the proxies' client.
pub(crate) fn of(request: &HttpRequest, trusted: &[Network]) -> IpAddr {
    let peer = peer(request);
    // Nothing is parsed for the clients of a service without proxies.
    if !is_trusted(peer, trusted) {
        return peer.to_canonical();
    }
    let headers = request.headers();
    let clients = if headers.contains_key(FORWARDED_FOR) {
        clients_in_forwarded_for(&joined(headers, FORWARDED_FOR))
    } else {
        clients_in_forwarded(&joined(headers, FORWARDED))
    };
    nearest_untrusted(peer, &clients, trusted).to_canonical()
}

fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip())
}

fn is_trusted(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Joins the lines of a header. Invalid bytes are replaced, so that a client cannot hide what a proxy appended to a line.
fn joined(headers: &HeaderMap, name: &str) -> String {
    let lines: Vec<_> = headers.get_all(name).map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    lines.join(",")
}

/// Each proxy appends its client's address, so the clients are read from the last one on, as long as the addresses are
/// trusted proxies. A client that is not an address ends the search.
fn nearest_untrusted(peer: IpAddr, clients_from_last: &[Option<IpAddr>], trusted: &[Network]) -> IpAddr {
    let mut nearest = peer;
    for client in clients_from_last {
        match client {
            Some(client) if is_trusted(nearest, trusted) => nearest = *client,
            Some(_) | None => break,
        }
    }
    nearest
}

/// Returns the clients of an `X-Forwarded-For` header, from the last one on.
fn clients_in_forwarded_for(list: &str) -> Vec<Option<IpAddr>> {
    list.rsplit(',').map(|node| address_of(node.trim())).collect()
}

/// Returns the clients of a `Forwarded` header, from the last one on.
fn clients_in_forwarded(list: &str) -> Vec<Option<IpAddr>> {
    split_from_end(list, b',').into_iter().map(client_in_element).collect()
}

/// Returns the client in an element such as `for="[2001:db8::1]:4711";proto=https`.
fn client_in_element(element: &str) -> Option<IpAddr> {
    let mut nodes = split_from_end(element, b';').into_iter().filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let node = nodes.next()?;
    address_of(node.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"')).unwrap_or(node))
}

/// Splits a header value at a separator outside of quoted strings, from the end. A client writes the beginning, and could
/// open a quoted string there that would hide what a proxy appended.
fn split_from_end(text: &str, separator: u8) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_escaped = |index: usize| bytes[..index].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let (mut parts, mut end, mut is_quoted) = (Vec::new(), text.len(), false);
    for (index, byte) in bytes.iter().enumerate().rev() {
        if *byte == b'"' && !is_escaped(index) {
            is_quoted = !is_quoted;
        } else if *byte == separator && !is_quoted {
            parts.push(&text[index + 1..end]);
            end = index;
        }
    }
    parts.push(&text[..end]);
    parts
}

/// Parses an address with or without a port. IPv6 addresses with a port are in brackets. Returns `None` for anything else,
/// such as `unknown` and names like `_hidden` (RFC 7239).
fn address_of(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse() {
        return Some(address);
    }
    if let Some(bracketed) = node.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        let is_complete = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return address.parse().ok().filter(|_| is_complete).map(IpAddr::V6);
    }
    let (address, port) = node.split_once(':')?;
    address.parse().ok().filter(|_| is_port(port)).map(IpAddr::V4)
}

/// Returns whether a text is a port, or a name in its place.
fn is_port(text: &str) -> bool {
    text.starts_with('_') || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the address that limits count. For IPv6 this is the /64 prefix, because clients choose the remaining bits themselves.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn networks() -> Vec<Network> {
        ["10.0.0.0/8", "127.0.0.1"].iter().map(|text| text.parse().expect(text)).collect()
    }

    fn request(peer: &str, headers: &[(&str, &str)]) -> HttpRequest {
        let peer: IpAddr = peer.parse().expect(peer);
        let request = TestRequest::default().peer_addr((peer, 4711).into());
        headers.iter().fold(request, |request, header| request.append_header(*header)).to_http_request()
    }

    fn found(peer: &str, headers: &[(&str, &str)]) -> String {
        of(&request(peer, headers), &networks()).to_string()
    }

    #[test]
    fn forwarded_addresses_are_believed_as_far_as_the_proxies_are() {
        for (peer, list, expected) in [
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "192.0.2.66, 198.51.100.1, 10.1.1.1", "198.51.100.1"),
            ("127.0.0.1", "nonsense, 10.1.1.1", "10.1.1.1"),
            ("127.0.0.1", "10.2.2.2,10.1.1.1", "10.2.2.2"),
            ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("127.0.0.1", "192.0.2.66:1, 198.51.100.1:2, 10.1.1.1:3", "198.51.100.1"),
            ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
            ("127.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("127.0.0.1", "2001:db8::1", "2001:db8::1"),
            ("127.0.0.1", "198.51.100.1:", "127.0.0.1"),
            ("127.0.0.1", "198.51.100.1:http", "127.0.0.1"),
            ("127.0.0.1", "[198.51.100.1]", "127.0.0.1"),
            ("127.0.0.1", "[2001:db8::1", "127.0.0.1"),
            ("127.0.0.1", "[2001:db8::1]x", "127.0.0.1"),
        ] {
            assert_eq!(found(peer, &[("X-Forwarded-For", list)]), expected, "{list}");
        }
        let lines = [("X-Forwarded-For", "192.0.2.66"), ("X-Forwarded-For", "198.51.100.1")];
        assert_eq!(found("127.0.0.1", &lines), "198.51.100.1", "the last line is the nearest");
    }

    #[test]
    fn the_standard_header_is_read_if_it_is_alone() {
        for (list, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            ("For=198.51.100.1;proto=http;by=10.1.1.1", "198.51.100.1"),
            ("proto=http; for=\"198.51.100.1:4711\"", "198.51.100.1"),
            ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=\"[2001:db8::1]:_port\"", "2001:db8::1"),
            ("for=192.0.2.66, for=198.51.100.1;proto=https, for=10.1.1.1", "198.51.100.1"),
            ("for=198.51.100.1;host=\"a,b;for=192.0.2.66\"", "198.51.100.1"),
            ("for=198.51.100.1, for=_hidden", "127.0.0.1"),
            ("for=198.51.100.1, for=unknown", "127.0.0.1"),
            ("for=198.51.100.1, proto=https", "127.0.0.1"),
            // The client wrote what precedes the last comma.
            ("for=\", for=198.51.100.1", "198.51.100.1"),
            ("for=\"\\\", for=198.51.100.1", "198.51.100.1"),
            ("nonsense", "127.0.0.1"),
            ("", "127.0.0.1"),
        ] {
            assert_eq!(found("127.0.0.1", &[("Forwarded", list)]), expected, "{list}");
        }
        assert_eq!(found("203.0.113.9", &[("Forwarded", "for=198.51.100.1")]), "203.0.113.9");
        let both = [("Forwarded", "for=192.0.2.66"), ("X-Forwarded-For", "198.51.100.1")];
        assert_eq!(found("127.0.0.1", &both), "198.51.100.1");
    }

    #[test]
    fn a_peer_that_forwards_without_being_listed_is_noticed() {
        let unlisted = |peer: &str, headers: &[(&str, &str)]| client(&request(peer, headers), &networks()).unlisted_proxy;
        let stranger: IpAddr = "203.0.113.9".parse().expect("an address");
        for header in [("X-Forwarded-For", "198.51.100.1"), ("Forwarded", "for=198.51.100.1")] {
            assert_eq!(unlisted("203.0.113.9", &[header]), Some(stranger));
            assert_eq!(unlisted("127.0.0.1", &[header]), None);
        }
        assert_eq!(unlisted("203.0.113.9", &[]), None);
    }

    #[test]
    fn ipv6_addresses_of_one_subscriber_count_as_one() {
        let of = |text: &str| subscriber(text.parse().expect(text)).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
