//! The keys of one shard, with its lock and its books.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tollgate_core::{Decision, Time};

use super::{
    flight::Flight,
    slot::{Parcel, Slot, Spent},
    stats::{LeaseStats, Ledger},
};
use crate::{
    Drawn, StoreError,
    fingerprint::{Fingerprint, Id},
};

/// Far more than any machine has cores: two rarely want the same.
const SHARD_BITS: u32 = 8;

/// A quarter of a million keys in all, some 30 MB. Keys beyond it are decided by the store, one
/// by one; they have no slices because a key needs several requests a second to have one.
const SLOTS_MAX: usize = 1_024;

/// Which key under which limit, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    id: Id,
    shard: usize,
}

impl Spot {
    #[inline]
    pub(super) fn new(fingerprint: Fingerprint, tag: u128) -> Self {
        Self { id: fingerprint.under(tag), shard: fingerprint.shard(SHARD_BITS) }
    }
}

/// On a cache line of its own: two cores at work on neighbours do not disturb each other.
#[repr(align(64))]
struct Line(Mutex<Shard>);

pub(super) struct Shards(Box<[Line]>);

/// Keys are random already; but a table goes by the leading bits, which chose the shard.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = word.rotate_left(32);
    }

    fn write_u32(&mut self, _: u32) {}
}

#[derive(Default)]
pub(super) struct Shard {
    slots: HashMap<Id, Slot, BuildHasherDefault<AsIs>>,
    ledger: Ledger,
}

/// A parcel and where it came from.
pub(super) struct Sent {
    pub(super) spot: Spot,
    pub(super) parcel: Parcel,
}

impl Shards {
    pub(super) fn new() -> Self {
        Self((0..1 << SHARD_BITS).map(|_| Line(Mutex::default())).collect())
    }

    #[inline]
    pub(super) fn lock(&self, spot: Spot) -> MutexGuard<'_, Shard> {
        self.0[spot.shard].0.lock()
    }

    pub(super) fn stats(&self) -> LeaseStats {
        let mut stats = LeaseStats::default();
        for line in &self.0 {
            let shard = line.0.lock();
            stats.add(&shard.ledger);
            stats.keys += shard.slots.len();
            for left in shard.slots.values().map(Slot::left).filter(|left| *left > 0) {
                stats.slices += 1;
                stats.held += left;
            }
        }
        stats
    }

    /// Goes over all keys, shard by shard, each for as long as its lock is held.
    pub(super) fn sweep(&self, mut each: impl FnMut(Spot, &mut Slot, &mut Ledger) -> Keep) {
        for (number, line) in self.0.iter().enumerate() {
            let Shard { slots, ledger } = &mut *line.0.lock();
            slots.retain(|id, slot| {
                each(Spot { id: *id, shard: number }, slot, ledger) == Keep::Yes
            });
            if slots.len() * 8 < slots.capacity() {
                slots.shrink_to(slots.len() * 2);
            }
        }
    }
}

/// Whether a key stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

impl Shard {
    #[inline]
    pub(super) fn spend(&mut self, spot: Spot, cost: u64, now: Time) -> Option<Spent> {
        let spent = self.slots.get_mut(&spot.id)?.spend(cost, now)?;
        self.ledger.spent += cost;
        self.ledger.decided += 1;
        Some(spent)
    }

    /// What is kept for a key, and the books. `None`: it is new and there is no room.
    pub(super) fn slot(&mut self, spot: Spot, now: Time) -> Option<(&mut Slot, &mut Ledger)> {
        if self.slots.len() >= SLOTS_MAX && !self.slots.contains_key(&spot.id) {
            return None;
        }
        let slot = self.slots.entry(spot.id).or_insert_with(|| Slot::new(now));
        Some((slot, &mut self.ledger))
    }

    pub(super) fn left(&self, spot: Spot, now: Time) -> u64 {
        self.slots.get(&spot.id).map_or(0, |slot| slot.left_at(now))
    }

    pub(super) fn note(&mut self, spot: Spot, decision: &Decision) {
        if let Some(slot) = self.slots.get_mut(&spot.id) {
            slot.note(decision);
        }
    }

    pub(super) fn told(&mut self, spot: Spot, epoch: u64) {
        if let Some(slot) = self.slots.get_mut(&spot.id) {
            slot.told(epoch);
        }
    }

    /// Gives up what is held of a key.
    pub(super) fn forget(&mut self, spot: Spot) {
        if let Some(slot) = self.slots.remove(&spot.id) {
            self.ledger.lost += slot.left();
        }
    }

    /// Books the end of a draw, and hands over what it brought if anyone still waits for it.
    pub(super) fn land(&mut self, spot: Spot, end: End<'_>) {
        let ledger = &mut self.ledger;
        ledger.flying -= end.left;
        let drawn = match end.landing {
            Ok(drawn) => drawn,
            Err(_) => {
                // It may have been counted in or not: to spend it could be to spend it twice.
                ledger.lost += end.left;
                self.clear(spot, end.flight);
                return;
            }
        };
        ledger.returned += end.left;
        ledger.drawn += drawn.slice;
        match self.slots.get_mut(&spot.id).filter(|slot| is_of(slot, end.flight)) {
            Some(slot) => slot.land(&end, drawn),
            None => ledger.lost += drawn.slice,
        }
    }

    /// Books the end of a parcel's way.
    pub(super) fn delivered(&mut self, sent: &Sent, arrived: bool) {
        self.ledger.flying -= sent.parcel.amount;
        match arrived {
            true => self.ledger.returned += sent.parcel.amount,
            false => self.ledger.lost += sent.parcel.amount,
        }
        if let Some(flight) = &sent.parcel.flight {
            self.clear(sent.spot, flight);
        }
    }

    fn clear(&mut self, spot: Spot, flight: &Arc<Flight>) {
        if let Some(slot) = self.slots.get_mut(&spot.id).filter(|slot| is_of(slot, flight)) {
            slot.clear();
        }
    }
}

/// How a draw ended.
pub(super) struct End<'a> {
    pub(super) flight: &'a Arc<Flight>,
    pub(super) landing: &'a Result<Drawn, StoreError>,
    pub(super) asked: Time,
    pub(super) now: Time,
    /// Of the store, when it was asked.
    pub(super) epoch: u64,
    /// Whether another has begun since.
    pub(super) epoch_ended: bool,
    pub(super) want: u64,
    pub(super) left: u64,
}

/// Whether this flight is the key's own: a reset may have come between.
fn is_of(slot: &Slot, flight: &Arc<Flight>) -> bool {
    slot.flight().is_some_and(|own| Arc::ptr_eq(own, flight))
}
