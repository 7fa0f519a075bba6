//! Decisions as JSON.
//!
//! Written by hand into one buffer: it is a handful of numbers, and `/v1/check` is asked before
//! everything else that somebody wants to do. Milliseconds are rounded up, so that who waits as
//! long as it says does not come too early.

use std::time::Duration;

use tollgate_core::{Algorithm, Decision, Wait};
use tollgate_engine::{Outcome, Shown};

use super::prepared::PreparedPolicy;

/// Room for an answer whose policy has a name of ordinary length.
pub(crate) const ANSWER_BYTES: usize = 256;

/// Writes the answer to one question, without its closing brace. A lease that came with it is
/// kept from here on: whoever reads the answer holds it.
pub(crate) fn push_outcome(out: &mut Vec<u8>, policy: &PreparedPolicy, outcome: Outcome) {
    out.extend_from_slice(if outcome.allowed {
        b"{\"allowed\":true,\"policy\":"
    } else {
        b"{\"allowed\":false,\"policy\":"
    });
    out.extend_from_slice(&policy.id);
    match &outcome.shown {
        Some(shown) => push_level(out, &shown.decision),
        None => out.extend_from_slice(
            b",\"limit\":null,\"remaining\":null,\"retry_after_ms\":0,\"reset_after_ms\":0",
        ),
    }
    if !outcome.allowed {
        out.extend_from_slice(b",\"limited_by\":");
        out.extend_from_slice(&policy.id);
    }
    let would_allow = outcome.dry_run.is_empty();
    if let Some(shown) = outcome.shown.filter(|_| !outcome.allowed || !would_allow) {
        push_which(out, policy, &shown);
    }
    if !policy.enforce {
        out.extend_from_slice(b",\"dry_run\":true,\"would_allow\":");
        out.extend_from_slice(if would_allow { b"true" } else { b"false" });
    }
    if let Some(held) = outcome.held {
        out.extend_from_slice(b",\"lease\":\"");
        push_number(out, held.keep());
        out.push(b'"');
    }
}

/// Writes what each limit of a policy says of a key.
pub(crate) fn push_key_state(
    out: &mut Vec<u8>,
    policy: &PreparedPolicy,
    key: &str,
    limits: &[(Algorithm, Decision)],
) {
    out.extend_from_slice(b"{\"policy\":");
    out.extend_from_slice(&policy.id);
    out.extend_from_slice(b",\"key\":");
    out.extend_from_slice(serde_json::Value::from(key).to_string().as_bytes());
    out.extend_from_slice(b",\"limits\":[");
    for (at, (algorithm, decision)) in limits.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"algorithm\":\"");
        out.extend_from_slice(algorithm.as_str().as_bytes());
        out.push(b'"');
        push_level(out, decision);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

pub(crate) fn push_waited(out: &mut Vec<u8>, waited: Duration) {
    out.extend_from_slice(b",\"waited_ms\":");
    // Rounded down: who passed at once has not waited a millisecond.
    push_number(out, u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
}

fn push_level(out: &mut Vec<u8>, decision: &Decision) {
    out.extend_from_slice(b",\"limit\":");
    push_number(out, decision.limit);
    out.extend_from_slice(b",\"remaining\":");
    push_number(out, decision.remaining);
    out.extend_from_slice(b",\"retry_after_ms\":");
    match decision.retry_after {
        Wait::For(wait) => push_millis(out, wait),
        Wait::Never => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"reset_after_ms\":");
    push_millis(out, decision.reset_after);
    if decision.retry_after == Wait::Never {
        out.extend_from_slice(b",\"never\":true");
    }
}

/// Which of several limits it was.
fn push_which(out: &mut Vec<u8>, policy: &PreparedPolicy, shown: &Shown) {
    if policy.algorithms.len() < 2 {
        return;
    }
    out.extend_from_slice(b",\"limit_index\":");
    push_number(out, shown.limit as u64);
    if let Some(algorithm) = policy.algorithms.get(shown.limit) {
        out.extend_from_slice(b",\"algorithm\":\"");
        out.extend_from_slice(algorithm.as_str().as_bytes());
        out.push(b'"');
    }
}

fn push_millis(out: &mut Vec<u8>, duration: Duration) {
    let millis = duration.as_micros().div_ceil(1_000);
    push_number(out, u64::try_from(millis).unwrap_or(u64::MAX));
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
