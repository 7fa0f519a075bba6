//! One shard: a table of small states, a list of large ones, and the order of things at the bound.
//!
//! A bucket or a window fits into its slot; other states stand in the list, and the slot says where.
//! Either way the slot tells when it is idle without asking the limit, which is what sweeping and
//! eviction go by: the key that is idle soonest owes least.

use std::time::Duration;

use tollgate_core::{Ask, Limit, SmallFill, State, Time, Timeline, Verdict, Wait};

use super::{
    bound::{AtBound, MemoryConfig, MemoryStats},
    list::List,
    packed::{self, Kind, idle_at},
    table::{Slot, Table},
};
use crate::{
    NamedLimit,
    fingerprint::{Fingerprint, Id},
};

/// Slots looked at for idle ones with every insert: twice what an insert adds, so that sweeping
/// keeps up, and too few to be felt.
const SWEPT_PER_INSERT: usize = 2;

/// Candidates for an eviction: the best of 32 is among the idlest few per cent.
const EVICTION_CANDIDATES: usize = 32;

/// Keys forgotten for one new one at most, where bytes are bounded and keys differ in size.
const EVICTIONS_MAX: usize = 8;

/// What every decision touches fits one cache line together with the lock, because the line moves
/// from core to core with it; all else is apart.
pub(super) struct Shard {
    table: Table,
    timeline: Timeline,
    apart: Box<Apart>,
}

struct Apart {
    list: List,
    bound: MemoryConfig,
    /// Where sweeping and eviction look next.
    cursor: usize,
    evicted: u64,
    refused: u64,
}

impl Shard {
    pub(super) fn new(bound: MemoryConfig, shared_bits: u32) -> Self {
        let list = List::default();
        let apart = Apart { list, bound, cursor: 0, evicted: 0, refused: 0 };
        Self { table: Table::new(shared_bits), timeline: Timeline::new(), apart: Box::new(apart) }
    }

    /// The table of its keys.
    pub(super) const fn table(&self) -> &Table {
        &self.table
    }

    /// The clock's `now` as this shard counts: never backwards.
    pub(super) fn time(&mut self, now: Time) -> Time {
        self.timeline.at(now)
    }

    /// One limit's whole way: look, decide, keep.
    #[inline]
    pub(super) fn take(&mut self, key: Fingerprint, named: &NamedLimit, ask: Ask) -> Verdict {
        if let Some(verdict) = self.take_known(key, named, &ask) {
            return verdict;
        }
        self.take_any(key, named, ask)
    }

    /// The same where it is short: a bucket that is known, and small. Else nothing is decided.
    #[inline]
    pub(super) fn take_known(
        &mut self,
        key: Fingerprint,
        named: &NamedLimit,
        ask: &Ask,
    ) -> Option<Verdict> {
        if named.counts_refused() {
            return None;
        }
        let at = self.table.find(key.under(named.tag())).ok()?;
        self.take_small(at, named.limit(), ask)
    }

    /// The same for a key that is new, or a state that is not a small bucket. Kept apart so that the
    /// short way stays short.
    #[inline(never)]
    fn take_any(&mut self, key: Fingerprint, named: &NamedLimit, ask: Ask) -> Verdict {
        let limit = named.limit();
        let id = key.under(named.tag());
        let found = self.find(key, named, ask.now);
        if found.is_err()
            && let Some(refused) = self.no_room_for_new()
        {
            return refused;
        }
        let mut state = found.map_or_else(|_| limit.fresh(), |at| self.lift_at(at, limit));
        let verdict = limit.check(&state, ask);
        if verdict.allowed {
            limit.spend(&mut state, ask);
        } else if named.counts_refused() {
            limit.charge(&mut state, ask);
        }
        self.put_at(found, id, limit, state, ask.now);
        verdict
    }

    /// The short way of a bucket that is known: its slot is read, decided on and written in place.
    #[inline]
    fn take_small(&mut self, at: usize, limit: &Limit, ask: &Ask) -> Option<Verdict> {
        let slot = self.table.slot_mut(at);
        if !matches!(Kind::of(slot.value), Kind::Fill) {
            return None;
        }
        let fill = SmallFill { micros: slot.value, part: slot.extra };
        let (verdict, fill) = limit.take_small(fill, ask)?;
        // After a take the instant lies within 62 bits, as the bucket's span and the time do.
        if !packed::fits(fill.micros) {
            return None;
        }
        slot.value = fill.micros;
        slot.extra = fill.part;
        Some(verdict)
    }

    /// Takes a state out to work on it; [`Shard::put`] must bring it back.
    pub(super) fn lift(&mut self, key: Fingerprint, named: &NamedLimit, now: Time) -> State {
        let limit = named.limit();
        self.find(key, named, now).map_or_else(|_| limit.fresh(), |at| self.lift_at(at, limit))
    }

    /// Whether anything is kept for this key.
    pub(super) fn knows(&mut self, key: Fingerprint, named: &NamedLimit, now: Time) -> bool {
        self.find(key, named, now).is_ok()
    }

    /// Takes a state out for good.
    pub(super) fn lift_out(
        &mut self,
        key: Fingerprint,
        named: &NamedLimit,
        now: Time,
    ) -> Option<State> {
        let at = self.find(key, named, now).ok()?;
        let state = self.lift_at(at, named.limit());
        self.remove(at);
        Some(state)
    }

    /// Brings a state back.
    pub(super) fn put(&mut self, key: Fingerprint, named: &NamedLimit, state: State, now: Time) {
        let id = key.under(named.tag());
        self.put_at(self.table.find(id), id, named.limit(), state, now);
    }

    pub(super) fn refund(
        &mut self,
        key: Fingerprint,
        named: &NamedLimit,
        ask: Ask,
        cost: u64,
    ) -> Verdict {
        let limit = named.limit();
        let mut state = self.lift(key, named, ask.now);
        limit.refund(&mut state, ask.now, cost);
        let verdict = limit.check(&state, ask);
        self.put(key, named, state, ask.now);
        verdict
    }

    pub(super) fn release(&mut self, key: Fingerprint, named: &NamedLimit, now: Time, lease: u64) {
        let mut state = self.lift(key, named, now);
        named.limit().release(&mut state, lease);
        self.put(key, named, state, now);
    }

    pub(super) fn forget(&mut self, key: Fingerprint, named: &NamedLimit) {
        let tags = named.past().iter().map(|past| past.tag);
        for tag in std::iter::once(named.tag()).chain(tags) {
            if let Ok(at) = self.table.find(key.under(tag)) {
                self.remove(at);
            }
        }
    }

    pub(super) fn stats(&self) -> MemoryStats {
        let (evicted, refused) = (self.apart.evicted, self.apart.refused);
        MemoryStats { keys: self.table.len(), bytes: self.bytes(), evicted, refused }
    }

    /// Drops everything idle and gives memory back.
    pub(super) fn tidy(&mut self, now: Time) {
        let mut at = 0;
        while let Some(slot) = self.table.slots().get(at) {
            if !slot.is_empty() && idle_at(slot) <= now.as_micros() {
                self.remove(at);
            } else {
                at += 1;
            }
        }
        self.table.shrink();
        if self.apart.list.is_sparse() {
            let slots = self.table.slots_mut().iter_mut().filter(|slot| !slot.is_empty());
            let listed = slots.filter(|slot| matches!(Kind::of(slot.value), Kind::Listed));
            self.apart.list.compact(listed.map(|slot| &mut slot.extra));
        }
    }

    /// A refusal, if the key is new, there is no room, and new keys are refused then.
    pub(super) fn no_room(&mut self, key: Fingerprint, named: &NamedLimit) -> Option<Verdict> {
        match self.table.find(key.under(named.tag())) {
            Ok(_) => None,
            Err(_) => self.no_room_for_new(),
        }
    }

    fn no_room_for_new(&mut self) -> Option<Verdict> {
        if self.apart.bound.at_bound == AtBound::Evict || !self.is_full() {
            return None;
        }
        self.apart.refused += 1;
        // When there will be room nobody knows; a second is what a sweep may take.
        let wait = Duration::from_secs(1);
        let retry_after = Wait::For(wait);
        Some(Verdict {
            allowed: false,
            remaining: 0,
            retry_after,
            reset_after: wait,
            wait: Duration::ZERO,
        })
    }

    /// Where the key is. What it had under earlier numbers is carried over first.
    fn find(&mut self, key: Fingerprint, named: &NamedLimit, now: Time) -> Result<usize, usize> {
        let found = self.table.find(key.under(named.tag()));
        if found.is_ok() || named.past().is_empty() {
            return found;
        }
        for past in named.past().iter().filter(|past| past.until > now) {
            let Ok(at) = self.table.find(key.under(past.tag)) else { continue };
            let state = self.lift_at(at, &past.limit);
            self.remove(at);
            if let Some(state) = named.limit().carry(&past.limit, &state, now) {
                self.put(key, named, state, now);
            }
            break;
        }
        self.table.find(key.under(named.tag()))
    }

    /// Copies a small state, moves a large one out of the list.
    fn lift_at(&mut self, at: usize, limit: &Limit) -> State {
        let slot = self.table.slots()[at];
        match Kind::of(slot.value) {
            Kind::Listed => self.apart.list.lift(slot.extra),
            _ => packed::unpack(limit, &slot),
        }
    }

    fn put_at(
        &mut self,
        found: Result<usize, usize>,
        id: Id,
        limit: &Limit,
        state: State,
        now: Time,
    ) {
        let idle_at = limit.idle_at(&state);
        match found {
            Ok(at) if idle_at <= now => self.remove(at),
            Ok(at) => self.write(at, limit, state, idle_at),
            Err(_) if idle_at <= now => {}
            Err(_) => self.insert(id, limit, state, idle_at, now),
        }
        // A log that has grown may have taken more than its share.
        for _ in 0..EVICTIONS_MAX {
            if self.apart.list.heap_bytes() == 0 || self.bytes() <= self.apart.bound.bound.bytes {
                break;
            }
            self.evict();
        }
    }

    /// Puts a state into the slot of a key that is there.
    fn write(&mut self, at: usize, limit: &Limit, state: State, idle_at: Time) {
        let slot = self.table.slots()[at];
        let listed = matches!(Kind::of(slot.value), Kind::Listed);
        let (value, extra) = match packed::pack(limit, &state, idle_at) {
            Some(packed) => {
                if listed {
                    self.apart.list.remove(slot.extra);
                }
                packed
            }
            None if listed => {
                self.apart.list.put(slot.extra, state);
                (packed::listed(idle_at), slot.extra)
            }
            None => (packed::listed(idle_at), self.apart.list.add(state)),
        };
        let slot = self.table.slot_mut(at);
        slot.value = value;
        slot.extra = extra;
    }

    fn insert(&mut self, id: Id, limit: &Limit, state: State, idle_at: Time, now: Time) {
        self.sweep(now);
        for _ in 0..EVICTIONS_MAX {
            if !self.is_full() {
                break;
            }
            self.evict();
        }
        let (value, extra) = packed::pack(limit, &state, idle_at)
            .unwrap_or_else(|| (packed::listed(idle_at), self.apart.list.add(state)));
        if let Err(at) = self.table.find(id) {
            self.table.insert(at, Slot::new(id, value, extra));
        }
    }

    fn remove(&mut self, at: usize) {
        let slot = self.table.remove(at);
        if matches!(Kind::of(slot.value), Kind::Listed) {
            self.apart.list.remove(slot.extra);
        }
    }

    /// Looks at the next slots and drops the idle ones.
    fn sweep(&mut self, now: Time) {
        for _ in 0..SWEPT_PER_INSERT {
            if self.apart.cursor >= self.table.slots().len() {
                self.apart.cursor = 0;
            }
            match self.table.slots().get(self.apart.cursor) {
                Some(slot) if !slot.is_empty() && idle_at(slot) <= now.as_micros() => {
                    self.remove(self.apart.cursor)
                }
                _ => self.apart.cursor += 1,
            }
        }
    }

    /// Forgets the key that is idle soonest among the next ones.
    fn evict(&mut self) {
        let len = self.table.slots().len();
        if self.table.len() == 0 {
            return;
        }
        let next = (0..len).map(|step| (self.apart.cursor + step) % len);
        let held = next.filter(|at| !self.table.slots()[*at].is_empty());
        let candidates = held.take(EVICTION_CANDIDATES);
        let Some(idlest) = candidates.min_by_key(|at| idle_at(&self.table.slots()[*at])) else {
            return;
        };
        self.apart.cursor = (self.apart.cursor + EVICTION_CANDIDATES) % len;
        self.remove(idlest);
        self.apart.evicted += 1;
    }

    fn is_full(&self) -> bool {
        let bytes = self.table.bytes_with_one_more() + self.apart.list.bytes_with_one_more();
        let bound = self.apart.bound.bound;
        self.table.len() >= bound.keys || bytes > bound.bytes
    }

    fn bytes(&self) -> usize {
        self.table.bytes() + self.apart.list.bytes()
    }

    /// All keys with their states, for saving.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Id, Kept<'_>)> {
        self.table.slots().iter().filter(|slot| !slot.is_empty()).map(|slot| {
            let kept = match Kind::of(slot.value) {
                Kind::Listed => {
                    Kept::Listed(self.apart.list.get(slot.extra), packed::micros(slot.value))
                }
                _ => Kept::Packed(slot.value, slot.extra),
            };
            (slot.id(), kept)
        })
    }

    /// Puts a saved key back; what is idle by now stays away.
    pub(super) fn restore(&mut self, id: Id, kept: Restored, now: Time) {
        let idle_at = match &kept {
            Restored::Packed(value, _) => packed::micros(*value),
            Restored::Listed(_, idle_at) => *idle_at,
        };
        if idle_at <= now.as_micros() || self.is_full() {
            return;
        }
        let (value, extra) = match kept {
            Restored::Packed(value, _) if matches!(Kind::of(value), Kind::Listed) => return,
            Restored::Packed(value, extra) => (value, extra),
            Restored::Listed(state, idle_at) => {
                (packed::listed(Time::from_micros(idle_at)), self.apart.list.add(state))
            }
        };
        if let Err(at) = self.table.find(id) {
            self.table.insert(at, Slot::new(id, value, extra));
        }
    }
}

/// A key's state as it lies in a shard.
pub(super) enum Kept<'a> {
    /// In its slot.
    Packed(u64, u32),
    /// In the list, with the instant at which it is idle.
    Listed(&'a State, u64),
}

/// The same on its way back.
pub(super) enum Restored {
    /// To its slot.
    Packed(u64, u32),
    /// To the list.
    Listed(State, u64),
}
