//! What an answer's headers say about the limit that was met.
//!
//! One [`LimitHeaders`] per limit is made when the configuration is loaded, and writes into a map
//! or as lines of text; what is said is decided once for both. Into a map it costs the inserts
//! and, for numbers above 999, one small allocation each. Values are made anew rather than cloned
//! from a shared one: cores that count references to the same text would wait for each other's
//! cache line.
//!
//! Headers of these names that the upstream sent are replaced, since they speak of another limit
//! than the one we enforce; `Retry-After` and `Cache-Control` only on a refusal, which is our
//! answer altogether.

mod ietf;
mod value;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tollgate_core::{Decision, Limit, Rate, Unit};

use self::value::Value;
use crate::seconds;

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
    /// The lines up to the first number that changes.
    constant: Box<[u8]>,
    reset: Reset,
    retry_after: bool,
    ietf: Option<ietf::Fields>,
    exposed: &'static str,
}

/// A header's name, for a map and for a line.
struct Name(HeaderName, &'static str);

impl LimitHeaders {
    /// For `limit`, which belongs to the policy of this id.
    pub fn new(policy: &str, limit: &Limit, settings: Settings) -> Self {
        let shown = shown_limit(limit);
        let constant = format!("X-RateLimit-Limit: {shown}\r\nX-RateLimit-Remaining: ");
        Self {
            limit: shown,
            constant: constant.into_bytes().into(),
            reset: settings.reset,
            retry_after: settings.retry_after,
            ietf: settings.ietf.then(|| ietf::Fields::new(policy, limit)),
            exposed: exposed(settings),
        }
    }

    /// Writes what `decision` says into the headers of its answer.
    pub fn write(&self, decision: &Decision, headers: &mut HeaderMap) {
        self.each(decision, |name, value| {
            headers.insert(name.0, value.into_header_value());
        });
        // To an answer that no other origin may read there is nothing to open.
        if !decision.allowed || headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
            // A further line, so that what the upstream exposes stays exposed.
            let names = HeaderValue::from_static(self.exposed);
            headers.append(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
        }
    }

    /// Writes the same as lines, each with its line break. The caller leaves out the upstream's
    /// headers that these [replace](Self::replaces), and says whether its answer `allows_origin`,
    /// that is carries `Access-Control-Allow-Origin`.
    pub fn push_lines(&self, decision: &Decision, allows_origin: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.constant);
        Value::Number(decision.remaining).push(out);
        out.extend_from_slice(b"\r\nX-RateLimit-Reset: ");
        Value::Number(self.reset(decision)).push(out);
        out.extend_from_slice(b"\r\n");
        self.each_more(decision, |name, value| {
            out.extend_from_slice(name.1.as_bytes());
            out.extend_from_slice(b": ");
            value.push(out);
            out.extend_from_slice(b"\r\n");
        });
        if !decision.allowed || allows_origin {
            out.extend_from_slice(b"Access-Control-Expose-Headers: ");
            out.extend_from_slice(self.exposed.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Whether a header of this name, in any case, must not be passed on from the upstream, when
    /// lines are added to an answer it gave.
    pub fn replaces(&self, name: &[u8]) -> bool {
        let is = |known: HeaderName| name.eq_ignore_ascii_case(known.as_str().as_bytes());
        // Most headers are told apart by their length or first letter.
        match (name.len(), name.first()) {
            (17, Some(b'x' | b'X')) => is(LIMIT) || is(RESET),
            (21, Some(b'x' | b'X')) => is(REMAINING),
            (16 | 9, Some(b'r' | b'R')) if self.ietf.is_some() => is(IETF_POLICY) || is(IETF),
            _ => false,
        }
    }

    /// What is said, in order.
    fn each(&self, decision: &Decision, mut say: impl FnMut(Name, Value<'_>)) {
        say(Name(LIMIT, "X-RateLimit-Limit"), Value::Number(self.limit));
        say(Name(REMAINING, "X-RateLimit-Remaining"), Value::Number(decision.remaining));
        say(Name(RESET, "X-RateLimit-Reset"), Value::Number(self.reset(decision)));
        self.each_more(decision, say);
    }

    /// What is said only under some settings, or of a refusal.
    fn each_more(&self, decision: &Decision, mut say: impl FnMut(Name, Value<'_>)) {
        if let Some(ietf) = &self.ietf {
            say(Name(IETF_POLICY, "RateLimit-Policy"), ietf.policy());
            say(Name(IETF, "RateLimit"), ietf.state(decision));
        }
        if decision.allowed {
            return;
        }
        say(Name(header::CACHE_CONTROL, "Cache-Control"), Value::Fixed("no-store"));
        if let Some(seconds) = seconds::until_retry(decision) {
            say(Name(header::RETRY_AFTER, "Retry-After"), Value::Number(seconds));
            if self.retry_after {
                say(Name(RETRY_AFTER, "X-RateLimit-Retry-After"), Value::Number(seconds));
            }
        }
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
