//! A state in the 96 bits of a slot.
//!
//! The lower 62 bits of the value are the instant from which on the key says nothing any more,
//! for every kind of state: sweeping and eviction go by it without knowing the limit. The upper
//! two say which kind it is.

use tollgate_core::{Fill, Limit, State, Tally, Time};

use super::table::Slot;

const KIND: u64 = 0b11 << 62;
const FILL: u64 = 0;
const TALLY: u64 = 0b01 << 62;
const LISTED: u64 = 0b10 << 62;

/// What a slot holds.
pub(super) enum Kind {
    /// When a bucket is full; the rest of the slot is the remainder.
    Fill,
    /// When a window ends; the rest is its count.
    Tally,
    /// A state elsewhere; the rest is its place in the list.
    Listed,
}

impl Kind {
    pub(super) const fn of(value: u64) -> Self {
        match value & KIND {
            FILL => Self::Fill,
            TALLY => Self::Tally,
            _ => Self::Listed,
        }
    }
}

/// The instant without the kind.
pub(super) const fn micros(value: u64) -> u64 {
    value & !KIND
}

/// Whether an instant fits beside the kind.
pub(super) const fn fits(micros: u64) -> bool {
    micros & KIND == 0
}

/// The value of a slot whose state is in the list.
pub(super) fn listed(idle_at: Time) -> u64 {
    LISTED | idle_at.as_micros().min(!KIND)
}

/// From when on a slot says nothing. A bucket with a remainder is full only at the next tick.
pub(super) const fn idle_at(slot: &Slot) -> u64 {
    let rest = slot.value & KIND == FILL && slot.extra > 0;
    micros(slot.value) + rest as u64
}

/// The state in 96 bits, if it fits.
pub(super) fn pack(limit: &Limit, state: &State, idle_at: Time) -> Option<(u64, u32)> {
    match (state, limit) {
        (State::Fill(fill), _) => {
            let micros = u64::try_from(fill.micros).ok().filter(|micros| fits(*micros))?;
            Some((FILL | micros, u32::try_from(fill.part).ok()?))
        }
        // The index is told by the window's end, as long as nothing is taken beyond it.
        (State::Tally(tally), Limit::FixedWindow(_)) if tally.count <= limit.capacity() => {
            let micros = Some(idle_at.as_micros()).filter(|micros| fits(*micros))?;
            Some((TALLY | micros, u32::try_from(tally.count).ok()?))
        }
        _ => None,
    }
}

/// The state that was packed; what does not belong to this limit counts as unknown.
pub(super) fn unpack(limit: &Limit, slot: &Slot) -> State {
    let micros = micros(slot.value);
    match (Kind::of(slot.value), limit) {
        (Kind::Fill, Limit::TokenBucket(_) | Limit::LeakyBucket(_)) => {
            State::Fill(Fill { micros: u128::from(micros), part: u64::from(slot.extra) })
        }
        (Kind::Tally, Limit::FixedWindow(fixed)) => {
            let index = fixed.window().index(Time::from_micros(micros)).saturating_sub(1);
            State::Tally(Tally { index, count: u64::from(slot.extra) })
        }
        _ => limit.fresh(),
    }
}
