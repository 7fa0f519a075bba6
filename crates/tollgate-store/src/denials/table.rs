//! Refusals by request, in bounded memory.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Decision, Time};

/// Groups of places under one lock each: many more than cores, so that two rarely want the same.
const GROUP_BITS: u32 = 9;

/// Sets of places in a group. In all there are 2^15 places, for as many clients that keep coming
/// although they are refused, in some 5 MB; memory is taken as groups are first written to.
const SET_BITS: u32 = 4;

/// Places of a set. With four the table is well filled before two clients that are refused in turn
/// push each other out.
const WAYS: usize = 4;

/// Counters of what was given back: one refund drops the refusals of one key in 65,536.
const GENERATION_BITS: u32 = 16;

/// One refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Denial {
    /// Of which request.
    pub(super) id: u128,
    /// How often something had been given back to its keys when it was asked.
    pub(super) generation: u64,
    /// When it was asked, when it was answered, until when it holds: by this process's clock.
    pub(super) asked: Time,
    pub(super) answered: Time,
    pub(super) until: Time,
    pub(super) decision: Decision,
}

type Group = Mutex<Box<[Set]>>;

/// The refusals of a few requests. Their numbers are together, because all of them are looked at.
#[derive(Clone, Default)]
struct Set {
    ids: [u128; WAYS],
    denials: [Option<Denial>; WAYS],
}

pub(super) struct Table {
    groups: Box<[Group]>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { groups: (0..1_u32 << GROUP_BITS).map(|_| Group::default()).collect() }
    }

    pub(super) fn find(&self, id: u128) -> Option<Denial> {
        let group = self.group(id).lock();
        let set = group.get(set_of(id))?;
        let at = set.ids.iter().position(|known| *known == id)?;
        set.denials[at]
    }

    /// Keeps a refusal, in the place of its predecessor or of the one that ends first.
    pub(super) fn put(&self, denial: Denial) {
        let mut group = self.group(denial.id).lock();
        if group.is_empty() {
            *group = vec![Set::default(); 1 << SET_BITS].into();
        }
        let set = &mut group[set_of(denial.id)];
        let known = set.ids.iter().position(|id| *id == denial.id);
        let until = |at: &usize| set.denials[*at].map(|denial| denial.until);
        let Some(at) = known.or_else(|| (0..WAYS).min_by_key(until)) else { return };
        set.ids[at] = denial.id;
        set.denials[at] = Some(denial);
    }

    fn group(&self, id: u128) -> &Group {
        &self.groups[top_bits(id, GROUP_BITS)]
    }
}

fn set_of(id: u128) -> usize {
    top_bits(id << GROUP_BITS, SET_BITS)
}

fn top_bits(number: u128, bits: u32) -> usize {
    usize::try_from(number >> (128 - bits)).unwrap_or(0)
}

/// For each key, with others, how often something was given back to it.
pub(super) struct Generations {
    counts: Box<[AtomicU32]>,
}

impl Generations {
    pub(super) fn new() -> Self {
        Self { counts: (0..1_u32 << GENERATION_BITS).map(|_| AtomicU32::new(0)).collect() }
    }

    pub(super) fn of(&self, key: u128) -> u64 {
        u64::from(self.counts[top_bits(key, GENERATION_BITS)].load(Ordering::Acquire))
    }

    pub(super) fn bump(&self, key: u128) {
        self.counts[top_bits(key, GENERATION_BITS)].fetch_add(1, Ordering::AcqRel);
    }
}
