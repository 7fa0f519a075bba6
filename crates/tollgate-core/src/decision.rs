//! What comes back from a limit, and from several at once.

use std::time::Duration;

use crate::Time;

/// How long until a request can pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// After this long; zero is now.
    For(Duration),
    /// However long one waits: the cost is above the capacity.
    Never,
}

impl Wait {
    /// No wait at all.
    pub const ZERO: Self = Self::For(Duration::ZERO);

    pub(crate) const fn micros(micros: u64) -> Self {
        Self::For(Duration::from_micros(micros))
    }

    /// The wait as a duration, unless it is for ever.
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::For(duration) => Some(duration),
            Self::Never => None,
        }
    }
}

/// One limit's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request passes, at once or after `wait`.
    pub allowed: bool,
    /// How much is left: after this request if it passes, as it is if not.
    pub remaining: u64,
    /// When the same request could pass; zero when it just did. For a look (cost 0) it is
    /// asked of a request of cost 1.
    pub retry_after: Wait,
    /// Until the limit is as if nobody had come.
    pub reset_after: Duration,
    /// How long a caller with patience must hold back before going on.
    pub wait: Duration,
}

/// The answer to one request, over all limits that it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request passes.
    pub allowed: bool,
    /// The capacity of the limit that is shown.
    pub limit: u64,
    /// How much that limit has left.
    pub remaining: u64,
    /// How long until the same request passes every limit.
    pub retry_after: Wait,
    /// Until the shown limit is full again.
    pub reset_after: Duration,
    /// How long a caller with patience must hold back before going on.
    pub wait: Duration,
    /// When it was decided, by the store's clock.
    pub at: Time,
    /// Which of the asked limits is shown: the one that refused, else the tightest.
    pub shown: usize,
}

impl Decision {
    /// The answer where there is only one limit.
    pub const fn of_one(limit: u64, verdict: Verdict, at: Time) -> Self {
        let Verdict { allowed, remaining, retry_after, reset_after, wait } = verdict;
        Self { allowed, limit, remaining, retry_after, reset_after, wait, at, shown: 0 }
    }
}

impl Verdict {
    pub(crate) const fn pass(remaining: u64, reset_after: Duration) -> Self {
        let wait = Duration::ZERO;
        Self { allowed: true, remaining, retry_after: Wait::ZERO, reset_after, wait }
    }

    pub(crate) const fn pass_after(wait_micros: u64, reset_after: Duration) -> Self {
        let wait = Duration::from_micros(wait_micros);
        Self { allowed: true, remaining: 0, retry_after: Wait::ZERO, reset_after, wait }
    }

    pub(crate) const fn refuse(remaining: u64, retry_after: Wait, reset_after: Duration) -> Self {
        let wait = Duration::ZERO;
        Self { allowed: false, remaining, retry_after, reset_after, wait }
    }

    pub(crate) const fn never(remaining: u64, reset_after: Duration) -> Self {
        Self::refuse(remaining, Wait::Never, reset_after)
    }
}
