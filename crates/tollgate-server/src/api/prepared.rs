//! What can be made ready for each policy before anybody asks: its counters, and the parts of
//! its answers that never change.

use std::sync::Arc;

use tollgate_core::Algorithm;
use tollgate_engine::{Outcome, Rules};
use tollgate_rules::Policy;
use tollgate_telemetry::{Metrics, PolicyMetrics};

/// The rules in force, with something ready for each policy of theirs.
pub(crate) struct Prepared {
    pub(crate) rules: Arc<Rules>,
    policies: Box<[PreparedPolicy]>,
}

/// What is ready for one policy.
pub(crate) struct PreparedPolicy {
    /// Its place in the rules.
    pub(crate) index: usize,
    /// Its id as a JSON string.
    pub(crate) id: Box<[u8]>,
    pub(crate) algorithms: Box<[Algorithm]>,
    pub(crate) enforce: bool,
    pub(crate) check: Arc<PolicyMetrics>,
    pub(crate) batch: Arc<PolicyMetrics>,
    pub(crate) acquire: Arc<PolicyMetrics>,
}

impl Prepared {
    pub(crate) fn new(rules: Arc<Rules>, metrics: &Metrics) -> Self {
        let policies = rules.policies().iter().map(|policy| PreparedPolicy::new(policy, metrics));
        Self { policies: policies.collect(), rules }
    }

    pub(crate) fn policy(&self, id: &str) -> Option<&PreparedPolicy> {
        self.rules.policy(id).map(|policy| &self.policies[policy.index])
    }
}

impl PreparedPolicy {
    fn new(policy: &Policy, metrics: &Metrics) -> Self {
        Self {
            index: policy.index,
            id: serde_json::Value::from(&*policy.id).to_string().into_bytes().into(),
            algorithms: policy.limits.iter().map(|limit| limit.algorithm()).collect(),
            enforce: policy.enforce,
            check: metrics.policy(&policy.id, "/v1/check"),
            batch: metrics.policy(&policy.id, "/v1/check/batch"),
            acquire: metrics.policy(&policy.id, "/v1/acquire"),
        }
    }
}

/// Counts a decision. A look is not one: it neither passes nor stops anybody.
pub(crate) fn count(metrics: &PolicyMetrics, cost: u64, outcome: &Outcome) {
    if cost == 0 {
        return;
    }
    metrics.requests.inc();
    if !outcome.allowed {
        metrics.limited.inc();
    }
    if !outcome.dry_run.is_empty() {
        metrics.dry_run_limited.inc();
    }
}
