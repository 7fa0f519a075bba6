//! A small hash table that stays sorted by hash.
//!
//! Linear probing, with entries kept in the order of their hashes. Since the home of an entry grows
//! with its hash, a search ends at the first larger hash, removing needs no tombstones, and
//! growing is one pass from left to right. A table may have any size, so it grows by an eighth
//! and stays three quarters full, where tables of powers of two are half empty after doubling.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::fingerprint::Id;

/// One key: 24 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    word: u64,
    /// What the shard keeps: 64 bits and 32 more.
    pub(super) value: u64,
    check: u32,
    pub(super) extra: u32,
}

pub(super) const SLOT_BYTES: usize = size_of::<Slot>();

impl Slot {
    pub(super) const fn new(id: Id, value: u64, extra: u32) -> Self {
        Self { word: id.word, value, check: id.check, extra }
    }

    pub(super) const fn id(&self) -> Id {
        Id { word: self.word, check: self.check }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.word == 0
    }
}

/// Room behind the last home for the entries that are pushed there.
const TAIL: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Box<[Slot]>,
    len: usize,
    /// The leading bits of a hash that all keys of this table share.
    shared_bits: u32,
}

impl Table {
    pub(super) fn new(shared_bits: u32) -> Self {
        Self { slots: Box::default(), len: 0, shared_bits }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }

    pub(super) const fn bytes(&self) -> usize {
        self.slots.len() * SLOT_BYTES
    }

    /// What [`Table::bytes`] would be with one entry more.
    pub(super) fn bytes_with_one_more(&self) -> usize {
        if self.is_full() { slots_for(grown(self.homes())) * SLOT_BYTES } else { self.bytes() }
    }

    /// Where this key is, or where it would go.
    #[inline]
    pub(super) fn find(&self, id: Id) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mut at = self.home(id.word);
        while let Some(slot) = self.slots.get(at) {
            if slot.word > id.word || slot.is_empty() {
                break;
            }
            if slot.word == id.word && slot.check == id.check {
                return Ok(at);
            }
            at += 1;
        }
        Err(at)
    }

    /// Puts a new entry in and says where. The place must be what [`Table::find`] said.
    pub(super) fn insert(&mut self, at: usize, slot: Slot) -> usize {
        if self.is_full() {
            return self.grow_and_insert(slot);
        }
        let Some(free) = self.slots.get(at..).and_then(|rest| rest.iter().position(Slot::is_empty))
        else {
            return self.grow_and_insert(slot);
        };
        self.slots.copy_within(at..at + free, at + 1);
        self.slots[at] = slot;
        self.len += 1;
        at
    }

    /// Takes an entry out; what was pushed behind it moves back.
    pub(super) fn remove(&mut self, at: usize) -> Slot {
        let removed = self.slots[at];
        let mut end = at + 1;
        while self.slots.get(end).is_some_and(|slot| !slot.is_empty() && self.home(slot.word) < end)
        {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = Slot::default();
        self.len -= 1;
        removed
    }

    /// Gives memory back if three quarters are empty.
    pub(super) fn shrink(&mut self) {
        if self.len == 0 {
            self.slots = Box::default();
        } else if self.len * 4 < self.homes() {
            self.resize(self.len + self.len / 2);
        }
    }

    fn grow_and_insert(&mut self, slot: Slot) -> usize {
        self.resize(grown(self.homes()));
        match self.find(slot.id()) {
            Ok(at) => at,
            Err(at) => self.insert(at, slot),
        }
    }

    fn resize(&mut self, homes: usize) {
        let mut homes = homes;
        loop {
            let slots = vec![Slot::default(); slots_for(homes)].into_boxed_slice();
            let old = std::mem::replace(&mut self.slots, slots);
            if self.refill(&old) {
                return;
            }
            // The entries crowd at the end by chance: a little more room spreads them.
            self.slots = old;
            homes = grown(homes);
        }
    }

    /// Copies sorted entries; false if the tail is too short for them.
    fn refill(&mut self, old: &[Slot]) -> bool {
        let mut next = 0;
        for slot in old.iter().filter(|slot| !slot.is_empty()) {
            next = next.max(self.home(slot.word));
            let Some(place) = self.slots.get_mut(next) else { return false };
            *place = *slot;
            next += 1;
        }
        true
    }

    const fn homes(&self) -> usize {
        self.slots.len().saturating_sub(TAIL)
    }

    /// Thirteen sixteenths full: fuller, searches cross more cache lines; emptier, memory is wasted.
    const fn is_full(&self) -> bool {
        self.len >= self.homes() - self.homes() * 3 / 16
    }

    const fn home(&self, word: u64) -> usize {
        home(word, self.shared_bits, self.homes())
    }

    /// Where the slots lie and how many homes there are, for [`Outline`].
    fn outline(&self) -> (usize, usize) {
        (self.slots.as_ptr().addr(), self.homes())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the product's upper half is below homes")]
const fn home(word: u64, shared_bits: u32, homes: usize) -> usize {
    let own = word << shared_bits;
    ((own as u128 * homes as u128) >> 64) as usize
}

/// Where a table's slots were when somebody last looked, readable without its lock.
///
/// It only serves to fetch a slot into the cache while the lock is still on its way; what it
/// says may be old, and then the fetch was for nothing.
#[derive(Debug, Default)]
pub(super) struct Outline {
    addr: AtomicUsize,
    homes: AtomicUsize,
}

impl Outline {
    /// Notes where the slots are now.
    pub(super) fn note(&self, table: &Table) {
        let (addr, homes) = table.outline();
        if self.addr.load(Relaxed) != addr || self.homes.load(Relaxed) != homes {
            self.addr.store(addr, Relaxed);
            self.homes.store(homes, Relaxed);
        }
    }

    /// Begins to fetch the slots where this key would be.
    pub(super) fn fetch(&self, id: Id, shared_bits: u32) {
        let at = home(id.word, shared_bits, self.homes.load(Relaxed));
        let slot = self.addr.load(Relaxed).wrapping_add(at * SLOT_BYTES);
        fetch(slot);
        // Most keys lie within the next few slots.
        fetch(slot.wrapping_add(2 * SLOT_BYTES));
    }
}

/// Asks for the cache line of an address. Nothing is read: any address will do.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the prefetch instruction takes a raw pointer, which it never follows"
)]
pub(super) fn fetch(addr: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch does not access memory as far as the program can tell, and cannot fault.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(addr)) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) const fn fetch(_addr: usize) {}

const fn grown(homes: usize) -> usize {
    if homes < 8 { 8 } else { homes + homes / 8 }
}

const fn slots_for(homes: usize) -> usize {
    homes + TAIL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Words from a narrow range, so that homes collide.
        #[test]
        fn a_table_holds_what_a_map_holds(steps in prop::collection::vec((0_u64..400, 0_u32..3, any::<bool>()), 1..2_000)) {
            let mut table = Table::new(0);
            let mut map = BTreeMap::new();
            for (number, check, insert) in steps {
                let id = Id { word: (number + 1) << 55 | 1, check };
                match (insert, table.find(id)) {
                    (true, Err(at)) => { table.insert(at, Slot::new(id, number, check)); }
                    (false, Ok(at)) => { table.remove(at); }
                    (_, found) => prop_assert_eq!(found.is_ok(), map.contains_key(&(id.word, check))),
                }
                if insert { map.insert((id.word, check), number); } else { map.remove(&(id.word, check)); }
                if number == 0 { table.shrink(); }
            }
            let held: Vec<_> = table.slots().iter().filter(|slot| !slot.is_empty()).map(|slot| slot.word).collect();
            prop_assert_eq!(held, map.keys().map(|(word, _)| *word).collect::<Vec<_>>());
            for ((word, check), number) in map {
                let at = table.find(Id { word, check }).unwrap();
                prop_assert_eq!(table.slots()[at].value, number);
            }
        }
    }
}
