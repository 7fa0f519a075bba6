//! How far the store's clock is from ours.
//!
//! A reply says what time it was there somewhere between asking and hearing. The shorter that
//! was, the less it leaves open, so of the recent replies the fastest is believed. Nothing is decided
//! by this: it is for showing times, and to be seen by an operator.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tollgate_core::Time;

/// A quarter of a minute of heartbeats: clocks do not drift far in that time.
const RECENT: usize = 16;

/// The offset as known, read without a lock.
#[derive(Debug, Default)]
pub(crate) struct Offset {
    micros: AtomicI64,
    recent: Mutex<Vec<Sample>>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    took: Duration,
    micros: i64,
}

impl Offset {
    /// The store's clock less ours.
    pub(crate) fn micros(&self) -> i64 {
        self.micros.load(Ordering::Relaxed)
    }

    /// Our time as the store would tell it.
    pub(crate) fn apply(&self, own: Time) -> Time {
        Time::from_micros(own.as_micros().saturating_add_signed(self.micros()))
    }

    /// Notes that it was `there` at the store between `asked` and `heard` on our own clock.
    pub(crate) fn note(&self, asked: Time, there: Time, heard: Time) {
        let took = heard.as_micros().saturating_sub(asked.as_micros());
        let own = asked.as_micros() + took / 2;
        let micros = i128::from(there.as_micros()) - i128::from(own);
        let micros = i64::try_from(micros).unwrap_or_default();
        let mut recent = self.recent.lock();
        if recent.len() == RECENT {
            recent.remove(0);
        }
        recent.push(Sample { took: Duration::from_micros(took), micros });
        if let Some(best) = recent.iter().min_by_key(|sample| sample.took) {
            self.micros.store(best.micros, Ordering::Relaxed);
        }
    }

    /// What was measured says nothing about another server.
    pub(crate) fn forget(&self) {
        self.recent.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(offset: &Offset, asked: u64, there: u64, heard: u64) {
        offset.note(Time::from_micros(asked), Time::from_micros(there), Time::from_micros(heard));
    }

    #[test]
    fn the_fastest_of_the_recent_replies_is_believed() {
        let offset = Offset::default();
        note(&offset, 1_000, 501_000, 3_000);
        assert_eq!(offset.micros(), 499_000);
        note(&offset, 10_000, 510_050, 10_100);
        assert_eq!(offset.micros(), 500_000);
        note(&offset, 20_000, 600_000, 60_000);
        assert_eq!(offset.micros(), 500_000);
        assert_eq!(offset.apply(Time::from_micros(7)), Time::from_micros(500_007));
    }

    #[test]
    fn an_old_measurement_gives_way() {
        let offset = Offset::default();
        note(&offset, 0, 100, 0);
        for _ in 0..RECENT {
            note(&offset, 1_000, 1_010, 1_020);
        }
        assert_eq!(offset.micros(), 0);
        offset.forget();
        note(&offset, 1_000, 2_000, 1_000);
        assert_eq!(offset.micros(), 1_000);
    }
}
