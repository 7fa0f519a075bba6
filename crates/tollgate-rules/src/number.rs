//! The number at the head of a rate, a duration or a size.

/// What a text begins with, and what follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head<'a> {
    /// A whole number, and the rest without the spaces between.
    Number(u64, &'a str),
    /// Digits, but more than 64 bits hold.
    TooLarge,
    /// Something else.
    NoNumber,
}

/// Splits a text into its leading whole number and the rest; `10_000` reads as `10000`.
pub(crate) fn head(text: &str) -> Head<'_> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || digits.ends_with('_') {
        return Head::NoNumber;
    }
    let value = digits.bytes().filter(u8::is_ascii_digit).try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    value.map_or(Head::TooLarge, |value| Head::Number(value, rest.trim_start()))
}

/// Reads a text that is a whole number and nothing else.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    match head(text) {
        Head::Number(value, "") => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_its_digits_end() {
        assert_eq!(head("10/s"), Head::Number(10, "/s"));
        assert_eq!(head(" 10_000  MiB "), Head::Number(10_000, "MiB"));
        assert_eq!(head("7"), Head::Number(7, ""));
        assert_eq!(head("007"), Head::Number(7, ""));
    }

    #[test]
    fn what_is_no_number_is_told_from_what_is_too_large() {
        for text in ["", "-1", "+1", "_1", "1_", "x", " ", "１"] {
            assert_eq!(head(text), Head::NoNumber, "{text:?}");
        }
        assert_eq!(head("18446744073709551615"), Head::Number(u64::MAX, ""));
        assert_eq!(head("18446744073709551616s"), Head::TooLarge);
    }
}
