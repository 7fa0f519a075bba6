//! How long something really took.
//!
//! The one place of the testkit that reads the machine's clock. Tests of limits move a manual
//! clock instead; this is for waiting on other processes and for measuring.

use std::time::{Duration, Instant};

/// Runs from the moment it is made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts counting now.
    #[expect(clippy::disallowed_methods, reason = "measures real time; decides nothing")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
