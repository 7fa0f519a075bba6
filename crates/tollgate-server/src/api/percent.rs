//! Text out of a path, where everything unusual is written as `%XX`.

/// Why a segment of a path says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PercentError {
    /// A `%` without two hexadecimal digits.
    Escape,
    /// Bytes that are no text.
    NotUtf8,
}

/// Decodes one segment. A `+` is a plus: only forms write spaces so.
pub(crate) fn decode(segment: &str) -> Result<String, PercentError> {
    let mut out = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next())? << 4 | hex(bytes.next())?,
            plain => plain,
        });
    }
    String::from_utf8(out).map_err(|_| PercentError::NotUtf8)
}

fn hex(digit: Option<u8>) -> Result<u8, PercentError> {
    match digit {
        Some(digit @ b'0'..=b'9') => Ok(digit - b'0'),
        Some(digit @ b'a'..=b'f') => Ok(digit - b'a' + 10),
        Some(digit @ b'A'..=b'F') => Ok(digit - b'A' + 10),
        _ => Err(PercentError::Escape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_what_they_stand_for() {
        assert_eq!(decode("192.168.1.100"), Ok("192.168.1.100".to_owned()));
        assert_eq!(decode("a%2Fb%2fc+d"), Ok("a/b/c+d".to_owned()));
        assert_eq!(decode("%C3%BC%00%25"), Ok("ü\0%".to_owned()));
        assert_eq!(decode(""), Ok(String::new()));
    }

    #[test]
    fn what_is_no_escape_or_no_text_is_refused() {
        for broken in ["%", "%1", "%g0", "a%2", "%%41", "%+1"] {
            assert_eq!(decode(broken), Err(PercentError::Escape), "{broken}");
        }
        assert_eq!(decode("%FF"), Err(PercentError::NotUtf8));
    }
}
