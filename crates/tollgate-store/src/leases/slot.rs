//! What a node knows of one key: its slice, the level last seen, and how much it is used.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Decision, Limit, Time, Wait};

use super::{
    flight::{Flight, Route},
    limits::{self, Limits},
    shard::End,
    stats::Ledger,
};
use crate::{Charge, Drawn, Level, NamedLimit};

/// After this long half of what was used counts no more. What is left of a steady use is then what
/// half a second uses: two draws a second, whatever the rate, and half a slice's life in reserve.
const HALF_LIFE_MICROS: u64 = 350_000;

/// A slice should serve this many requests like the one that draws it. For one a draw and a return
/// cost as much as two requests by themselves; a higher bound would keep callers who wait for a
/// slow store from ever showing that slices would help them.
const WORTH: u64 = 1;

/// How long the store is not asked for a slice after it had none to give.
const DRY: Duration = Duration::from_millis(50);

/// Unused for so long, a slice goes back.
const IDLE_MICROS: u64 = 300_000;

/// A slice that ends within this time goes back unless it will be spent: more than the time
/// between two looks, so that none ends unseen.
const ENDING_MICROS: u64 = 150_000;

/// How long the level of a key that nobody asks for any more is remembered.
const REMEMBERED_MICROS: u64 = 10_000_000;

/// One part of a slice's life that is not used: two clocks may differ in speed, and a thread may be
/// stopped between reading the clock and spending.
const RESERVE: u32 = 128;

/// One key. Times are this node's unless it says otherwise, in microseconds.
#[derive(Default)]
pub(super) struct Slot {
    /// In hand.
    left: u64,
    /// From when on it must not be spent.
    ends: u64,
    /// The store's level when it was drawn.
    remaining: u64,
    /// The store's time less ours, wrapping.
    ahead: u64,
    /// When the limit is full again if all is spent, by the store's clock.
    full_at: u64,
    /// When something was last asked for.
    last: u64,
    /// Asked for since `since`.
    used: u64,
    /// Asked for before, counting ever less.
    recent: u64,
    since: u64,
    /// What only draws need.
    kept: Option<Box<Kept>>,
}

/// What outlives the request that drew.
struct Kept {
    limit: Arc<NamedLimit>,
    key: Arc<[u8]>,
    level: Level,
    /// Of the store, when the level was seen.
    epoch: Option<u64>,
    flight: Option<Arc<Flight>>,
    /// How much the last draw brought.
    granted: Option<u64>,
    dry_until: u64,
}

/// What was spent from a slice, for the answer.
pub(super) struct Spent {
    remaining: u64,
    at: u64,
    full_at: u64,
}

impl Spent {
    /// The answer: what the store had left when it was last asked, and what is in hand.
    #[inline]
    pub(super) fn decision(&self, limit: &Limit) -> Decision {
        Decision {
            allowed: true,
            limit: limit.capacity(),
            remaining: self.remaining,
            retry_after: Wait::ZERO,
            reset_after: Duration::from_micros(self.full_at.saturating_sub(self.at)),
            wait: Duration::ZERO,
            at: Time::from_micros(self.at),
            shown: 0,
        }
    }
}

/// A request that found too little in hand.
pub(super) struct Demand {
    pub(super) now: Time,
    pub(super) cost: u64,
    /// What the fleet may hold.
    pub(super) most: u64,
    /// The store's.
    pub(super) epoch: u64,
}

/// What such a request should do.
pub(super) enum Plan {
    /// Ask the store for itself.
    Exact,
    /// Wait for what another draws.
    Wait(Arc<Flight>),
    /// Draw, to hold so much in all.
    Draw { want: u64 },
}

/// A slice on its way back, or a level to be asserted.
pub(super) struct Parcel {
    pub(super) limit: Arc<NamedLimit>,
    pub(super) key: Arc<[u8]>,
    pub(super) amount: u64,
    pub(super) level: Level,
    pub(super) flight: Option<Arc<Flight>>,
}

impl Slot {
    pub(super) fn new(now: Time) -> Self {
        let now = now.as_micros();
        Self { since: now, last: now, ..Self::default() }
    }

    /// Spends, if there is enough and its time has not come.
    #[inline]
    pub(super) fn spend(&mut self, cost: u64, now: Time) -> Option<Spent> {
        let now = now.as_micros();
        if self.left < cost || now >= self.ends {
            return None;
        }
        self.left -= cost;
        self.used += cost;
        self.last = now;
        let remaining = self.remaining + self.left;
        Some(Spent { remaining, at: now.wrapping_add(self.ahead), full_at: self.full_at })
    }

    /// What is in hand.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    pub(super) const fn left_at(&self, now: Time) -> u64 {
        if now.as_micros() < self.ends { self.left } else { 0 }
    }

    /// Gives up what must not be spent any more.
    pub(super) fn expire(&mut self, now: Time, ledger: &mut Ledger) {
        if now.as_micros() >= self.ends {
            ledger.lost += self.left;
            self.left = 0;
        }
    }

    /// Counts a request that could not be served from here.
    pub(super) fn offer(&mut self, cost: u64, now: Time) {
        self.used = self.used.saturating_add(cost);
        self.last = now.as_micros();
    }

    pub(super) fn flight(&self) -> Option<&Arc<Flight>> {
        self.kept.as_ref()?.flight.as_ref()
    }

    /// Whether the store may have forgotten what we know.
    fn is_stale(&self, epoch: u64) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.epoch.is_some_and(|seen| seen != epoch))
    }

    pub(super) fn plan(&mut self, demand: &Demand) -> Plan {
        if let Some(flight) = self.flight() {
            let waits = flight.has_room(demand.cost, demand.now);
            return if waits { Plan::Wait(Arc::clone(flight)) } else { Plan::Exact };
        }
        let want = self.want(demand);
        match want == 0 && self.left == 0 && !self.is_stale(demand.epoch) {
            true => Plan::Exact,
            false => Plan::Draw { want },
        }
    }

    /// How much to hold in all; 0 where slices are not worth it, or there are none to be had.
    fn want(&mut self, demand: &Demand) -> u64 {
        let now = demand.now.as_micros();
        let coming = self.coming(now).saturating_sub(demand.cost);
        let dry = self.kept.as_ref().is_some_and(|kept| now < kept.dry_until);
        if dry || demand.most < demand.cost || coming < demand.cost.saturating_mul(WORTH) {
            return 0;
        }
        coming.min(demand.most)
    }

    /// What the next half second will use, if it is like the last.
    fn coming(&mut self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.since);
        let halved =
            self.recent.checked_shr(u32::try_from(passed / HALF_LIFE_MICROS).unwrap_or(64));
        let halved = halved.unwrap_or(0);
        // Between two halvings in a straight line.
        let part = u128::from(halved) * u128::from(passed % HALF_LIFE_MICROS);
        let part = part / u128::from(2 * HALF_LIFE_MICROS);
        self.recent = halved.saturating_sub(u64::try_from(part).unwrap_or(0));
        self.recent = self.recent.saturating_add(std::mem::take(&mut self.used));
        self.since = now.max(self.since);
        self.recent
    }

    /// Begins a draw: what is in hand goes along, to be counted in.
    pub(super) fn take_off(
        &mut self,
        limits: &Limits,
        charge: &Charge<'_>,
        want: u64,
        ledger: &mut Ledger,
    ) -> Route {
        let left = std::mem::take(&mut self.left);
        ledger.flying += left;
        ledger.draws += 1;
        let kept = self.kept.get_or_insert_with(|| Box::new(Kept::new(limits, charge)));
        if !limits::is_same(&kept.limit, charge.limit) {
            kept.limit = limits.shared(charge.limit);
        }
        let expected = kept.granted.map_or(want, |granted| want.min(granted.saturating_mul(2)));
        let flight = Arc::new(Flight::new(expected, Time::from_micros(self.since)));
        kept.flight = Some(Arc::clone(&flight));
        let (limit, key) = (Arc::clone(&kept.limit), Arc::clone(&kept.key));
        let seen = kept.epoch.map(|epoch| (epoch, kept.level));
        Route { limit, key, want, left, seen, flight }
    }

    /// Ends a draw with what it brought.
    pub(super) fn land(&mut self, end: &End<'_>, drawn: &Drawn) {
        let Some(kept) = &mut self.kept else { return };
        kept.flight = None;
        // A level from a store that may have forgotten says less than what was seen before.
        if !end.epoch_ended || kept.epoch.is_none() {
            kept.level = drawn.level;
            kept.epoch = Some(end.epoch);
        }
        if end.want > 0 {
            kept.granted = Some(drawn.slice);
        }
        if end.want > 0 && drawn.slice == 0 {
            // A window that is about to end has none either, and the next one has.
            let dry = DRY.min(drawn.lasts.saturating_sub(end.now.since(end.asked)));
            kept.dry_until = end.now.after(dry).as_micros();
        }
        self.full_at = full_at(kept.limit.limit(), drawn);
        self.left = drawn.slice;
        self.ends = end.asked.after(drawn.lasts - drawn.lasts / RESERVE).as_micros();
        self.remaining = drawn.level.remaining;
        self.ahead = drawn.level.at.as_micros().wrapping_sub(end.asked.as_micros());
    }

    /// Ends a flight that brought nothing.
    pub(super) fn clear(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.flight = None;
        }
    }

    /// Remembers a level that the store showed while nothing was drawn.
    pub(super) fn note(&mut self, decision: &Decision) {
        if let Some(kept) = &mut self.kept
            && kept.level.at < decision.at
        {
            kept.level = Level { at: decision.at, remaining: decision.remaining };
        }
    }

    /// What is in hand, taken out to be given back, if it will not be spent. `all`: whatever it is.
    pub(super) fn unpack(&mut self, now: Time, all: bool, ledger: &mut Ledger) -> Option<Parcel> {
        self.expire(now, ledger);
        if self.left == 0 || self.flight().is_some() {
            return None;
        }
        if !all && !self.is_idle(now.as_micros()) {
            return None;
        }
        let kept = self.kept.as_mut()?;
        // Nobody waits for it: it brings nothing.
        let flight = Arc::new(Flight::new(0, now));
        kept.flight = Some(Arc::clone(&flight));
        let amount = std::mem::take(&mut self.left);
        ledger.flying += amount;
        let (limit, key, level) = (Arc::clone(&kept.limit), Arc::clone(&kept.key), kept.level);
        Some(Parcel { limit, key, amount, level, flight: Some(flight) })
    }

    fn is_idle(&mut self, now: u64) -> bool {
        let life = self.ends.saturating_sub(now);
        let coming = u128::from(self.coming(now)) * u128::from(life) / 500_000;
        now.saturating_sub(self.last) >= IDLE_MICROS
            || (life < ENDING_MICROS && coming < u128::from(self.left))
    }

    /// What the store may have forgotten of this key.
    pub(super) fn forgotten(&self, epoch: u64) -> Option<Parcel> {
        let kept = self.kept.as_ref()?;
        if !self.is_stale(epoch) || kept.flight.is_some() {
            return None;
        }
        let (limit, key, level) = (Arc::clone(&kept.limit), Arc::clone(&kept.key), kept.level);
        Some(Parcel { limit, key, amount: self.left, level, flight: None })
    }

    /// Notes that the store has been told.
    pub(super) fn told(&mut self, epoch: u64) {
        if let Some(kept) = &mut self.kept
            && kept.flight.is_none()
        {
            kept.epoch = Some(epoch);
        }
    }

    /// Whether nothing here is worth keeping.
    pub(super) fn is_spent(&mut self, now: Time) -> bool {
        if self.left > 0 || self.flight().is_some() || self.coming(now.as_micros()) > 1 {
            return false;
        }
        let quiet = now.as_micros().saturating_sub(self.last);
        let known = self.kept.is_some() && now.as_micros().wrapping_add(self.ahead) < self.full_at;
        quiet >= if known { REMEMBERED_MICROS } else { HALF_LIFE_MICROS }
    }
}

impl Kept {
    fn new(limits: &Limits, charge: &Charge<'_>) -> Self {
        Self {
            limit: limits.shared(charge.limit),
            key: charge.key.into(),
            level: Level { at: Time::ZERO, remaining: 0 },
            epoch: None,
            flight: None,
            granted: None,
            dry_until: 0,
        }
    }
}

/// When the limit is full again if all of the slice is spent. Never too early: a caller who waits
/// for it finds what it was promised.
fn full_at(limit: &Limit, drawn: &Drawn) -> u64 {
    let at = drawn.level.at.as_micros();
    let own = u64::try_from(drawn.decision.reset_after.as_micros()).unwrap_or(u64::MAX);
    let after = match (limit, limit.rate()) {
        (Limit::TokenBucket(_) | Limit::LeakyBucket(_), Some(rate)) if rate.count > 0 => {
            let flow = u128::from(drawn.slice) * u128::from(rate.period_micros());
            own.saturating_add(
                u64::try_from(flow.div_ceil(u128::from(rate.count))).unwrap_or(u64::MAX),
            )
        }
        // Whether the share of this window counts in the next depends on how much it will be.
        (Limit::SlidingCounter(_), Some(rate)) => {
            let period = rate.period_micros();
            2 * period - at % period
        }
        _ if drawn.decision.allowed => own,
        _ => limit.memory_micros(),
    };
    at.saturating_add(after)
}
