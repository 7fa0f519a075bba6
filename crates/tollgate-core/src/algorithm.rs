//! The names of the algorithms, as configuration, API and metrics show them.

use std::fmt;

/// How a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Tokens flow in at a rate, up to a burst.
    TokenBucket,
    /// A queue of fixed size that drains at a rate.
    LeakyBucket,
    /// A counter that starts again with each window of the clock.
    FixedWindow,
    /// The times of all that was accepted; exact.
    SlidingLog,
    /// Two counters and the share of the previous one that still counts.
    SlidingCounter,
    /// Sub-windows of which the partly covered one counts in full; never one too many.
    SlidingWindow,
    /// How many may be in flight at once.
    Concurrency,
}

impl Algorithm {
    /// All algorithms, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::FixedWindow,
        Self::SlidingLog,
        Self::SlidingCounter,
        Self::SlidingWindow,
        Self::Concurrency,
    ];

    /// The name in configuration and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::LeakyBucket => "leaky_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingLog => "sliding_log",
            Self::SlidingCounter => "sliding_counter",
            Self::SlidingWindow => "sliding_window",
            Self::Concurrency => "concurrency",
        }
    }

    /// The algorithm of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
