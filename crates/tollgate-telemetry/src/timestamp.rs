//! An instant as RFC 3339 writes it, in UTC with milliseconds: `2026-05-23T09:07:05.042Z`.
//!
//! Written by hand because it is a page of arithmetic against a date library.

const DAY_SECONDS: u64 = 86_400;

/// The last instant with a year of four digits, which is all RFC 3339 has.
const MICROS_MAX: u64 = 253_402_300_799_999_999;

/// Appends the instant `micros` after the Unix epoch.
pub(crate) fn push(out: &mut Vec<u8>, micros: u64) {
    let micros = micros.min(MICROS_MAX);
    let seconds = micros / 1_000_000;
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    push_digits(out, year, 4);
    for (separator, number) in [
        (b'-', month),
        (b'-', day),
        (b'T', second / 3_600),
        (b':', second / 60 % 60),
        (b':', second % 60),
    ] {
        out.push(separator);
        push_digits(out, number, 2);
    }
    out.push(b'.');
    push_digits(out, micros / 1_000 % 1_000, 3);
    out.push(b'Z');
}

fn push_digits(out: &mut Vec<u8>, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        out.push(b'0' + (number / 10_u64.pow(place) % 10) as u8);
    }
}

/// Year, month and day of the day this many days after 1970-01-01.
///
/// Years are counted from March: the leap day is then the last of its year, and the months
/// before it follow one another in a fixed rhythm of 153 days for five.
const fn date(days: u64) -> (u64, u64, u64) {
    const ERA_YEARS: u64 = 400;
    const ERA_DAYS: u64 = 146_097;
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;

    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    // Leap days so far: one in 4 years, not in 100; the era's last day would else make year 400.
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day + 2) / 153;
    let day = day - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era * ERA_YEARS + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(micros: u64, expected: &str) {
        let mut out = Vec::new();
        push(&mut out, micros);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn known_instants_read_as_they_should() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000_000, "2000-02-29T00:00:00.000Z");
        check(1_234_567_890_123_456, "2009-02-13T23:31:30.123Z");
        check(1_709_164_800_000_000, "2024-02-29T00:00:00.000Z");
        check(4_107_542_400_000_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn beyond_the_year_9999_time_stands_still() {
        check(MICROS_MAX, "9999-12-31T23:59:59.999Z");
        check(u64::MAX, "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_the_calendar_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..=MICROS_MAX / 1_000_000 / DAY_SECONDS {
            assert_eq!(date(days), (year, month, day));
            day += 1;
            if day > month_days(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    fn month_days(year: u64, month: u64) -> u64 {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}
