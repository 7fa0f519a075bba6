//! Time that only goes forward, made from a clock that may not.
//!
//! Threads read a clock and then queue for a lock, machines are corrected, virtual machines
//! move. A step back counts as no time: nothing flows in, and nothing is taken away. A small step
//! is waited out, so that a clock that trembles cannot mint time; after a large one time goes on
//! at once from where it was, so that nobody is blocked for as long as the clock went back.

use crate::Time;

/// Beyond this a step back is a correction of the clock and not a race between its readers.
const STEP_MICROS: u64 = 1_000_000;

/// The latest instant seen, and how far the clock has been set back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    latest: u64,
    set_back: u64,
}

impl Timeline {
    /// No time seen yet.
    pub const fn new() -> Self {
        Self { latest: 0, set_back: 0 }
    }

    /// What the clock's `now` means: never earlier than what it was before.
    pub fn at(&mut self, now: Time) -> Time {
        let mut time = now.as_micros().saturating_add(self.set_back);
        if time.saturating_add(STEP_MICROS) < self.latest {
            self.set_back += self.latest - time;
            time = self.latest;
        }
        self.latest = self.latest.max(time);
        Time::from_micros(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(readings: &[u64], expected: &[u64]) {
        let mut timeline = Timeline::default();
        let seen: Vec<_> =
            readings.iter().map(|now| timeline.at(Time::from_micros(*now)).as_micros()).collect();
        assert_eq!(seen, expected);
    }

    // part of: B5
    #[test]
    fn a_clock_that_trembles_mints_no_time() {
        check(&[100, 90, 100, 95, 101], &[100, 100, 100, 100, 101]);
    }

    // part of: B5
    #[test]
    fn after_a_correction_time_goes_on_from_where_it_was() {
        check(&[9_000_000, 1_000_000, 1_000_007], &[9_000_000, 9_000_000, 9_000_007]);
    }
}
