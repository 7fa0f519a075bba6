//! Reading and writing a size in bytes: `64MiB`, `512KiB`, or a plain number.
//!
//! `MB` is refused rather than guessed: half of its users mean 10^6 and half 2^20.

use crate::{
    mistake::shown,
    number::{Head, head},
};

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a number and a unit.
    #[error("{} is not a size: write a whole number of bytes, or of KiB, MiB, GiB or TiB, like 64MiB", shown(.0))]
    Shape(String),
    /// More than 64 bits of bytes.
    #[error("{} is more bytes than can be counted", shown(.0))]
    TooLarge(String),
}

/// Reads a number of bytes.
///
/// ```
/// # use tollgate_rules::parse_size;
/// assert_eq!(parse_size("64MiB"), Ok(64 << 20));
/// assert_eq!(parse_size("4096"), Ok(4096));
/// ```
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let (number, unit) = match head(text) {
        Head::Number(number, unit) => (number, unit),
        Head::TooLarge => return Err(SizeError::TooLarge(text.to_owned())),
        Head::NoNumber => return Err(SizeError::Shape(text.to_owned())),
    };
    let Some((_, bits)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(SizeError::Shape(text.to_owned()));
    };
    number.checked_mul(1 << bits).ok_or_else(|| SizeError::TooLarge(text.to_owned()))
}

/// Writes a number of bytes in the largest unit that holds it exactly.
pub(crate) fn size_text(bytes: u64) -> String {
    let (unit, bits) = UNITS
        .into_iter()
        .find(|(_, bits)| bytes >= 1 << bits && bytes.trailing_zeros() >= *bits)
        .unwrap_or(("", 0));
    format!("{}{unit}", bytes >> bits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = parse_size(text).map_or_else(|error| error.to_string(), size_text);
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_unit_is_read() {
        check("64MiB", "64MiB");
        check("1 GiB", "1GiB");
        check("512KiB", "512KiB");
        check("1048576", "1MiB");
        check("1000", "1000");
        check("0", "0");
        check("2TiB", "2TiB");
    }

    #[test]
    fn what_is_no_size_is_told_what_would_be() {
        let shape =
            "is not a size: write a whole number of bytes, or of KiB, MiB, GiB or TiB, like 64MiB";
        for text in ["", "64MB", "64M", "-1", "1.5GiB", "big"] {
            check(text, &format!("{text:?} {shape}"));
        }
        check("16777216TiB", "\"16777216TiB\" is more bytes than can be counted");
    }

    proptest! {
        #[test]
        fn a_size_reads_back_as_it_was_written(number: u32, bits in 0_u32..32) {
            let bytes = u64::from(number) << bits;
            prop_assert_eq!(parse_size(&size_text(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[0-9_]{0,22} ?[KMGTiB]{0,3}") {
            let _ = parse_size(&text).map_err(|error| error.to_string());
        }
    }
}
