//! What is counted for one policy where it is asked.

use super::Counter;

/// By which labels a policy's counters are found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PolicyLabels {
    pub(super) tier: Box<str>,
    pub(super) endpoint: Box<str>,
}

/// The counters of one policy at one endpoint.
#[derive(Debug, Default)]
pub struct PolicyMetrics {
    /// Requests it was asked about.
    pub requests: Counter,
    /// Of those, the refused.
    pub limited: Counter,
    /// Of those, the ones that would have been refused but for the dry run.
    pub dry_run_limited: Counter,
}
