//! A policy's `mode`: whether a node may take ahead of what it spends.

use tollgate_core::Algorithm;

use super::{fields::Fields, reader::Reader};
use crate::{Mode, Policy};

/// Little enough that nobody sees the difference, and still a hundred tokens of ten thousand.
const EPSILON_MILLIONTHS: u32 = 10_000;

/// Reads the mode of a policy whose limits are known.
pub(super) fn mode(reader: &mut Reader<'_>, fields: &Fields<'_>, policy: &Policy) -> Mode {
    let leased = match fields.get("mode") {
        None => Some(false),
        Some(at) => reader.choice(&at, &[("exact", false), ("leased", true)]),
    };
    let epsilon = fields.get("epsilon");
    if leased != Some(true) {
        if let (Some(at), Some(_)) = (&epsilon, leased) {
            reader.mistake(at, "belongs to mode leased and means nothing here: leave it out");
        }
        return Mode::Exact;
    }
    possible(reader, fields, policy);
    let given = epsilon.and_then(|at| reader.millionths(&at));
    Mode::Leased { epsilon_millionths: given.unwrap_or(EPSILON_MILLIONTHS) }
}

/// Notes what cannot be taken ahead.
fn possible(reader: &mut Reader<'_>, fields: &Fields<'_>, policy: &Policy) {
    let Some(at) = fields.get("mode") else { return };
    if policy.limits.iter().any(|limit| limit.algorithm() == Algorithm::Concurrency) {
        let text = "leased takes ahead what will be spent, and a place in flight is given back \
                    instead: write mode: exact for a policy with a concurrency limit";
        reader.mistake(&at, text);
    }
    if policy.count_refused {
        let text = "leased refuses only what the store refused, and count_refused charges the \
                    store for every refusal: write mode: exact, or leave out count_refused";
        reader.mistake(&at, text);
    }
}

/// Tells whoever asked for leases and gets none.
pub(super) fn hint(reader: &mut Reader<'_>, fields: &Fields<'_>, policy: &Policy) {
    let (Mode::Leased { epsilon_millionths }, Some(at)) = (policy.mode, fields.get("mode")) else {
        return;
    };
    let ahead = |capacity: u64| u128::from(capacity) * u128::from(epsilon_millionths) / 1_000_000;
    match &policy.limits[..] {
        [limit] if ahead(limit.capacity()) == 0 => {
            let capacity = limit.capacity();
            let text = format!(
                "epsilon times {capacity} is less than 1, so nothing can be taken ahead and every \
                 decision is made in the store, as in mode exact"
            );
            reader.hint(&at, text);
        }
        [] | [_] => {}
        _ => reader.hint(
            &at,
            "several limits are decided at once in the store, so nothing is taken ahead, as in \
             mode exact",
        ),
    }
}
