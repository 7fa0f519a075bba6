//! Clocks in a test's hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tollgate_core::{Clock, Time};

/// A clock in the test's hand. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicU64::new(time.as_micros())))
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_micros()).unwrap_or(0), Ordering::SeqCst);
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, time: Time) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Monday 16 November 2026, at midnight: on the edge of every window but the month's and the
    /// year's.
    fn default() -> Self {
        Self::at(Time::from_secs(1_794_787_200))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// The time of tokio, which a test pauses and which then jumps from timer to timer.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// Shows the same time as a new [`ManualClock`], and goes on from there.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Time {
        ManualClock::default().now().after(self.0.elapsed())
    }
}
