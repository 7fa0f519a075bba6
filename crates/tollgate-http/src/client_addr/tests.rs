use http::HeaderValue;
use proptest::prelude::*;

use super::*;

/// Our proxies: `10.0.0.0/8` and `fd00::/8`.
fn client_addr(source: Source, take: Take) -> ClientAddr {
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
    ClientAddr::new(&trusted, source, take)
}

fn headers(name: HeaderName, lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(&name, HeaderValue::from_bytes(line).unwrap());
    }
    headers
}

fn find(source: Source, take: Take, peer: &str, lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
    let headers = headers(source.header(), &lines);
    client_addr(source, take).of(peer.parse().unwrap(), &headers).to_string()
}

#[track_caller]
fn check(peer: &str, lines: &[&str], expected: &str) {
    assert_eq!(find(Source::XForwardedFor, Take::Rightmost, peer, lines), expected);
}

// part of: C8
#[test]
fn a_header_from_an_untrusted_peer_changes_nothing() {
    check("198.51.100.9", &["1.1.1.1"], "198.51.100.9");
    check("198.51.100.9", &["10.0.0.1"], "198.51.100.9");
    check("2001:db8::9", &["1.1.1.1, 10.0.0.1"], "2001:db8::9");
}

// part of: C8
#[test]
fn the_rightmost_untrusted_address_is_the_client() {
    check("10.0.0.1", &["203.0.113.7"], "203.0.113.7");
    check("10.0.0.1", &["1.1.1.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7");
    check("fd00::1", &["1.1.1.1,2001:db8::7,fd00::2"], "2001:db8::7");
    check("10.0.0.1", &["1.1.1.1", "203.0.113.7", "10.0.0.2 , 10.0.0.3"], "203.0.113.7");
    check("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7");
    check("10.0.0.1", &["203.0.113.7:555"], "203.0.113.7");
}

// part of: C8
#[test]
fn without_a_header_the_peer_is_the_client() {
    check("10.0.0.1", &[], "10.0.0.1");
    check("10.0.0.1", &["", " , "], "10.0.0.1");
}

// part of: C8
#[test]
fn when_all_are_trusted_the_leftmost_is_the_client() {
    check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
}

// part of: C8
#[test]
fn nothing_left_of_garbage_is_believed() {
    check("10.0.0.1", &["1.1.1.1, garbage"], "10.0.0.1");
    check("10.0.0.1", &["1.1.1.1, unknown, 10.0.0.2"], "10.0.0.2");
    check("10.0.0.1", &["1.1.1.1", "10.0.0.300", "10.0.0.3, 10.0.0.2"], "10.0.0.3");
}

// part of: C8
#[test]
fn mapped_addresses_count_as_ipv4_everywhere() {
    check("::ffff:10.0.0.1", &["203.0.113.7"], "203.0.113.7");
    check("::ffff:198.51.100.9", &["1.1.1.1"], "198.51.100.9");
    check("10.0.0.1", &["::ffff:203.0.113.7, ::ffff:10.0.0.2"], "203.0.113.7");
}

// part of: C8
#[test]
fn a_header_of_any_length_is_read_up_to_the_bound() {
    let many = format!("203.0.113.7{}", ", 10.0.0.2".repeat(ENTRIES_MAX));
    check("10.0.0.1", &[&many], "10.0.0.2");
    let wide = format!("203.0.113.7{}", " ".repeat(BYTES_MAX));
    check("10.0.0.1", &[&wide], "10.0.0.1");
    let fitting = format!("{}203.0.113.7", " ".repeat(BYTES_MAX - 20));
    check("10.0.0.1", &[&fitting], "203.0.113.7");
    // The bound falls inside the address: part of it is not taken for a whole one.
    let cut = format!("203.0.113.7{}", " ".repeat(BYTES_MAX - 9));
    check("10.0.0.1", &[&cut], "10.0.0.1");
}

// part of: C8
#[test]
fn the_leftmost_is_an_option() {
    let check = |peer, lines: &[&str], expected: &str| {
        assert_eq!(find(Source::XForwardedFor, Take::Leftmost, peer, lines), expected);
    };
    check("10.0.0.1", &["1.1.1.1, 203.0.113.7", "10.0.0.2"], "1.1.1.1");
    check("10.0.0.1", &[" , 10.0.0.9, 1.1.1.1"], "10.0.0.9");
    check("198.51.100.9", &["1.1.1.1"], "198.51.100.9");
    check("10.0.0.1", &["unknown, 203.0.113.7, 10.0.0.2"], "203.0.113.7");
    check("10.0.0.1", &[], "10.0.0.1");
}

// part of: C8
#[test]
fn forwarded_is_read_by_the_same_rule() {
    let check = |peer, lines: &[&str], expected: &str| {
        assert_eq!(find(Source::Forwarded, Take::Rightmost, peer, lines), expected);
    };
    check("10.0.0.1", &["for=203.0.113.7;proto=https"], "203.0.113.7");
    check("10.0.0.1", &[r#"for=1.1.1.1, for="[2001:db8::7]:80", for=10.0.0.2"#], "2001:db8::7");
    check("10.0.0.1", &["for=1.1.1.1, for=_hidden, for=10.0.0.2"], "10.0.0.2");
    check("10.0.0.1", &["for=1.1.1.1, proto=https"], "10.0.0.1");
    check("10.0.0.1", &[r#"for=", for=203.0.113.7"#], "203.0.113.7");
    check("10.0.0.1", &["1.1.1.1"], "10.0.0.1");
    check("198.51.100.9", &["for=1.1.1.1"], "198.51.100.9");
    let leftmost = find(
        Source::Forwarded,
        Take::Leftmost,
        "10.0.0.1",
        &[r#"by="a,b";for=1.1.1.1, for=203.0.113.7"#],
    );
    assert_eq!(leftmost, "1.1.1.1");
}

#[test]
fn only_the_chosen_header_is_read() {
    let x_forwarded_for = headers(X_FORWARDED_FOR, &[b"1.1.1.1"]);
    let addr =
        client_addr(Source::Forwarded, Take::Rightmost).of([10, 0, 0, 1].into(), &x_forwarded_for);
    assert_eq!(addr, IpAddr::from([10, 0, 0, 1]));
}

fn any_source() -> impl Strategy<Value = Source> {
    prop_oneof![Just(Source::XForwardedFor), Just(Source::Forwarded)]
}

fn any_take() -> impl Strategy<Value = Take> {
    prop_oneof![Just(Take::Rightmost), Just(Take::Leftmost)]
}

/// Header lines of any bytes a header can hold, and often of bytes that mean something here.
fn any_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![
        3 => prop::sample::select(b"0123456789.:[],;\"\\= for_".to_vec()),
        1 => any::<u8>(),
    ];
    let line = prop::collection::vec(byte, 0..80).prop_map(|line| {
        line.into_iter().filter(|&b| (b >= b' ' && b != 127) || b == b'\t').collect()
    });
    prop::collection::vec(line, 0..4)
}

/// Addresses of which about half are our proxies'.
fn any_addr() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 3]>().prop_map(|[a, b, c]| IpAddr::from([10, a, b, c])),
        any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
        any::<u64>().prop_map(|bits| IpAddr::V6((0xfd << 120 | u128::from(bits)).into())),
    ]
}

/// Addresses outside of our proxies' networks.
fn untrusted_addr() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (11..=255u8, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| IpAddr::from([a, b, c, d])),
        any::<u128>().prop_map(|bits| IpAddr::V6((bits >> 3).into())),
    ]
}

/// The rule in the plainest words.
fn model(trusted: &ClientAddr, peer: IpAddr, entries: &[IpAddr]) -> IpAddr {
    if !trusted.trusts(peer) {
        return peer;
    }
    let untrusted = entries.iter().rev().find(|entry| !trusted.trusts(**entry));
    *untrusted.or(entries.first()).unwrap_or(&peer)
}

proptest! {
    // part of: C8
    #[test]
    fn no_header_whatever_moves_an_untrusted_peer(
        source in any_source(), take in any_take(), peer in untrusted_addr(), lines in any_lines(),
    ) {
        let client_addr = client_addr(source, take);
        let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
        let addr = client_addr.of(peer, &headers(source.header(), &lines));
        prop_assert_eq!(addr, peer.to_canonical());
    }

    // part of: C8
    #[test]
    fn arbitrary_bytes_give_the_peer_or_an_address_that_stands_there(
        source in any_source(), take in any_take(), lines in any_lines(),
    ) {
        let peer = IpAddr::from([10, 0, 0, 1]);
        let slices: Vec<_> = lines.iter().map(Vec::as_slice).collect();
        let addr = client_addr(source, take).of(peer, &headers(source.header(), &slices));
        let stands_there = lines.iter().any(|line| {
            let text = String::from_utf8_lossy(line).replace(['"', '[', ']', '=', ',', ';'], " ");
            text.split_ascii_whitespace().any(|word| entry::address(word.as_bytes()) == Some(addr)
                || word.rsplit_once(':').is_some_and(|(word, _)| entry::address(word.as_bytes()) == Some(addr)))
        });
        prop_assert!(addr == peer || stands_there, "{} from {:?}", addr, lines);
    }

    // part of: C8
    #[test]
    fn well_formed_lists_follow_the_rule_however_they_are_written(
        source in any_source(),
        peer in any_addr(),
        entries in prop::collection::vec((any_addr(), any::<Option<u16>>(), any::<bool>()), 0..6),
    ) {
        let mut lines = vec![String::new()];
        for (addr, port, new_line) in &entries {
            if *new_line {
                lines.push(String::new());
            }
            let line = lines.last_mut().unwrap();
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(&written(*addr, *port, source));
        }
        let client_addr = client_addr(source, Take::Rightmost);
        let slices: Vec<_> = lines.iter().map(String::as_bytes).collect();
        let addr = client_addr.of(peer, &headers(source.header(), &slices));
        let addrs: Vec<_> = entries.iter().map(|entry| entry.0.to_canonical()).collect();
        prop_assert_eq!(addr, model(&client_addr, peer.to_canonical(), &addrs));
    }
}

fn written(addr: IpAddr, port: Option<u16>, source: Source) -> String {
    let node = match (addr, port) {
        (addr, Some(port)) => std::net::SocketAddr::new(addr, port).to_string(),
        (IpAddr::V6(addr), None) => format!("[{addr}]"),
        (addr, None) => addr.to_string(),
    };
    match source {
        Source::XForwardedFor => node,
        Source::Forwarded => format!("proto=http;for=\"{node}\";by=_a"),
    }
}
