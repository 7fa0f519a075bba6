//! The store in this process's memory.
//!
//! Keys are kept as fingerprints under a secret seed: no string is stored, and nobody can choose
//! keys that collide. Shards of a sorted table each have a lock; all limits of one key lie in one
//! shard, so an ordinary decision takes one lock, for well under a microsecond. Shards grow by an
//! eighth and are small, so no insert waits for a large table to move.

mod bound;
mod list;
mod packed;
mod saved;
mod seen;
mod shard;
mod table;

use std::{path::Path, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tollgate_core::{Ask, Clock, Decision, Judgement, Patience, State, Time};

pub use self::{
    bound::{AtBound, Bound, MemoryConfig, MemoryStats},
    saved::LoadError,
};
use self::{shard::Shard, table::Outline};
use crate::{
    Answer, Charge, NamedLimit, Store, Take,
    fingerprint::{Fingerprint, Seed},
};

/// How many requests are fetched ahead: about as many lines as a core waits for at once.
const AHEAD: usize = 16;

/// How many limits of one request are handled without an allocation.
const INLINE: usize = 4;

/// A shard on a cache line of its own: two cores at work on neighbours do not disturb each other.
#[repr(align(64))]
struct Line(Mutex<Shard>);

/// Counters in memory. See the module for how.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    seed: Seed,
    shards: Box<[Line]>,
    outlines: Box<[Outline]>,
    shard_bits: u32,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(config: MemoryConfig, clock: Arc<dyn Clock>) -> Self {
        let shard_bits = config.shard_bits();
        let bound = config.per_shard(shard_bits);
        let shards =
            (0..1_usize << shard_bits).map(|_| Line(Mutex::new(Shard::new(bound, shard_bits))));
        let shards: Box<[_]> = shards.collect();
        let outlines = shards.iter().map(|_| Outline::default()).collect();
        Self { clock, seed: Seed::random(), shards, outlines, shard_bits }
    }

    /// Takes from all limits or from none, without waiting for anything but a lock.
    pub fn take_now(&self, take: Take<'_>) -> Decision {
        let [charge] = take.charges else { return self.take_several(take, self.clock.now()) };
        let fingerprint = self.fetch(charge);
        // While the slot is on its way from memory the clock is read and the lock is taken.
        self.take_one(&take, charge, fingerprint, self.clock.now())
    }

    /// The same for many requests, each on its own. The slots of some are fetched ahead together,
    /// so that on many keys memory is waited for once and not each time.
    pub fn take_each_now(&self, takes: &[Take<'_>], mut each: impl FnMut(Decision)) {
        for some in takes.chunks(AHEAD) {
            let fetched: SmallVec<[Option<Fingerprint>; AHEAD]> = some
                .iter()
                .map(|take| take.charges.first().map(|charge| self.fetch(charge)))
                .collect();
            let now = self.clock.now();
            for (take, fingerprint) in some.iter().zip(fetched) {
                each(match (take.charges, fingerprint) {
                    ([charge], Some(fingerprint)) => self.take_one(take, charge, fingerprint, now),
                    _ => self.take_several(*take, now),
                });
            }
        }
    }

    /// Whose key it is; what is kept for it is on its way from memory then.
    #[inline]
    fn fetch(&self, charge: &Charge<'_>) -> Fingerprint {
        let fingerprint = self.seed.fingerprint(charge.key);
        let number = fingerprint.shard(self.shard_bits);
        self.outlines[number].fetch(fingerprint.under(charge.limit.tag()), self.shard_bits);
        table::fetch(std::ptr::from_ref(&self.shards[number]).addr());
        fingerprint
    }

    #[inline]
    fn take_one(
        &self,
        take: &Take<'_>,
        charge: &Charge<'_>,
        fingerprint: Fingerprint,
        now: Time,
    ) -> Decision {
        let number = fingerprint.shard(self.shard_bits);
        let mut shard = self.shards[number].0.lock();
        let ask = ask(take, charge, shard.time(now));
        let verdict = shard.take(fingerprint, charge.limit, ask);
        self.outlines[number].note(shard.table());
        drop(shard);
        Decision::of_one(charge.limit.limit().capacity(), verdict, ask.now)
    }

    /// Gives back to all limits.
    pub fn refund_now(&self, charges: &[Charge<'_>]) -> Decision {
        let now = self.clock.now();
        let mut judgement = Judgement::OPEN;
        let mut ask = Ask { now, cost: 0, patience: Patience::None, lease: 0 };
        for charge in charges {
            let fingerprint = self.seed.fingerprint(charge.key);
            let mut shard = self.shard(fingerprint).lock();
            ask.now = shard.time(now);
            judgement.add(
                charge.limit.limit(),
                shard.refund(fingerprint, charge.limit, ask, charge.cost),
            );
        }
        judgement.decision(&ask)
    }

    /// Frees the places held under this name.
    pub fn release_now(&self, charges: &[Charge<'_>], lease: u64) {
        let now = self.clock.now();
        for charge in charges {
            let fingerprint = self.seed.fingerprint(charge.key);
            let mut shard = self.shard(fingerprint).lock();
            let now = shard.time(now);
            shard.release(fingerprint, charge.limit, now, lease);
        }
    }

    /// Forgets the keys.
    pub fn reset_now(&self, charges: &[Charge<'_>]) {
        for charge in charges {
            let fingerprint = self.seed.fingerprint(charge.key);
            self.shard(fingerprint).lock().forget(fingerprint, charge.limit);
        }
    }

    /// How full the store is, and what happened at its bound.
    pub fn stats(&self) -> MemoryStats {
        self.shards.iter().map(|shard| shard.0.lock().stats()).sum()
    }

    /// Drops what is idle from one shard and gives its memory back. Called for each shard in turn,
    /// a flood of unique keys leaves nothing behind even when nobody comes any more.
    pub fn tidy(&self, turn: usize) {
        let now = self.clock.now();
        let mut shard = self.shards[turn % self.shards.len()].0.lock();
        let now = shard.time(now);
        shard.tidy(now);
    }

    /// How many calls of [`MemoryStore::tidy`] go once round.
    pub const fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Writes all counters to a file, whole or not at all. `limits` are written along, so that a
    /// start with other numbers can carry the levels over.
    pub fn save(&self, path: &Path, limits: &[NamedLimit]) -> std::io::Result<u64> {
        saved::save(self, path, limits)
    }

    /// Fills an empty store from a file, and returns the limits that were saved with it.
    pub fn load(&mut self, path: &Path) -> Result<Vec<NamedLimit>, LoadError> {
        saved::load(self, path)
    }

    fn shard(&self, fingerprint: Fingerprint) -> &Mutex<Shard> {
        &self.shards[fingerprint.shard(self.shard_bits)].0
    }

    /// The way of a request with several limits: lock all shards in order, ask all, then settle.
    #[inline(never)]
    fn take_several(&self, take: Take<'_>, now: Time) -> Decision {
        let mut asked = self.merged(take.charges);
        let mut locked = Locked::lock(self, asked.iter().map(|one| one.fingerprint));
        let mut judgement = Judgement::OPEN;
        let mut at = now;
        for one in &mut asked {
            let shard = locked.shard(self, one.fingerprint);
            at = shard.time(now);
            let ask = Ask { cost: one.cost, ..ask(&take, &take.charges[one.position], at) };
            one.state = shard.lift(one.fingerprint, one.limit, at);
            let no_room = shard.no_room(one.fingerprint, one.limit);
            let verdict = no_room.unwrap_or_else(|| one.limit.limit().check(&one.state, ask));
            judgement.add(one.limit.limit(), verdict);
        }
        let shown = asked.get(judgement.shown()).map_or(0, |one| one.position);
        for mut one in asked {
            let shard = locked.shard(self, one.fingerprint);
            let at = shard.time(now);
            let ask = Ask { cost: one.cost, ..ask(&take, &take.charges[one.position], at) };
            if judgement.allowed() {
                one.limit.limit().spend(&mut one.state, ask);
            } else if one.limit.counts_refused() {
                one.limit.limit().charge(&mut one.state, ask);
            }
            shard.put(one.fingerprint, one.limit, one.state, at);
        }
        let ask = Ask { now: at, cost: 0, patience: take.patience, lease: take.lease };
        Decision { shown, ..judgement.decision(&ask) }
    }

    /// The charges with equal limit and key added up: what the first takes is not there for the
    /// second.
    fn merged<'a>(&self, charges: &[Charge<'a>]) -> SmallVec<[Asked<'a>; INLINE]> {
        let mut asked: SmallVec<[Asked<'a>; INLINE]> = SmallVec::new();
        for (position, charge) in charges.iter().enumerate() {
            let fingerprint = self.seed.fingerprint(charge.key);
            let tag = charge.limit.tag();
            let twin =
                |one: &&mut Asked<'_>| one.fingerprint == fingerprint && one.limit.tag() == tag;
            if let Some(one) = asked.iter_mut().find(twin) {
                one.cost = one.cost.saturating_add(charge.cost);
                continue;
            }
            let (limit, cost, state) = (charge.limit, charge.cost, charge.limit.limit().fresh());
            asked.push(Asked { position, fingerprint, limit, cost, state });
        }
        asked
    }
}

/// One limit of a request under way.
struct Asked<'a> {
    position: usize,
    fingerprint: Fingerprint,
    limit: &'a NamedLimit,
    cost: u64,
    state: State,
}

/// The shards of a request, locked in the order of their numbers so that no two requests can wait
/// for each other.
struct Locked<'a> {
    shards: SmallVec<[(usize, MutexGuard<'a, Shard>); INLINE]>,
}

impl<'a> Locked<'a> {
    fn lock(store: &'a MemoryStore, fingerprints: impl Iterator<Item = Fingerprint>) -> Self {
        let mut numbers: SmallVec<[usize; INLINE]> =
            fingerprints.map(|fingerprint| fingerprint.shard(store.shard_bits)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let shards = numbers.into_iter().map(|number| (number, store.shards[number].0.lock()));
        Self { shards: shards.collect() }
    }

    fn shard(&mut self, store: &MemoryStore, fingerprint: Fingerprint) -> &mut Shard {
        let number = fingerprint.shard(store.shard_bits);
        let held = self.shards.iter_mut().find(|(held, _)| *held == number);
        held.map(|(_, shard)| &mut **shard).expect("every shard of the request was locked before")
    }
}

fn ask(take: &Take<'_>, charge: &Charge<'_>, now: Time) -> Ask {
    Ask { now, cost: charge.cost, patience: take.patience, lease: take.lease }
}

impl Store for MemoryStore {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        Answer::ready(self.take_now(take))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        let mut decisions = Vec::with_capacity(takes.len());
        self.take_each_now(takes, |decision| decisions.push(decision));
        Answer::ready(decisions)
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        Answer::ready(self.refund_now(charges))
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.release_now(charges, lease);
        Answer::ready(())
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        self.reset_now(charges);
        Answer::ready(())
    }

    fn now(&self) -> Time {
        self.clock.now()
    }
}
