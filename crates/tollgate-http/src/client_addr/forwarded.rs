//! One element of `Forwarded` (RFC 7239): `for="[2001:db8::1]:4711";proto=https`.

use std::net::IpAddr;

use super::{entry, list::first_unquoted};

/// The address after `for=`; nothing if it is missing, hidden, given twice or malformed.
pub(super) fn address(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = Some(element);
    while let Some(text) = rest {
        let (pair, after) = match first_unquoted(text, b';') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        rest = after;
        let at = pair.iter().position(|&byte| byte == b'=')?;
        if pair[..at].trim_ascii().eq_ignore_ascii_case(b"for")
            && found.replace(&pair[at + 1..]).is_some()
        {
            return None;
        }
    }
    entry::address(unquoted(found?.trim_ascii())?)
}

/// The text between quotes, or the text itself without any. An address has nothing to escape,
/// so an escape inside makes it malformed, and nothing needs to be copied.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inside @ .., b'"'] => (!inside.contains(&b'"')).then_some(inside),
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(element: &str, expected: Option<&str>) {
        assert_eq!(address(element.as_bytes()).map(|addr| addr.to_string()).as_deref(), expected);
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        check("for=192.0.2.43", Some("192.0.2.43"));
        check(r#"For="[2001:db8:cafe::17]:4711""#, Some("2001:db8:cafe::17"));
        check("for=192.0.2.60;proto=http;by=203.0.113.43", Some("192.0.2.60"));
        check(r#"for="192.0.2.43:47011""#, Some("192.0.2.43"));
        check(r#"proto="a;for=1.1.1.1";for=192.0.2.1"#, Some("192.0.2.1"));
        check(r#"by="\";for=1.1.1.1;\"" ; FOR=192.0.2.1"#, Some("192.0.2.1"));
        check(r#"for="[::ffff:192.0.2.1]""#, Some("192.0.2.1"));
    }

    #[test]
    fn hidden_missing_and_malformed_addresses_are_none() {
        for element in [
            "for=unknown",
            r#"for="_gazonk""#,
            "for=_SEVKISEK",
            "proto=https",
            "",
            ";",
            "for",
            "for=",
            r#"for=""#,
            r#"for="""#,
            r#"for="1.1.1.1"#,
            "for=1.1.1.1;for=2.2.2.2",
            "for=1.1.1.1;",
            "1.1.1.1",
            r#"for="1.1.1.\1""#,
            r#"for="1.1.1.1"x"#,
            r#"for="1.1.1.1""2.2.2.2""#,
        ] {
            check(element, None);
        }
    }
}
