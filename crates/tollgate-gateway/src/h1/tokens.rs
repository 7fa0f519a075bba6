//! Comma-separated lists in header values.

/// The members of a list, without the space around them; empty ones do not count.
pub(crate) fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Whether a list has this member, in any case.
pub(crate) fn has_token(value: &[u8], token: &[u8]) -> bool {
    tokens(value).any(|found| found.eq_ignore_ascii_case(token))
}

/// What the `Connection` lines of a message say.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    close: bool,
    keep_alive: bool,
    /// Whether fields are named that end here, other than those that always do.
    pub(crate) names_fields: bool,
}

impl Connection {
    /// Reads one more line.
    pub(crate) fn read(&mut self, value: &[u8]) {
        for token in tokens(value) {
            let is = |text: &str| token.eq_ignore_ascii_case(text.as_bytes());
            if is("close") {
                self.close = true;
            } else if is("keep-alive") {
                self.keep_alive = true;
            } else if !is("te") && !is("upgrade") {
                self.names_fields = true;
            }
        }
    }

    /// Whether the connection stays; HTTP/1.0 closes unless told otherwise.
    pub(crate) fn keeps(&self, is_old: bool) -> bool {
        !self.close && (self.keep_alive || !is_old)
    }
}

/// Whether all of it may stand in a name or a method (RFC 9110, 5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// Whether this byte may.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let is_mark = matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        table[byte as usize] = is_mark || byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_commas_and_trimmed() {
        let found: Vec<_> = tokens(b" close ,, Keep-Alive,").collect();
        assert_eq!(found, [&b"close"[..], b"Keep-Alive"]);
        assert!(has_token(b"a, CLOSE", b"close"));
        assert!(!has_token(b"closed", b"close"));
        assert!(!has_token(b"", b"close"));
    }

    #[test]
    fn a_token_has_no_spaces_controls_or_separators() {
        assert!(is_token(b"x-a_b.c!9"));
        for text in ["", "a b", "a:", "a\t", "\u{e4}", "a(", "a\"", "a\0", "\x7f"] {
            assert!(!is_token(text.as_bytes()), "{text:?}");
        }
    }
}
