//! Reading a rate as people write it: `10/s`, `5/30s`, `1000/day`.
//!
//! Only the units of the documentation are taken. `1/m` could be a minute or a month, so a
//! unit from elsewhere gets the name of the one that was probably meant instead of a guess.

use tollgate_core::{Rate, Unit};

use crate::{
    mistake::shown,
    number::{Head, head},
};

/// Why a text is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// Not `N/unit`.
    #[error("{} is not a rate: write how many per how long, like 10/s, 20/min, 5/30s or 1000/day", shown(.0))]
    Shape(String),
    /// A unit that is not ours.
    #[error("{} is not a unit of time: {}write one of s, min, h, day, week, month, year", shown(.found), hint(.meant))]
    Unit {
        /// What stands there.
        found: String,
        /// What was probably meant.
        meant: Option<Unit>,
    },
    /// More digits than any limit counts.
    #[error("{} has too large a number", shown(.0))]
    TooLarge(String),
    /// `10/0s`.
    #[error("{} has a period of no length: write at least 1", shown(.0))]
    NoPeriod(String),
}

/// Reads `N/unit` or `N/K unit`.
///
/// ```
/// # use {tollgate_core::{Rate, Unit}, tollgate_rules::parse_rate};
/// assert_eq!(parse_rate("10/s"), Ok(Rate::per(10, Unit::Second)));
/// assert_eq!(parse_rate("5/30s"), Ok(Rate { count: 5, times: 30, unit: Unit::Second }));
/// // A lone `m` could be a minute or a month.
/// assert!(parse_rate("20/m").is_err());
/// ```
pub fn parse_rate(text: &str) -> Result<Rate, RateError> {
    let shape = || RateError::Shape(text.to_owned());
    let too_large = || RateError::TooLarge(text.to_owned());
    let (count, rest) = match head(text) {
        Head::Number(count, rest) => (count, rest),
        Head::TooLarge => return Err(too_large()),
        Head::NoNumber => return Err(shape()),
    };
    let period = rest.strip_prefix('/').ok_or_else(shape)?.trim();
    let (times, unit) = match head(period) {
        Head::Number(times, unit) => (u32::try_from(times).map_err(|_| too_large())?, unit),
        Head::TooLarge => return Err(too_large()),
        Head::NoNumber => (1, period),
    };
    if times == 0 {
        return Err(RateError::NoPeriod(text.to_owned()));
    }
    match Unit::ALL.into_iter().find(|known| known.as_str() == unit) {
        Some(unit) => Ok(Rate { count, times, unit }),
        None if unit.is_empty() => Err(shape()),
        None => Err(RateError::Unit { found: unit.to_owned(), meant: meant_unit(unit) }),
    }
}

fn hint(unit: &Option<Unit>) -> String {
    unit.map_or_else(String::new, |unit| format!("did you mean {}? ", unit.as_str()))
}

fn meant_unit(found: &str) -> Option<Unit> {
    let found = found.to_ascii_lowercase();
    let singular = found.strip_suffix('s').filter(|word| !word.is_empty()).unwrap_or(&found);
    Some(match singular {
        "s" | "sec" | "second" => Unit::Second,
        "min" | "minute" => Unit::Minute,
        "h" | "hr" | "hour" => Unit::Hour,
        "d" | "day" => Unit::Day,
        "w" | "wk" | "week" => Unit::Week,
        "mo" | "mon" | "month" => Unit::Month,
        "y" | "yr" | "year" => Unit::Year,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown =
            parse_rate(text).map_or_else(|error| error.to_string(), |rate| rate.to_string());
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_unit_and_every_spacing_is_read() {
        for unit in Unit::ALL {
            check(&format!("3/{}", unit.as_str()), &format!("3/{}", unit.as_str()));
        }
        check("5/30s", "5/30s");
        check("5/2 h", "5/2h");
        check(" 5 / 2 h ", "5/2h");
        check("1_000/day", "1000/day");
        check("0/s", "0/s");
        check("10/1s", "10/s");
    }

    #[test]
    fn what_is_no_rate_is_told_what_would_be() {
        let shape =
            "is not a rate: write how many per how long, like 10/s, 20/min, 5/30s or 1000/day";
        for text in ["", "10", "10 s", "/s", "10/", "10/5", "-1/s", "1.5/s", "ten/s"] {
            check(text, &format!("{text:?} {shape}"));
        }
        let units = "write one of s, min, h, day, week, month, year";
        check("10/sec", &format!("\"sec\" is not a unit of time: did you mean s? {units}"));
        check("10/2 Hours", &format!("\"Hours\" is not a unit of time: did you mean h? {units}"));
        check("10/m", &format!("\"m\" is not a unit of time: {units}"));
        check("10/s/s", &format!("\"s/s\" is not a unit of time: {units}"));
        check("10/0s", "\"10/0s\" has a period of no length: write at least 1");
        check("99999999999999999999/s", "\"99999999999999999999/s\" has too large a number");
        check("1/4294967296s", "\"1/4294967296s\" has too large a number");
    }

    proptest! {
        #[test]
        fn a_rate_reads_back_as_it_was_written(
            count: u64,
            times in 1..=u32::MAX,
            unit in proptest::sample::select(&Unit::ALL[..]),
        ) {
            let rate = Rate { count, times, unit };
            prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[0-9_]{0,22}/?[0-9]{0,12} ?[a-z]{0,6}") {
            let _ = parse_rate(&text).map_err(|error| error.to_string());
        }
    }
}
