//! Reading and writing a duration: `50ms`, `2s`, `15min`, `1h`, `7d`.

use std::time::Duration;

use crate::{
    mistake::shown,
    number::{Head, head},
};

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a number and a unit.
    #[error("{} is not a duration: write a whole number and ms, s, min, h or d, like 50ms, 2s or 15min", shown(.0))]
    Shape(String),
    /// A number without a unit.
    #[error("{number:?} has no unit: write {number}ms, {number}s or {number}min", number = .0)]
    NoUnit(String),
    /// Longer than any use.
    #[error("{} is too long: at most 36500d", shown(.0))]
    TooLong(String),
}

/// Reads a whole number and its unit.
///
/// ```
/// # use {std::time::Duration, tollgate_rules::parse_duration};
/// assert_eq!(parse_duration("50ms"), Ok(Duration::from_millis(50)));
/// // A bare number could be seconds or milliseconds.
/// assert!(parse_duration("50").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let (number, unit) = match head(text) {
        Head::Number(number, unit) => (number, unit),
        Head::TooLarge => return Err(DurationError::TooLong(text.to_owned())),
        Head::NoNumber => return Err(DurationError::Shape(text.to_owned())),
    };
    if unit.is_empty() {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let Some((_, millis)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(DurationError::Shape(text.to_owned()));
    };
    // A hundred years, as long as any rate's period.
    let longest = 36_500 * 86_400_000;
    match number.checked_mul(millis) {
        Some(millis) if millis <= longest => Ok(Duration::from_millis(millis)),
        _ => Err(DurationError::TooLong(text.to_owned())),
    }
}

/// Writes whole milliseconds in the largest unit that holds them exactly.
pub(crate) fn duration_text(duration: Duration) -> String {
    let millis = duration.as_millis();
    let (unit, length) = UNITS
        .into_iter()
        .find(|(_, length)| {
            millis >= u128::from(*length) && millis.is_multiple_of(u128::from(*length))
        })
        .unwrap_or(("s", 1_000));
    format!("{}{unit}", millis / u128::from(length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = parse_duration(text).map_or_else(|error| error.to_string(), duration_text);
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_unit_is_read() {
        check("50ms", "50ms");
        check("2s", "2s");
        check("15 min", "15min");
        check("60min", "1h");
        check("7d", "7d");
        check("0s", "0s");
        check("1500ms", "1500ms");
        check("36500d", "36500d");
    }

    #[test]
    fn what_is_no_duration_is_told_what_would_be() {
        let shape = "is not a duration: write a whole number and ms, s, min, h or d, like 50ms, 2s or 15min";
        for text in ["", "s", "-2s", "1.5s", "2m", "1h30min", "2 weeks"] {
            check(text, &format!("{text:?} {shape}"));
        }
        check("50", "\"50\" has no unit: write 50ms, 50s or 50min");
        check("36501d", "\"36501d\" is too long: at most 36500d");
        check("99999999999999999999s", "\"99999999999999999999s\" is too long: at most 36500d");
    }

    proptest! {
        #[test]
        fn a_duration_reads_back_as_it_was_written(millis in 0..=36_500_u64 * 86_400_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[0-9_]{0,22} ?[a-z]{0,3}") {
            let _ = parse_duration(&text).map_err(|error| error.to_string());
        }
    }
}
