//! Where the windows of the clock begin and end.
//!
//! Seconds, minutes, hours and days are multiples since the epoch; weeks begin on Monday; months
//! and years are the calendar's, so their lengths differ. All in UTC.

use crate::{Rate, Time, Unit};

const DAY_MICROS: u64 = Unit::Day.micros();

/// The epoch was a Thursday; the first Monday came four days later.
const FIRST_MONDAY: u64 = 4 * DAY_MICROS;

/// A way to cut time into windows, numbered from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Windows of equal length, one of which starts at `offset`.
    Every {
        /// The length in microseconds.
        micros: u64,
        /// Where the first whole window begins; less than `micros`.
        offset: u64,
    },
    /// Windows of this many calendar months, counted from January 1970.
    Months(u32),
}

impl Window {
    pub(crate) const fn aligned(rate: Rate) -> Self {
        match rate.unit {
            Unit::Month => Self::Months(rate.times),
            Unit::Year => Self::Months(rate.times * 12),
            Unit::Week => {
                let micros = rate.period_micros();
                Self::Every { micros, offset: FIRST_MONDAY % micros }
            }
            _ => Self::Every { micros: rate.period_micros(), offset: 0 },
        }
    }

    /// The number of the window that `now` lies in.
    pub fn index(self, now: Time) -> u64 {
        match self {
            // The piece before `offset` is window 0.
            Self::Every { micros, offset } => match now.as_micros().checked_sub(offset) {
                Some(since) => since / micros + 1,
                None => 0,
            },
            Self::Months(months) => {
                months_since_epoch(now.as_micros() / DAY_MICROS) / u64::from(months)
            }
        }
    }

    /// When the window of this number begins.
    pub fn start(self, index: u64) -> Time {
        Time::from_micros(match self {
            Self::Every { micros, offset } => {
                (index.saturating_mul(micros)).saturating_add(offset).saturating_sub(micros)
            }
            Self::Months(months) => {
                days_before(index.saturating_mul(u64::from(months))).saturating_mul(DAY_MICROS)
            }
        })
    }
}

/// Whole calendar months between January 1970 and this day.
///
/// Days are counted from 1 March of the year 0, because then the leap day ends a year and months
/// follow one another in a fixed rhythm of 153 days in five.
fn months_since_epoch(days: u64) -> u64 {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + month_from_march + 2 - 1970 * 12
}

/// Days between the epoch and the first of this month.
fn days_before(months: u64) -> u64 {
    // Far beyond any date that a window is asked for, and small enough to multiply.
    let from_march = months.min(12 * 500_000) + 1970 * 12 - 2;
    let (year, month) = (from_march / 12, from_march % 12);
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rate: Rate, now: u64, start: u64, end: u64) {
        let window = Window::aligned(rate);
        let index = window.index(Time::from_secs(now));
        assert_eq!(window.start(index), Time::from_secs(start));
        assert_eq!(window.start(index + 1), Time::from_secs(end));
    }

    #[test]
    fn months_and_years_follow_the_calendar() {
        // 29 February 2024, a leap day, and 31 December 2023.
        check(Rate::per(1, Unit::Month), 1_709_164_800, 1_706_745_600, 1_709_251_200);
        check(Rate::per(1, Unit::Year), 1_709_164_800, 1_704_067_200, 1_735_689_600);
        check(Rate::per(1, Unit::Year), 1_704_067_199, 1_672_531_200, 1_704_067_200);
    }

    #[test]
    fn weeks_begin_on_monday() {
        // Thursday 1 January 1970 lies in the week before the first Monday.
        check(Rate::per(1, Unit::Week), 0, 0, 4 * 86_400);
        // Sunday 15 November 2026, 23:59:59; the Monday before it.
        check(Rate::per(1, Unit::Week), 1_794_787_199, 1_794_182_400, 1_794_787_200);
    }

    #[test]
    fn every_day_of_a_millennium_lies_in_the_month_it_is_said_to() {
        let window = Window::Months(1);
        for day in 0..365_250 {
            let now = Time::from_micros(day * DAY_MICROS);
            let index = window.index(now);
            assert!(window.start(index) <= now && now < window.start(index + 1), "day {day}");
        }
    }
}
