//! Why a request was not answered by the upstream, as a document (RFC 9457) a program can read.
//!
//! [`QuotaExceeded`] is the 429, with the limit that refused and when to come back; [`Problem`] is
//! every other error of ours. Those carry the type `about:blank`, which by the RFC means that the
//! status says it all to a program; the detail says it to a person.
//!
//! What depends on the limit alone is written when the configuration is loaded.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use tollgate_core::{Decision, Limit, Wait};

use crate::{json, seconds};

/// What a problem document is sent as.
pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// How a 429 for want of quota begins: its registered type, and what follows from it. One text,
/// since under attack this is written more often than anything else.
const QUOTA_EXCEEDED: &[u8] = concat!(
    r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
    r#""title":"Too Many Requests","status":429,"detail":"#,
)
.as_bytes();

/// Room for everything but ids of unusual length.
const BODY_SIZE: usize = 512;

/// The refusals of one limit, ready but for the numbers that change.
#[derive(Debug, Clone)]
pub struct QuotaExceeded {
    about_limit: Box<[u8]>,
}

impl QuotaExceeded {
    /// For `limit`, which belongs to the policy of this id.
    pub fn new(policy: &str, limit: &Limit) -> Self {
        let mut out = Vec::new();
        out.extend_from_slice(b",\"policy\":");
        json::push_string(&mut out, policy);
        out.extend_from_slice(b",\"violated-policies\":[");
        json::push_string(&mut out, policy);
        out.extend_from_slice(b"],\"algorithm\":");
        json::push_string(&mut out, limit.algorithm().as_str());
        if let Some(rate) = limit.rate() {
            out.extend_from_slice(b",\"rate\":");
            json::push_string(&mut out, &rate.to_string());
        }
        out.extend_from_slice(b",\"limit\":");
        json::push_number(&mut out, limit.capacity());
        out.extend_from_slice(b",\"remaining\":");
        Self { about_limit: out.into() }
    }

    /// The body of a 429.
    pub fn body(&self, decision: &Decision, correlation_id: &str) -> Bytes {
        let mut out = Vec::with_capacity(BODY_SIZE);
        self.push(decision, correlation_id, &mut out);
        out.into()
    }

    /// Appends the body to what a front end sends.
    pub fn push(&self, decision: &Decision, correlation_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(QUOTA_EXCEEDED);
        push_detail(out, decision);
        push_correlation_id(out, correlation_id);
        out.extend_from_slice(&self.about_limit);
        json::push_number(out, decision.remaining);
        push_retry(out, decision);
        out.push(b'}');
    }
}

fn push_detail(out: &mut Vec<u8>, decision: &Decision) {
    match seconds::until_retry(decision) {
        Some(seconds) => {
            out.extend_from_slice(b"\"Rate limit exceeded. Try again in ");
            json::push_number(out, seconds);
            out.extend_from_slice(if seconds == 1 { b" second.\"" } else { b" seconds.\"" });
        }
        None if decision.limit == 0 => {
            out.extend_from_slice(b"\"Rate limit exceeded. This limit lets nothing pass.\"");
        }
        None => out.extend_from_slice(
            b"\"Rate limit exceeded. This request can never pass: \
              its cost is above the limit's capacity.\"",
        ),
    }
}

fn push_retry(out: &mut Vec<u8>, decision: &Decision) {
    if let (Some(seconds), Wait::For(wait)) = (seconds::until_retry(decision), decision.retry_after)
    {
        out.extend_from_slice(b",\"retryAfter\":");
        json::push_number(out, seconds);
        out.extend_from_slice(b",\"retryAfterMs\":");
        let millis = wait.as_micros().div_ceil(1_000);
        json::push_number(out, u64::try_from(millis).unwrap_or(u64::MAX));
    }
}

/// Any other error that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem<'a> {
    /// The status it is sent with.
    pub status: StatusCode,
    /// What happened, in words for a person.
    pub detail: Cow<'a, str>,
}

impl<'a> Problem<'a> {
    /// A problem in one's own words.
    pub fn new(status: StatusCode, detail: impl Into<Cow<'a, str>>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// A problem in the usual words for its status.
    pub const fn of(status: StatusCode) -> Self {
        Self { status, detail: Cow::Borrowed(usual_detail(status)) }
    }

    /// The document.
    pub fn body(&self, correlation_id: &str) -> Bytes {
        let mut out = Vec::with_capacity(BODY_SIZE);
        self.push(correlation_id, &mut out);
        out.into()
    }

    /// Appends the document to what a front end sends.
    pub fn push(&self, correlation_id: &str, out: &mut Vec<u8>) {
        push_head(out, "about:blank", self.status);
        json::push_string(out, &self.detail);
        push_correlation_id(out, correlation_id);
        out.push(b'}');
    }
}

fn push_head(out: &mut Vec<u8>, kind: &'static str, status: StatusCode) {
    out.extend_from_slice(b"{\"type\":");
    json::push_string(out, kind);
    out.extend_from_slice(b",\"title\":");
    json::push_string(out, status.canonical_reason().unwrap_or("Error"));
    out.extend_from_slice(b",\"status\":");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b",\"detail\":");
}

fn push_correlation_id(out: &mut Vec<u8>, correlation_id: &str) {
    out.extend_from_slice(b",\"correlationId\":");
    json::push_string(out, correlation_id);
}

const fn usual_detail(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "The request is malformed and was not passed on.",
        401 => "The request carries no valid credentials.",
        403 => "The request is not allowed.",
        404 => "No route matches this host and path.",
        405 => "The route does not allow this method; the Allow header lists those it does.",
        408 => "The request did not arrive in full in time.",
        411 => "The request needs a Content-Length.",
        413 => "The request's body is larger than allowed.",
        414 => "The request's URI is longer than allowed.",
        415 => "The request's body is not of a supported media type.",
        417 => "The expectation in the request's Expect header cannot be met.",
        429 => "Rate limit exceeded.",
        431 => "The request's headers are larger or more than allowed.",
        500 => "An internal error occurred; the correlation id finds it in the log.",
        501 => "The request asks for something that is not supported.",
        502 => "The upstream could not be reached or gave an invalid answer.",
        503 => "No upstream is available for this request at the moment.",
        504 => "The upstream did not answer in time.",
        505 => "The request's HTTP version is not supported.",
        _ => "The request could not be served.",
    }
}

#[cfg(test)]
mod tests;
