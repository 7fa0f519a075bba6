//! One thing asked of the counters, kept whole until a call takes it along.
//!
//! A request is made at once when somebody asks and owns all it needs: it may wait for its turn on
//! another task while the caller is gone.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tollgate_core::{Limit, Patience, Time};
use tollgate_store::{Charge, Draw, Holding, Mode, NamedLimit, Take};

use crate::names::{Names, slot};

/// How many limits of one request are handled without an allocation.
const INLINE: usize = 2;

/// How many microseconds, and how many tokens, a reservation may reach ahead: half of what a double
/// counts exactly.
const AHEAD_MAX: u64 = 1 << 52;

/// What is asked, and of which counters.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) items: SmallVec<[Item; INLINE]>,
}

/// What is done to the counters of a request.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Takes from all or from none.
    Take {
        /// Whether the caller would wait.
        patience: Patience,
        /// Whose places they are, unique over the fleet.
        holder: Arc<str>,
    },
    /// Gives back.
    Refund {
        /// Whose places are given back; those that end soonest if it is empty.
        holder: Arc<str>,
    },
    /// Frees the places of a holder.
    Release {
        /// Whose places they are.
        holder: Arc<str>,
    },
    /// Forgets.
    Reset,
    /// Takes, and takes ahead.
    Draw {
        /// The node that will spend it.
        node: Arc<str>,
        /// How much more than its cost.
        want: u64,
        /// What the node holds from before.
        left: u64,
    },
    /// Gives back what a node holds.
    PutBack {
        /// The node that held it.
        node: Arc<str>,
    },
    /// Says again what a node holds.
    Reassert {
        /// The node that holds it.
        node: Arc<str>,
    },
}

/// One counter of a request.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its name in Redis.
    pub(crate) name: Vec<u8>,
    /// The name of the list of who holds slices of it, where the action needs it.
    pub(crate) held: Vec<u8>,
    pub(crate) limit: Limit,
    /// Which numbers they are, for comparing limits quickly.
    pub(crate) tag: u128,
    pub(crate) cost: u64,
    pub(crate) counts_refused: bool,
    pub(crate) ttl: Option<Duration>,
    /// How much the fleet may hold ahead.
    pub(crate) ahead_max: u64,
    /// The level last seen, where a holding is told of.
    pub(crate) level: Option<(Time, u64)>,
    /// Its place among what the caller asked.
    pub(crate) position: usize,
}

impl Request {
    /// Takes from all limits or from none; places are held under the name `lease`.
    pub(crate) fn take(names: &Names, take: Take<'_>) -> Self {
        let places = |charge: &Charge<'_>| matches!(charge.limit.limit(), Limit::Concurrency(_));
        let holder = match take.charges.iter().any(places) {
            true => holder(take.lease),
            false => Arc::default(),
        };
        let items = merged(names, take.charges);
        let patience = bounded(take.patience, &items);
        Self { action: Action::Take { patience, holder }, items }
    }

    /// Gives back to all limits.
    pub(crate) fn refund(names: &Names, charges: &[Charge<'_>]) -> Self {
        Self { action: Action::Refund { holder: Arc::default() }, items: items(names, charges) }
    }

    /// Frees the places held under the name `lease`.
    pub(crate) fn release(names: &Names, charges: &[Charge<'_>], lease: u64) -> Self {
        let action = Action::Release { holder: holder(lease) };
        Self { action, items: items(names, charges) }
    }

    /// Forgets the keys, and who holds slices of them.
    pub(crate) fn reset(names: &Names, charges: &[Charge<'_>]) -> Self {
        let items = charges
            .iter()
            .enumerate()
            .map(|(at, charge)| item(names, at, charge).leased(names, charge));
        Self { action: Action::Reset, items: items.collect() }
    }

    /// Takes for a request and as much ahead as the fleet may hold.
    pub(crate) fn draw(names: &Names, node: &Arc<str>, draw: Draw<'_>) -> Self {
        let action = Action::Draw { node: Arc::clone(node), want: draw.want, left: draw.left };
        let item = item(names, 0, &draw.charge).leased(names, &draw.charge);
        Self { action, items: SmallVec::from_iter([item]) }
    }

    /// Gives back what this node holds.
    pub(crate) fn put_back(names: &Names, node: &Arc<str>, holdings: &[Holding<'_>]) -> Self {
        let action = Action::PutBack { node: Arc::clone(node) };
        Self { action, items: held(names, holdings) }
    }

    /// Says again what this node holds, and the level last seen.
    pub(crate) fn reassert(names: &Names, node: &Arc<str>, holdings: &[Holding<'_>]) -> Self {
        let action = Action::Reassert { node: Arc::clone(node) };
        Self { action, items: held(names, holdings) }
    }

    /// The slots of a cluster that it touches, each once; one for all limits of one client.
    pub(crate) fn slots(&self) -> SmallVec<[u16; INLINE]> {
        let mut slots: SmallVec<[u16; INLINE]> = SmallVec::new();
        for item in &self.items {
            let slot = slot(&item.name);
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        slots
    }

    /// The same asked of the counters in one slot only.
    pub(crate) fn within(&self, wanted: u16) -> Self {
        let items = self.items.iter().filter(|item| slot(&item.name) == wanted).cloned().collect();
        Self { action: self.action.clone(), items }
    }

    /// What gives back a take that passed.
    pub(crate) fn undoing(&self) -> Self {
        let holder = match &self.action {
            Action::Take { holder, .. } => Arc::clone(holder),
            _ => Arc::default(),
        };
        Self { action: Action::Refund { holder }, items: self.items.clone() }
    }

    /// Whether it may overtake others: nothing that is done later undoes it.
    pub(crate) fn is_free(&self) -> bool {
        match &self.action {
            Action::Take { patience: Patience::None, holder } => holder.is_empty(),
            _ => false,
        }
    }

    /// Whether the answer is a decision.
    pub(crate) const fn decides(&self) -> bool {
        matches!(self.action, Action::Take { .. } | Action::Refund { .. } | Action::Draw { .. })
    }
}

impl Item {
    /// The same with what slices need.
    fn leased(mut self, names: &Names, charge: &Charge<'_>) -> Self {
        self.held = names.held(charge.limit, charge.key);
        self.ahead_max = ahead_max(charge.limit);
        self
    }
}

/// Without the node: a caller behind a load balancer gives back at another than it took at. That
/// names differ over the fleet is for whoever gives them.
fn holder(lease: u64) -> Arc<str> {
    lease.to_string().into()
}

fn item(names: &Names, position: usize, charge: &Charge<'_>) -> Item {
    Item {
        name: names.counter(charge.limit, charge.key),
        held: Vec::new(),
        limit: *charge.limit.limit(),
        tag: charge.limit.tag(),
        cost: charge.cost,
        counts_refused: charge.limit.counts_refused(),
        ttl: charge.limit.ttl(),
        ahead_max: 0,
        level: None,
        position,
    }
}

fn items(names: &Names, charges: &[Charge<'_>]) -> SmallVec<[Item; INLINE]> {
    charges.iter().enumerate().map(|(at, charge)| item(names, at, charge)).collect()
}

fn held(names: &Names, holdings: &[Holding<'_>]) -> SmallVec<[Item; INLINE]> {
    let items = holdings.iter().enumerate().map(|(at, holding)| {
        let item = item(names, at, &holding.charge).leased(names, &holding.charge);
        Item { level: Some((holding.level.at, holding.level.remaining)), ..item }
    });
    items.collect()
}

/// The charges with equal counters added up: what the first takes is not there for the second.
fn merged(names: &Names, charges: &[Charge<'_>]) -> SmallVec<[Item; INLINE]> {
    let mut items: SmallVec<[Item; INLINE]> = SmallVec::new();
    for (position, charge) in charges.iter().enumerate() {
        let new = item(names, position, charge);
        match items.iter_mut().find(|old| old.tag == new.tag && old.name == new.name) {
            Some(old) => old.cost = old.cost.saturating_add(new.cost),
            None => items.push(new),
        }
    }
    items
}

/// Patience as far as a script can count it: a hundred years, and 2^52 tokens of any bucket.
fn bounded(patience: Patience, items: &[Item]) -> Patience {
    let Patience::Micros(micros) = patience else { return patience };
    let longest = items.iter().map(|item| match &item.limit {
        Limit::TokenBucket(bucket) | Limit::LeakyBucket(bucket) => {
            let (tokens, period) = bucket.flow();
            u128::from(AHEAD_MAX) * u128::from(period) / u128::from(tokens.max(1))
        }
        _ => u128::from(AHEAD_MAX),
    });
    let longest = longest.min().and_then(|micros| u64::try_from(micros).ok());
    Patience::Micros(micros.min(longest.unwrap_or(AHEAD_MAX)).min(AHEAD_MAX))
}

/// How much of a limit the whole fleet may hold ahead.
fn ahead_max(limit: &NamedLimit) -> u64 {
    match limit.mode() {
        Mode::Exact => 0,
        Mode::Leased { epsilon_millionths } => {
            let share = u128::from(limit.limit().capacity()) * u128::from(epsilon_millionths);
            u64::try_from(share / 1_000_000).unwrap_or(u64::MAX)
        }
    }
}
