//! Reading single values: texts, choices, numbers, durations, sizes.

use std::{fmt::Display, ops::RangeInclusive, path::PathBuf, time::Duration};

use super::{fields::At, reader::Reader};
use crate::{
    duration::{duration_text, parse_duration},
    mistake::shown,
    number::parse_number,
    size::{parse_size, size_text},
    suggest::nearest,
    yaml::Value,
};

impl Reader<'_> {
    /// A single value, as it is written.
    pub(crate) fn text<'n>(&mut self, at: &At<'n>, expected: &str) -> Option<&'n str> {
        match &at.node.value {
            Value::Scalar(text) => Some(text),
            _ => {
                self.wrong_shape(at, expected);
                None
            }
        }
    }

    /// A value that a parser with errors for people reads.
    pub(crate) fn parsed<T, E: Display>(
        &mut self,
        at: &At<'_>,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text(at, expected)?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.mistake(at, error.to_string());
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, at: &At<'_>, choices: &[(&str, T)]) -> Option<T> {
        let names = choices.iter().map(|(name, _)| *name);
        let expected = one_of(names.clone());
        let text = self.text(at, &expected)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let hint = nearest(text, names)
                .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            self.mistake(at, format!("found {}, expected {expected}{hint}", shown(text)));
        }
        found.map(|(_, value)| *value)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, at: &At<'_>) -> Option<bool> {
        self.choice(at, &[("true", true), ("false", false)])
    }

    /// A whole number.
    pub(crate) fn number(&mut self, at: &At<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let text = self.text(at, &expected)?;
        let number = parse_number(text).filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong_shape(at, &expected);
        }
        number
    }

    /// A whole number of things that are there in memory.
    pub(crate) fn whole(&mut self, at: &At<'_>, range: RangeInclusive<u32>) -> Option<usize> {
        let number = self.number(at, u64::from(*range.start())..=u64::from(*range.end()))?;
        usize::try_from(number).ok()
    }

    /// A part of a whole, in millionths: finer parts are not told apart, so that no setting
    /// depends on how a machine rounds.
    pub(crate) fn millionths(&mut self, at: &At<'_>) -> Option<u32> {
        let expected = "a number from 0.000001 to 1, like 0.5";
        let text = self.text(at, expected)?;
        let parts = millionths(text).filter(|parts| (1..=MILLION).contains(parts));
        if parts.is_none() {
            self.wrong_shape(at, expected);
        }
        parts
    }

    /// A duration.
    pub(crate) fn duration(
        &mut self,
        at: &At<'_>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let duration = self.parsed(at, "a duration like 2s", parse_duration)?;
        if !range.contains(&duration) {
            let (min, max) = (duration_text(*range.start()), duration_text(*range.end()));
            let found = duration_text(duration);
            self.mistake(at, format!("found {found}, expected a duration from {min} to {max}"));
            return None;
        }
        Some(duration)
    }

    /// A number of bytes.
    pub(crate) fn size(&mut self, at: &At<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let size = self.parsed(at, "a size like 64MiB", parse_size)?;
        if !range.contains(&size) {
            let (min, max) = (size_text(*range.start()), size_text(*range.end()));
            let found = size_text(size);
            self.mistake(at, format!("found {found}, expected a size from {min} to {max}"));
            return None;
        }
        Some(size)
    }

    /// The name of a file; nothing is opened here.
    pub(crate) fn file(&mut self, at: &At<'_>) -> Option<PathBuf> {
        let text = self.text(at, "the name of a file")?;
        if text.is_empty() || text.contains('\0') {
            self.wrong_shape(at, "the name of a file");
            return None;
        }
        Some(PathBuf::from(text))
    }
}

const MILLION: u32 = 1_000_000;

/// `0.25` as 250,000; digits beyond the sixth are dropped.
fn millionths(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || text.len() == text.matches('.').count() {
        return None;
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u32 = format!("{fraction:0<6.6}").parse().ok()?;
    whole.checked_mul(MILLION)?.checked_add(fraction)
}

/// `a, b or c`.
pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_digit_by_digit() {
        for (text, expected) in [
            ("0.5", Some(500_000)),
            (".25", Some(250_000)),
            ("1.", Some(MILLION)),
            ("1", Some(MILLION)),
            ("0.01", Some(10_000)),
            ("0.0000019", Some(1)),
            ("7.5", Some(7_500_000)),
            ("4294.967296", None),
            ("", None),
            (".", None),
            ("1e-3", None),
            ("-0.5", None),
            ("0.5.5", None),
            ("0,5", None),
        ] {
            assert_eq!(millionths(text), expected, "{text:?}");
        }
    }
}
