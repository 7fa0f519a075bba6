//! What an answer's headers say about the limit that was met.
//!
//! One [`LimitHeaders`] per limit is made when the configuration is loaded. Writing then costs
//! the inserts and, for numbers above 999, one small allocation each. Values are made anew
//! rather than cloned from a shared one: cores that count references to the same text would
//! wait for each other's cache line.
//!
//! Headers of these names that the upstream sent are replaced, since they speak of another
//! limit than the one we enforce; `Retry-After` and `Cache-Control` only on a refusal, which is
//! our answer altogether.

mod ietf;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tollgate_core::{Decision, Limit, Rate, Unit};

use crate::{decimal, seconds};

/// What passes per second, or per unit, or in a window.
pub const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// How many requests of cost 1 could pass at once.
pub const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When the limit is as if nobody had come.
pub const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// `Retry-After` by another name, for clients that look for it; a setting.
pub const RETRY_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-retry-after");
/// The quota and its window, as the IETF draft 11 writes them; a setting.
pub const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of the quota, as the IETF draft 11 writes it; a setting.
pub const IETF: HeaderName = HeaderName::from_static("ratelimit");

/// Which headers are sent, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// What `X-RateLimit-Reset` counts.
    pub reset: Reset,
    /// Whether to send `RateLimit-Policy` and `RateLimit` too.
    pub ietf: bool,
    /// Whether a refusal carries `X-RateLimit-Retry-After` too.
    pub retry_after: bool,
}

/// What `X-RateLimit-Reset` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reset {
    /// Seconds since the Unix epoch.
    #[default]
    Unix,
    /// Seconds from now.
    Delta,
}

/// The headers of one limit, ready but for the numbers that change.
#[derive(Debug, Clone)]
pub struct LimitHeaders {
    limit: u64,
    reset: Reset,
    retry_after: bool,
    ietf: Option<ietf::Fields>,
    exposed: &'static str,
}

impl LimitHeaders {
    /// For `limit`, which belongs to the policy of this id.
    pub fn new(policy: &str, limit: &Limit, settings: Settings) -> Self {
        Self {
            limit: shown_limit(limit),
            reset: settings.reset,
            retry_after: settings.retry_after,
            ietf: settings.ietf.then(|| ietf::Fields::new(policy, limit)),
            exposed: exposed(settings),
        }
    }

    /// Writes what `decision` says into the headers of its answer.
    pub fn write(&self, decision: &Decision, headers: &mut HeaderMap) {
        headers.insert(LIMIT, decimal::header_value(self.limit));
        headers.insert(REMAINING, decimal::header_value(decision.remaining));
        headers.insert(RESET, decimal::header_value(self.reset(decision)));
        if let Some(ietf) = &self.ietf {
            ietf.write(decision, headers);
        }
        if decision.allowed {
            // To an answer that no other origin may read there is nothing to open.
            if headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
                self.expose(headers);
            }
        } else {
            self.write_refusal(decision, headers);
        }
    }

    fn write_refusal(&self, decision: &Decision, headers: &mut HeaderMap) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = seconds::until_retry(decision) {
            headers.insert(header::RETRY_AFTER, decimal::header_value(seconds));
            if self.retry_after {
                headers.insert(RETRY_AFTER, decimal::header_value(seconds));
            }
        }
        self.expose(headers);
    }

    /// A further line, so that what the upstream exposes stays exposed.
    fn expose(&self, headers: &mut HeaderMap) {
        let names = HeaderValue::from_static(self.exposed);
        headers.append(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
    }

    fn reset(&self, decision: &Decision) -> u64 {
        match self.reset {
            Reset::Unix => decision.at.after(decision.reset_after).as_micros().div_ceil(1_000_000),
            Reset::Delta => seconds::ceil(decision.reset_after),
        }
    }
}

/// The number that people know the limit by: what a bucket lets through in the long run, not its
/// burst, and what a window or a limit on requests in flight lets through at all.
pub fn shown_limit(limit: &Limit) -> u64 {
    match (limit, limit.rate()) {
        (Limit::TokenBucket(_) | Limit::LeakyBucket(_), Some(rate)) => in_its_unit(rate),
        _ => limit.capacity(),
    }
}

/// `10/s` and `20/2s` are 10 a second; `60/min` is 60, `5/30s` is 5.
fn in_its_unit(rate: Rate) -> u64 {
    let per_second = rate.count / u64::from(rate.times.max(1));
    if rate.unit == Unit::Second && per_second > 0 { per_second } else { rate.count }
}

/// One text for each combination of settings, so that writing it costs nothing.
const fn exposed(settings: Settings) -> &'static str {
    macro_rules! names {
        ($($more:literal),*) => {
            concat!(
                "x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, ",
                "x-correlation-id" $(, $more)*
            )
        };
    }
    match (settings.ietf, settings.retry_after) {
        (false, false) => names!(),
        (false, true) => names!(", x-ratelimit-retry-after"),
        (true, false) => names!(", ratelimit-policy, ratelimit"),
        (true, true) => names!(", x-ratelimit-retry-after, ratelimit-policy, ratelimit"),
    }
}

#[cfg(test)]
mod tests;
