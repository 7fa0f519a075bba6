//! The fields of draft-ietf-httpapi-ratelimit-headers-11: `RateLimit-Policy` and `RateLimit`.
//!
//! `t` is the span in which no more than `r` can be used. When a request is refused that is the
//! wait itself, so that `t` never ends after the `Retry-After` beside it.

use tollgate_core::{Decision, Limit};

use super::value::Value;
use crate::{seconds, structured_field};

/// Both fields of one limit, up to the first number that changes.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    policy: Box<str>,
    state: Box<str>,
}

impl Fields {
    pub(super) fn new(policy: &str, limit: &Limit) -> Self {
        let name = structured_field::string(policy);
        let policy = match limit.rate() {
            Some(rate) => {
                let window_seconds = rate.period_micros() / 1_000_000;
                format!("{name};q={};w={window_seconds}", rate.count)
            }
            None => format!("{name};q={};qu=\"concurrent-requests\"", limit.capacity()),
        };
        Self { policy: policy.into(), state: format!("{name};r=").into() }
    }

    pub(super) fn policy(&self) -> Value<'_> {
        Value::Prepared(&self.policy)
    }

    pub(super) fn state(&self, decision: &Decision) -> Value<'_> {
        let (remaining, window) = (decision.remaining, effective_window(decision));
        Value::State { prepared: &self.state, remaining, window }
    }
}

fn effective_window(decision: &Decision) -> u64 {
    let refused = if decision.allowed { None } else { seconds::until_retry(decision) };
    refused.unwrap_or_else(|| seconds::ceil(decision.reset_after))
}
