//! A name as a String of RFC 9651, quoted and escaped, for the `RateLimit` fields.
//!
//! Such a String holds printable ASCII only. Other bytes are written `%XX`: the fields are
//! defined with Strings, so the Display String that RFC 9651 has for such text is not allowed.

/// `"name"`, as it stands in a header.
pub(crate) fn string(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_string_cannot_hold_is_escaped() {
        assert_eq!(string("orders"), r#""orders""#);
        assert_eq!(string(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(string("größe\r\n"), r#""gr%C3%B6%C3%9Fe%0D%0A""#);
        assert_eq!(string(""), r#""""#);
    }
}
