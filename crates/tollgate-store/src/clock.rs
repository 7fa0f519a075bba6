//! The machine's clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tollgate_core::{Clock, Time};

/// The wall clock as it was at the start, carried on by the monotonic one.
///
/// So a correction of the wall clock neither mints tokens nor takes them; windows of the calendar
/// follow it with the next start of the program. Reading costs one call without a switch into
/// the kernel.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
    started_micros: u64,
}

impl SystemClock {
    /// Reads both clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes in")]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_micros = u64::try_from(wall.as_micros()).unwrap_or(0);
        Self { started: Instant::now(), started_micros }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let elapsed = self.started.elapsed();
        let micros = elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros());
        Time::from_micros(self.started_micros + micros)
    }
}
