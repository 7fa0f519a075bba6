//! How many per how long, as people write it: `10/s`, `5/30s`, `1000/day`.

use std::fmt;

/// `count` per `times` × `unit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// Of how many units the period consists; at least 1.
    pub times: u32,
    /// The unit of the period.
    pub unit: Unit,
}

/// The units a period is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
    /// Seven days; a fixed window of it begins on Monday, UTC.
    Week,
    /// Thirty days; a fixed window of it is the calendar month, UTC.
    Month,
    /// 365 days; a fixed window of it is the calendar year, UTC.
    Year,
}

impl Unit {
    /// All units, shortest first.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// The unit's length; months and years by their fixed lengths.
    pub const fn micros(self) -> u64 {
        self.seconds() * 1_000_000
    }

    /// The unit's length in seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => 30 * 86_400,
            Self::Year => 365 * 86_400,
        }
    }

    /// The unit as it is written in a rate.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

impl Rate {
    /// `count` per one `unit`.
    pub const fn per(count: u64, unit: Unit) -> Self {
        Self { count, times: 1, unit }
    }

    /// The period's length.
    pub const fn period_micros(self) -> u64 {
        self.unit.micros() * self.times as u64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => write!(f, "{}/{}", self.count, self.unit.as_str()),
            times => write!(f, "{}/{times}{}", self.count, self.unit.as_str()),
        }
    }
}
