//! One entry of `X-Forwarded-For`: an address, with or without a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest address is 45 characters; with brackets and a port it is still below this.
const LENGTH_MAX: usize = 64;

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`, in its
/// canonical form; nothing if it is anything else.
pub(super) fn address(entry: &[u8]) -> Option<IpAddr> {
    if entry.len() > LENGTH_MAX {
        return None;
    }
    let text = std::str::from_utf8(entry).ok()?;
    let addr = match text.strip_prefix('[') {
        Some(bracketed) => in_brackets(bracketed)?,
        None => text.parse().ok().or_else(|| with_port(text))?,
    };
    Some(addr.to_canonical())
}

fn in_brackets(text: &str) -> Option<IpAddr> {
    let (addr, after) = text.split_once(']')?;
    let fine = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
    if fine { addr.parse::<Ipv6Addr>().ok().map(IpAddr::V6) } else { None }
}

fn with_port(text: &str) -> Option<IpAddr> {
    let (addr, port) = text.split_once(':')?;
    if is_port(port) { addr.parse::<Ipv4Addr>().ok().map(IpAddr::V4) } else { None }
}

/// A number, or a name for it that hides it (RFC 7239, 6.2).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => {
            let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && name.bytes().all(fine)
        }
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, expected: Option<&str>) {
        assert_eq!(address(entry.as_bytes()).map(|addr| addr.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_port_is_left_out() {
        check("192.0.2.1", Some("192.0.2.1"));
        check("192.0.2.1:65535", Some("192.0.2.1"));
        check("192.0.2.1:_hidden", Some("192.0.2.1"));
        check("2001:db8::1", Some("2001:db8::1"));
        check("[2001:db8::1]", Some("2001:db8::1"));
        check("[2001:db8::1]:4711", Some("2001:db8::1"));
    }

    #[test]
    fn a_mapped_address_is_its_ipv4_address() {
        check("::ffff:192.0.2.1", Some("192.0.2.1"));
        check("[::ffff:c000:201]:80", Some("192.0.2.1"));
    }

    #[test]
    fn anything_else_is_no_address() {
        for entry in [
            "",
            "unknown",
            "_hidden",
            "localhost",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "01.2.3.4",
            "1.2.3.4:",
            "1.2.3.4:65536",
            "1.2.3.4:+80",
            "1.2.3.4:80:80",
            "1.2.3.4:_",
            "1.2.3.4 x",
            "[1.2.3.4]",
            "[::1",
            "::1]",
            "[::1]80",
            "[::1]:",
            "[::1]]",
            "fe80::1%eth0",
            "[]",
            "\"1.2.3.4\"",
            "1.2.3.4/32",
            "١.٢.٣.٤",
        ] {
            check(entry, None);
        }
        check(&"1".repeat(10_000), None);
        assert_eq!(address(b"1.2.3.4\xff"), None);
    }
}
