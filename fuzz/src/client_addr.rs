//! Any bytes as `X-Forwarded-For` or `Forwarded`: who is not trusted changes nothing, and whoever
//! stands in front of a trusted proxy is whom that proxy saw, whatever they sent themselves.

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderValue};
use tollgate_http::client_addr::{ClientAddr, Source, Take};

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

/// Reads each line of the bytes as one line of the header.
pub fn read(bytes: &[u8]) {
    for source in [Source::XForwardedFor, Source::Forwarded] {
        let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
        for take in [Take::Rightmost, Take::Leftmost] {
            let client_addr = client_addr(source, take);
            let headers = headers(source, &lines);
            assert_eq!(client_addr.of(STRANGER, &headers), STRANGER, "a stranger is believed");
            let found = client_addr.of(PROXY, &headers);
            assert_eq!(found, found.to_canonical(), "not in its one form");
        }
        what_our_proxy_wrote_counts(source, lines);
    }
}

/// Our proxy appends whom it saw, to the last line or as a line of its own.
fn what_our_proxy_wrote_counts(source: Source, mut lines: Vec<&[u8]>) {
    let client_addr = client_addr(source, Take::Rightmost);
    let seen: &[u8] = match source {
        Source::XForwardedFor => b"203.0.113.7",
        Source::Forwarded => b"for=203.0.113.7",
    };
    let last = lines.pop().unwrap_or_default();
    let appended = [last, b", ", seen].concat();
    let with = |end: &[&[u8]]| {
        let all: Vec<_> = lines.iter().chain(end).copied().collect();
        client_addr.of(PROXY, &headers(source, &all))
    };
    // Behind a byte that no header may hold, the whole line is lost, as it would be on the wire.
    if HeaderValue::from_bytes(last).is_ok() {
        assert_eq!(with(&[&appended]), STRANGER, "spoofed on the line");
    }
    assert_eq!(with(&[last, seen]), STRANGER, "spoofed by a line");
}

fn client_addr(source: Source, take: Take) -> ClientAddr {
    ClientAddr::new(&["10.0.0.0/8".parse().expect("a network")], source, take)
}

fn headers(source: Source, lines: &[&[u8]]) -> HeaderMap {
    let values = lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok());
    let mut headers = HeaderMap::new();
    for value in values.take(1_000) {
        headers.append(source.header(), value);
    }
    headers
}
