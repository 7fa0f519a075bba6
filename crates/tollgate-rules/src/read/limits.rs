//! One limit of a policy: its algorithm and the numbers that algorithm takes.

use std::time::Duration;

use tollgate_core::{Algorithm, COST_MAX, Limit, LimitError, Rate};

use super::{
    fields::{At, Fields},
    keys,
    reader::Reader,
};
use crate::rate::parse_rate;

/// A holder that is silent this long has died; most requests end within half of it.
const LEASE: Duration = Duration::from_secs(60);

pub(super) fn limit(reader: &mut Reader<'_>, at: &At<'_>) -> Option<Limit> {
    let fields = reader.fields(at, &keys::LIMIT)?;
    let names = Algorithm::ALL.map(|algorithm| (algorithm.as_str(), algorithm));
    let chosen = reader
        .required(&fields, "algorithm", "algorithm: token_bucket, or another")
        .and_then(|at| reader.choice(&at, &names));
    let Some(algorithm) = chosen else {
        // Whichever was meant, the numbers beside it can be looked at all the same.
        if fields.get("rate").is_some() {
            rate(reader, &fields);
        }
        return None;
    };
    misplaced(reader, &fields, algorithm);
    match algorithm {
        Algorithm::TokenBucket => bucket(reader, &fields, Limit::token_bucket),
        Algorithm::LeakyBucket => bucket(reader, &fields, Limit::leaky_bucket),
        Algorithm::FixedWindow => window(reader, &fields, Limit::fixed_window),
        Algorithm::SlidingLog => window(reader, &fields, Limit::sliding_log),
        Algorithm::SlidingCounter => window(reader, &fields, Limit::sliding_counter),
        Algorithm::SlidingWindow => window(reader, &fields, Limit::sliding_window),
        Algorithm::Concurrency => concurrency(reader, &fields),
    }
}

/// Notes numbers that the algorithm does not take.
fn misplaced(reader: &mut Reader<'_>, fields: &Fields<'_>, algorithm: Algorithm) {
    let (takes, foreign): (_, &[&str]) = match algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => ("rate and burst", &["limit", "lease"]),
        Algorithm::Concurrency => ("limit and lease", &["rate", "burst"]),
        _ => ("a rate", &["burst", "limit", "lease"]),
    };
    for key in foreign {
        if let Some(at) = fields.get(key) {
            reader.mistake(&at, format!("{algorithm} has no {key}: it takes {takes}"));
        }
    }
}

fn rate<'n>(reader: &mut Reader<'_>, fields: &Fields<'n>) -> Option<(At<'n>, Rate)> {
    let at = reader.required(fields, "rate", "rate: 10/s")?;
    let rate = reader.parsed(&at, "a rate like 10/s", parse_rate)?;
    Some((at, rate))
}

fn bucket(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    make: fn(Rate, u64) -> Result<Limit, LimitError>,
) -> Option<Limit> {
    let rate = rate(reader, fields);
    let given = fields.get("burst");
    let number = given.as_ref().map(|at| reader.number(at, 0..=COST_MAX));
    let (at, rate) = rate?;
    // Without a burst of its own, a bucket holds what flows in during one period.
    let burst = number.unwrap_or(Some(rate.count))?;
    checked(reader, &at, make(rate, burst))
}

fn window(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    make: fn(Rate) -> Result<Limit, LimitError>,
) -> Option<Limit> {
    let (at, rate) = rate(reader, fields)?;
    checked(reader, &at, make(rate))
}

fn concurrency(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Limit> {
    let lease = match fields.get("lease") {
        None => Some(LEASE),
        Some(at) => reader.duration(&at, Duration::from_millis(1)..=Duration::from_secs(86_400)),
    };
    let at = reader.required(fields, "limit", "limit: 10")?;
    let places = reader.number(&at, 0..=COST_MAX);
    checked(reader, &at, Limit::concurrency(places?, lease?))
}

fn checked(
    reader: &mut Reader<'_>,
    at: &At<'_>,
    limit: Result<Limit, LimitError>,
) -> Option<Limit> {
    limit.map_err(|error| reader.mistake(at, error.to_string())).ok()
}
