//! Deciding by slices that were taken ahead.
//!
//! A node draws some of a limit from the store, debited there at once, and spends it by itself:
//! a decision then costs one hash, one lock and a clock reading, and no round trip. What one draws is
//! sized by what the key used of late; what the whole fleet may hold is for the store to bound. Near
//! the limit the store grants ever less, until every request is decided there again.
//!
//! A slice has a life, counted from before the store was asked, and is not spent beyond it: the
//! store may forget it then. What is idle or about to end goes back ([`Leases::tend`]). One draw
//! a key is under way at a time, and whoever comes meanwhile waits for it, once. A draw whose
//! caller has left is brought to its end by `tend`, because what it brings is debited already.

mod batch;
mod flight;
mod limits;
mod shard;
mod slot;
mod stats;
mod tend;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tollgate_core::{Algorithm, Clock, Decision, Patience, Time};

pub use self::stats::LeaseStats;
use self::{
    batch::Batch,
    flight::{Flight, Flying, Orphans, Route},
    limits::Limits,
    shard::{Shards, Spot},
    slot::{Demand, Plan},
};
use crate::{Answer, Charge, Mode, Slices, Store, StoreError, Take, fingerprint::Seed};

/// A store that spends slices of limits in leased mode by itself, and asks the one behind it for
/// all else. Clones are handles to the same slices.
pub struct Leases<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    seed: Seed,
    shards: Shards,
    limits: Limits,
    orphans: Orphans,
    closed: AtomicBool,
}

/// How a request gets its answer.
enum Step {
    /// It has it: spent from a slice.
    Spent(Decision),
    /// The store decides, and nothing is taken ahead.
    Exact,
    /// Another request's draw is under way and will bring enough.
    Wait(Arc<Flight>),
    /// The store decides, and a slice comes along.
    Fly(Route),
}

impl<S: Slices> Leases<S> {
    /// Nothing held yet. The clock counts the life of slices, so it must not be set back.
    pub fn new(inner: S, clock: Arc<dyn Clock>) -> Self {
        let (shards, limits, orphans) = (Shards::new(), Limits::default(), Orphans::default());
        let (seed, closed) = (Seed::random(), AtomicBool::new(false));
        let shared = Shared { inner, clock, seed, shards, limits, orphans, closed };
        Self { shared: Arc::new(shared) }
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// What is held now, and what became of the rest.
    pub fn stats(&self) -> LeaseStats {
        self.shared.shards.stats()
    }
}

impl<S> Clone for Leases<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Slices> Shared<S> {
    fn spot(&self, charge: &Charge<'_>) -> Spot {
        Spot::new(self.seed.fingerprint(charge.key), charge.limit.tag())
    }

    /// The short way: what is in hand is spent.
    #[inline]
    fn spend(&self, spot: Spot, charge: &Charge<'_>) -> Option<Decision> {
        let now = self.clock.now();
        let mut shard = self.shards.lock(spot);
        shard.spend(spot, charge.cost, now).map(|spent| spent.decision(charge.limit.limit()))
    }

    /// Whether a request that found too little in hand goes to the store by itself. It is counted,
    /// and nothing else is done: what is not polled must not happen.
    fn goes_alone(&self, spot: Spot, charge: &Charge<'_>) -> bool {
        let Some(most) = leasable(charge) else { return true };
        let demand = self.demand(charge, most);
        let mut shard = self.shards.lock(spot);
        let Some((slot, ledger)) = shard.slot(spot, demand.now) else { return true };
        slot.expire(demand.now, ledger);
        slot.offer(demand.cost, demand.now);
        let closed = self.closed.load(Ordering::Relaxed);
        closed || matches!(slot.plan(&demand), Plan::Exact)
    }

    /// The way of a request that found too little in hand.
    fn step(&self, spot: Spot, charge: &Charge<'_>) -> Step {
        let Some(most) = leasable(charge) else { return Step::Exact };
        let demand = self.demand(charge, most);
        let mut shard = self.shards.lock(spot);
        if let Some(spent) = shard.spend(spot, charge.cost, demand.now) {
            return Step::Spent(spent.decision(charge.limit.limit()));
        }
        let Some((slot, ledger)) = shard.slot(spot, demand.now) else { return Step::Exact };
        slot.expire(demand.now, ledger);
        match slot.plan(&demand) {
            Plan::Wait(flight) if flight.board(charge.cost) => Step::Wait(flight),
            Plan::Draw { want } if !self.closed.load(Ordering::Relaxed) => {
                Step::Fly(slot.take_off(&self.limits, charge, want, ledger))
            }
            _ => Step::Exact,
        }
    }

    fn demand(&self, charge: &Charge<'_>, most: u64) -> Demand {
        let (epoch, now) = (self.inner.epoch(), self.clock.now());
        Demand { now, cost: charge.cost, most, epoch }
    }

    /// Steps that need the store, from the first poll on.
    async fn ask(self: &Arc<Self>, spot: Spot, take: Take<'_>) -> Result<Decision, StoreError> {
        let [charge] = take.charges else { return self.inner.take(take).await };
        match self.step(spot, charge) {
            Step::Spent(decision) => Ok(decision),
            Step::Exact => self.exact(spot, take).await,
            Step::Fly(route) => Flying::new(self, spot, route, charge.cost).await,
            Step::Wait(flight) => {
                flight.landed().await?;
                match self.spend(spot, charge) {
                    Some(decision) => Ok(decision),
                    // Waiting once is enough: a queue of draws would be a queue of round trips.
                    None => self.exact(spot, take).await,
                }
            }
        }
    }

    async fn exact(&self, spot: Spot, take: Take<'_>) -> Result<Decision, StoreError> {
        let epoch = self.inner.epoch();
        let decision = self.inner.take(take).await?;
        self.note(spot, &decision, epoch);
        Ok(decision)
    }

    /// Remembers a level that was asked for in this epoch. If another has begun meanwhile, it may be
    /// of a store that has forgotten: what was seen before says more.
    fn note(&self, spot: Spot, decision: &Decision, epoch: u64) {
        if self.inner.epoch() == epoch {
            self.shards.lock(spot).note(spot, decision);
        }
    }

    /// A look counts what this node holds: its own callers can still have it.
    fn with_slice(&self, spot: Spot, mut look: Decision) -> Decision {
        let left = self.shards.lock(spot).left(spot, self.clock.now());
        if left > 0 && look.limit > 0 {
            look.remaining = look.remaining.saturating_add(left).min(look.limit);
            look.allowed = true;
            look.retry_after = tollgate_core::Wait::ZERO;
        }
        look
    }
}

/// The most that the fleet may hold of this limit, if it can be decided by slices at all. A limit on what is in flight has nothing to take ahead, and where refusals are
/// charged the store must see each.
fn leasable(charge: &Charge<'_>) -> Option<u64> {
    let Mode::Leased { epsilon_millionths } = charge.limit.mode() else { return None };
    let limit = charge.limit.limit();
    if limit.algorithm() == Algorithm::Concurrency || charge.limit.counts_refused() {
        return None;
    }
    let most = u128::from(limit.capacity()) * u128::from(epsilon_millionths) / 1_000_000;
    u64::try_from(most).ok().filter(|most| *most > 0)
}

/// The charge of a request that may be decided by a slice.
#[inline]
fn leased<'a>(take: &Take<'a>) -> Option<&'a Charge<'a>> {
    match (take.charges, take.patience) {
        ([charge], Patience::None) if charge.limit.mode() != Mode::Exact => Some(charge),
        _ => None,
    }
}

impl<S: Slices> Store for Leases<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        let Some(charge) = leased(&take) else { return self.inner().take(take) };
        let spot = self.shared.spot(charge);
        if charge.cost == 0 {
            let answer = self.inner().take(take);
            return answer.then(move |look| Ok(self.shared.with_slice(spot, look?)));
        }
        match self.shared.spend(spot, charge) {
            Some(decision) => Answer::ready(decision),
            None => self.take_elsewhere(spot, take, charge),
        }
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        if !takes.iter().any(|take| leased(take).is_some()) {
            return self.inner().take_each(takes);
        }
        let mut batch = Batch::new(takes.len());
        for (at, take) in takes.iter().enumerate() {
            match self.start(*take) {
                Start::Decided(decision) => batch.decided(at, decision),
                Start::Alone => batch.alone(at, *take),
                Start::Slow(spot) => {
                    let answer = Box::pin(self.shared.ask(spot, *take));
                    batch.waiting(at, Answer::Waiting(answer));
                }
            }
        }
        batch.answer(self.inner())
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        self.inner().refund(charges)
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.inner().release(charges, lease)
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        for charge in charges {
            let spot = self.shared.spot(charge);
            self.shared.shards.lock(spot).forget(spot);
        }
        self.inner().reset(charges)
    }

    fn now(&self) -> Time {
        self.inner().now()
    }
}

/// What is known of a request before anything is set going for it.
enum Start {
    /// It was decided here.
    Decided(Decision),
    /// The store decides, and nothing is taken ahead.
    Alone,
    /// It draws, or waits for who does.
    Slow(Spot),
}

impl<S: Slices> Leases<S> {
    fn start(&self, take: Take<'_>) -> Start {
        let Some(charge) = leased(&take).filter(|charge| charge.cost > 0) else {
            return Start::Alone;
        };
        let spot = self.shared.spot(charge);
        if let Some(decision) = self.shared.spend(spot, charge) {
            return Start::Decided(decision);
        }
        if self.shared.goes_alone(spot, charge) { Start::Alone } else { Start::Slow(spot) }
    }

    #[inline(never)]
    fn take_elsewhere<'a>(
        &'a self,
        spot: Spot,
        take: Take<'a>,
        charge: &Charge<'_>,
    ) -> Answer<'a, Decision> {
        if !self.shared.goes_alone(spot, charge) {
            return Answer::Waiting(Box::pin(self.shared.ask(spot, take)));
        }
        match self.inner().take(take) {
            Answer::Waiting(answer) => Answer::Waiting(Box::pin(async move {
                let epoch = self.inner().epoch();
                let decision = answer.await?;
                self.shared.note(spot, &decision, epoch);
                Ok(decision)
            })),
            // A refusal that is known already is ready, and stays so.
            ready => ready,
        }
    }
}
