//! Waits in whole seconds, as HTTP counts them: always rounded up, so that whoever obeys is admitted.

use std::time::Duration;

use tollgate_core::{Decision, Wait};

/// `duration` in seconds, rounded up.
pub(crate) const fn ceil(duration: Duration) -> u64 {
    duration.as_secs().saturating_add((duration.subsec_nanos() > 0) as u64)
}

/// What `Retry-After` says: at least 1, because a client that reads 0 comes back at once.
/// Nothing when no wait would help.
pub(crate) const fn until_retry(decision: &Decision) -> Option<u64> {
    match decision.retry_after {
        Wait::Never => None,
        Wait::For(wait) => match ceil(wait) {
            0 => Some(1),
            seconds => Some(seconds),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_counts_in_full() {
        assert_eq!(ceil(Duration::ZERO), 0);
        assert_eq!(ceil(Duration::from_nanos(1)), 1);
        assert_eq!(ceil(Duration::from_secs(1)), 1);
        assert_eq!(ceil(Duration::from_micros(1_000_001)), 2);
        assert_eq!(ceil(Duration::MAX), u64::MAX);
    }
}
