//! The fields of draft-ietf-httpapi-ratelimit-headers-11: `RateLimit-Policy` and `RateLimit`.
//!
//! `t` is the span in which no more than `r` can be used. When a request is refused that is the
//! wait itself, so that `t` never ends after the `Retry-After` beside it.

use http::{HeaderMap, HeaderValue};
use tollgate_core::{Decision, Limit};

use super::{IETF, IETF_POLICY};
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

    pub(super) fn write(&self, decision: &Decision, headers: &mut HeaderMap) {
        let policy = HeaderValue::from_str(&self.policy).expect("a structured field is ASCII");
        headers.insert(IETF_POLICY, policy);
        headers.insert(IETF, self.state(decision));
    }

    fn state(&self, decision: &Decision) -> HeaderValue {
        let (mut remaining, mut window) = (itoa::Buffer::new(), itoa::Buffer::new());
        let remaining = remaining.format(decision.remaining);
        let window = window.format(effective_window(decision));
        // Of the exact size: a buffer with room to spare would be allocated a second time.
        let size = self.state.len() + remaining.len() + ";t=".len() + window.len();
        let mut text = String::with_capacity(size);
        for part in [&*self.state, remaining, ";t=", window] {
            text.push_str(part);
        }
        HeaderValue::try_from(text).expect("a structured field is ASCII")
    }
}

fn effective_window(decision: &Decision) -> u64 {
    let refused = if decision.allowed { None } else { seconds::until_retry(decision) };
    refused.unwrap_or_else(|| seconds::ceil(decision.reset_after))
}
