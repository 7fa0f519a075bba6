//! The machine's clock, and the clock of a store elsewhere.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};
use tollgate_core::{Clock, Time};

use crate::Store;

/// The wall clock as it was at the start, carried on by the monotonic one.
///
/// So a correction of the wall clock neither mints tokens nor takes them; windows of the calendar
/// follow it with the next start of the program. Reading costs one call without a switch into
/// the kernel.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    /// What to add to the monotonic clock.
    offset_micros: u64,
}

impl SystemClock {
    /// Reads both clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes in")]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_micros = u64::try_from(wall.as_micros()).unwrap_or(0);
        Self { offset_micros: wall_micros.saturating_sub(monotonic_micros()) }
    }
}

/// Without the checks of `Instant`, which cost as much as the clock itself.
fn monotonic_micros() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Since the machine was started, so never negative.
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1_000
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time::from_micros(self.offset_micros + monotonic_micros())
    }
}

/// The time of a store, as near as this process knows it: what decides in the store's place should
/// count the same windows as the store, and as every other node.
#[derive(Debug)]
pub struct StoreClock<S>(pub Arc<S>);

impl<S: Store> Clock for StoreClock<S> {
    fn now(&self) -> Time {
        self.0.now()
    }
}
