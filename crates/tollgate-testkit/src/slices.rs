//! A store that hands out slices to several nodes: slow, obvious, and in the test's hand.
//!
//! It is written straight from the core's states, one map entry a key, and says how slices are
//! granted in as few lines as possible; the store in Redis must grant the same. Its time is a
//! [`ManualClock`]. Each node reaches it over a wire of its own that the test can cut or hold up,
//! and the whole can fail over to a copy that is older than what was answered.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

use tollgate_core::{Ask, Clock, Decision, Judgement, Limit, Patience, State, Time};
use tollgate_store::{
    Answer, Charge, Draw, Drawn, Holding, Level, Mode, NamedLimit, Slices, Store, StoreError, Take,
};

use crate::ManualClock;

/// How long a slice may be spent.
const SLICE_LASTS: Duration = Duration::from_secs(1);

/// For how long a node sizes what it wants; a slice with less time to live is cut in proportion.
const WANTED_FOR: Duration = Duration::from_millis(500);

/// The store that all nodes share.
pub struct SliceServer {
    clock: ManualClock,
    cells: Mutex<Cells>,
    epoch: AtomicU64,
}

/// All that the store knows at one moment.
#[derive(Clone, Default)]
pub struct Cells(BTreeMap<Name, Cell>);

type Name = (String, usize, Vec<u8>);

#[derive(Clone)]
struct Cell {
    limit: Limit,
    state: State,
    held: BTreeMap<String, Held>,
}

/// What one node holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    amount: u64,
    until: Time,
}

impl Cell {
    fn new(limit: &Limit) -> Self {
        Self { limit: *limit, state: limit.fresh(), held: BTreeMap::new() }
    }

    fn remaining(&self, now: Time) -> u64 {
        self.limit.check(&self.state, ask(now, 0)).remaining
    }

    fn spend(&mut self, now: Time, amount: u64) {
        self.limit.spend(&mut self.state, ask(now, amount));
    }

    /// Forgets the slices that have ended.
    fn expire(&mut self, now: Time) {
        self.held.retain(|_, held| held.until > now);
    }

    /// Takes back what a node still holds of its slice.
    fn take_back(&mut self, node: &str, amount: u64, now: Time) {
        self.expire(now);
        if let Some(held) = self.held.remove(node) {
            self.limit.refund(&mut self.state, now, amount.min(held.amount));
        }
    }

    /// How much a node that wants so much may hold.
    fn grant(&self, want: u64, most: u64, lasts: Duration, now: Time) -> u64 {
        let free = most.saturating_sub(self.held.values().map(|held| held.amount).sum());
        let share = lasts.min(WANTED_FOR).as_micros();
        let want = u64::try_from(u128::from(want) * share / WANTED_FOR.as_micros()).unwrap();
        want.min(free - free / 4).min(self.remaining(now) / 4)
    }

    /// How long a slice drawn now may be spent: it dies with its window.
    fn lasts(&self, now: Time) -> Duration {
        match self.limit {
            Limit::FixedWindow(fixed) => {
                let window = fixed.window();
                SLICE_LASTS.min(window.start(window.index(now) + 1).since(now))
            }
            _ => SLICE_LASTS,
        }
    }

    /// Lowers the level to what was seen at `level.at`, if it is above it.
    fn lower(&mut self, level: Level, now: Time) {
        let at = level.at.min(now);
        let missing = self.remaining(at).saturating_sub(level.remaining);
        match self.limit {
            Limit::TokenBucket(_) | Limit::LeakyBucket(_) => self.spend(at, missing),
            _ => self.spend(now, missing),
        }
    }

    fn is_of_this_window(&self, at: Time, now: Time) -> bool {
        match self.limit {
            Limit::FixedWindow(fixed) => fixed.window().index(at) == fixed.window().index(now),
            _ => true,
        }
    }
}

impl Cells {
    /// The cell of a charge; what it had under other numbers is carried over.
    fn cell(&mut self, charge: &Charge<'_>, now: Time) -> &mut Cell {
        let limit = charge.limit.limit();
        let cell = self.0.entry(name(charge)).or_insert_with(|| Cell::new(limit));
        if cell.limit != *limit {
            let carried = limit.carry(&cell.limit, &cell.state, now);
            cell.state = carried.unwrap_or_else(|| limit.fresh());
            cell.limit = *limit;
        }
        cell.expire(now);
        cell
    }

    fn take(&mut self, take: &Take<'_>, now: Time) -> Decision {
        let merged = merged(take.charges);
        let ask = |cost| Ask { now, cost, patience: take.patience, lease: take.lease };
        let mut judgement = Judgement::OPEN;
        for (_, charge) in &merged {
            let cell = self.cell(charge, now);
            judgement.add(&cell.limit, cell.limit.check(&cell.state, ask(charge.cost)));
        }
        for (_, charge) in &merged {
            let cell = self.cell(charge, now);
            if judgement.allowed() {
                cell.limit.spend(&mut cell.state, ask(charge.cost));
            } else if charge.limit.counts_refused() {
                cell.limit.charge(&mut cell.state, ask(charge.cost));
            }
        }
        let shown = merged.get(judgement.shown()).map_or(0, |(position, _)| *position);
        Decision { shown, ..judgement.decision(&ask(0)) }
    }

    fn refund(&mut self, charges: &[Charge<'_>], now: Time) -> Decision {
        let mut judgement = Judgement::OPEN;
        for charge in charges {
            let cell = self.cell(charge, now);
            cell.limit.refund(&mut cell.state, now, charge.cost);
            judgement.add(&cell.limit, cell.limit.check(&cell.state, ask(now, 0)));
        }
        judgement.decision(&ask(now, 0))
    }

    fn draw(&mut self, node: &str, draw: &Draw<'_>, now: Time) -> Drawn {
        self.cell(&draw.charge, now).take_back(node, draw.left, now);
        let decision = self.take(&Take::now(&[draw.charge]), now);
        let cell = self.cell(&draw.charge, now);
        let lasts = cell.lasts(now);
        let slice = cell.grant(draw.want, most(draw.charge.limit), lasts, now);
        if slice > 0 {
            cell.spend(now, slice);
            cell.held.insert(node.to_owned(), Held { amount: slice, until: now.after(lasts) });
        }
        Drawn { decision, slice, lasts, level: Level { at: now, remaining: cell.remaining(now) } }
    }

    fn reassert(&mut self, node: &str, holding: &Holding<'_>, now: Time) {
        let cell = self.cell(&holding.charge, now);
        if !cell.is_of_this_window(holding.level.at, now) {
            return;
        }
        cell.lower(holding.level, now);
        let known = cell.held.get(node).map_or(0, |held| held.amount);
        let amount = known.max(holding.charge.cost);
        if amount > 0 {
            let until = now.after(cell.lasts(now));
            cell.held.insert(node.to_owned(), Held { amount, until });
        }
    }
}

fn name(charge: &Charge<'_>) -> Name {
    (charge.limit.policy().to_owned(), charge.limit.position(), charge.key.to_vec())
}

/// Charges of one cell added up, each with the position of its first.
fn merged<'a>(charges: &[Charge<'a>]) -> Vec<(usize, Charge<'a>)> {
    let mut merged: Vec<(usize, Charge<'a>)> = Vec::new();
    for (position, charge) in charges.iter().enumerate() {
        match merged.iter_mut().find(|(_, one)| name(one) == name(charge)) {
            Some((_, one)) => one.cost += charge.cost,
            None => merged.push((position, *charge)),
        }
    }
    merged
}

/// What the whole fleet may hold of a limit.
fn most(limit: &NamedLimit) -> u64 {
    let Mode::Leased { epsilon_millionths } = limit.mode() else { return 0 };
    let most = u128::from(limit.limit().capacity()) * u128::from(epsilon_millionths) / 1_000_000;
    u64::try_from(most).unwrap()
}

fn ask(now: Time, cost: u64) -> Ask {
    Ask { now, cost, patience: Patience::None, lease: 0 }
}

impl SliceServer {
    /// A store that knows nothing yet.
    pub fn new(clock: &ManualClock) -> Arc<Self> {
        let (cells, epoch) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { clock: clock.clone(), cells, epoch })
    }

    /// One more node that shares the store.
    pub fn node(self: &Arc<Self>, name: &str) -> Arc<SliceNode> {
        Arc::new(SliceNode {
            server: Arc::clone(self),
            name: name.to_owned(),
            wire: Mutex::default(),
            back: Mutex::default(),
            held_up: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        })
    }

    /// What it knows now, for a failover to come.
    pub fn copy(&self) -> Cells {
        self.cells.lock().unwrap().clone()
    }

    /// Goes on from an older copy: what was written since is lost.
    pub fn fail_over(&self, copy: Cells) {
        *self.cells.lock().unwrap() = copy;
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// What all nodes may still spend of a key, as far as the store knows.
    pub fn held(&self, limit: &NamedLimit, key: &[u8]) -> u64 {
        let now = self.clock.now();
        let charge = Charge { limit, key, cost: 0 };
        let mut cells = self.cells.lock().unwrap();
        cells.cell(&charge, now).held.values().map(|held| held.amount).sum()
    }

    /// What is left of a key in the store.
    pub fn remaining(&self, limit: &NamedLimit, key: &[u8]) -> u64 {
        let now = self.clock.now();
        self.cells.lock().unwrap().cell(&Charge { limit, key, cost: 0 }, now).remaining(now)
    }
}

/// The store as one node sees it.
pub struct SliceNode {
    server: Arc<SliceServer>,
    name: String,
    wire: Mutex<VecDeque<Parcel>>,
    /// Answers on their way back.
    back: Mutex<VecDeque<Return>>,
    held_up: AtomicBool,
    cut: AtomicBool,
    calls: AtomicU64,
}

/// A call on its way: what to do there, and what to do if it gets lost.
struct Parcel {
    execute: Box<dyn FnOnce(&SliceServer) -> Return + Send>,
    get_lost: Box<dyn FnOnce() + Send>,
}

type Return = Box<dyn FnOnce() + Send>;

/// An answer on its way back.
struct Reply<T> {
    answer: Mutex<Option<Result<T, StoreError>>>,
    given: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl<T> Reply<T> {
    /// The first answer counts: whoever gave up does not hear of a late one.
    fn give(&self, answer: Result<T, StoreError>) {
        if self.given.swap(true, Ordering::SeqCst) {
            return;
        }
        *self.answer.lock().unwrap() = Some(answer);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

impl SliceNode {
    /// From now on calls wait on the wire until [`SliceNode::arrive`] or [`SliceNode::lose`].
    pub fn hold_up(&self, held_up: bool) {
        self.held_up.store(held_up, Ordering::SeqCst);
    }

    /// From now on calls fail at once.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    /// Lets the oldest call on the wire be executed; its answer is on the way back then.
    pub fn execute(&self) -> bool {
        let parcel = self.wire.lock().unwrap().pop_front();
        let back = parcel.map(|parcel| (parcel.execute)(&self.server));
        let executed = back.is_some();
        self.back.lock().unwrap().extend(back);
        executed
    }

    /// Lets the oldest answer arrive, or else the oldest call and its answer at once.
    pub fn arrive(&self) -> bool {
        if self.back.lock().unwrap().is_empty() {
            self.execute();
        }
        let back = self.back.lock().unwrap().pop_front();
        back.map(|back| back()).is_some()
    }

    /// Lets the oldest call on the wire time out; `executed`: the store did what was asked, and
    /// only its answer is lost.
    pub fn lose(&self, executed: bool) -> bool {
        let Some(parcel) = self.wire.lock().unwrap().pop_front() else { return false };
        (parcel.get_lost)();
        if executed {
            drop((parcel.execute)(&self.server));
        }
        true
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn call<'a, T: Send + 'static>(
        &'a self,
        work: impl FnOnce(&SliceServer) -> T + Send + 'static,
    ) -> Answer<'a, T> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.cut.load(Ordering::SeqCst) {
            let cause = "cut off".to_owned();
            return Answer::Ready(Some(Err(StoreError::Unavailable(cause))));
        }
        let mut work = Some(work);
        let (answer, given, waker) = (Mutex::new(None), AtomicBool::new(false), Mutex::default());
        let reply = Arc::new(Reply { answer, given, waker });
        Answer::Waiting(Box::pin(std::future::poll_fn(move |context| {
            // Set going by the first poll, as every store's calls are.
            if let Some(work) = work.take() {
                if !self.held_up.load(Ordering::SeqCst) {
                    return Poll::Ready(Ok(work(&self.server)));
                }
                let (there, lost) = (Arc::clone(&reply), Arc::clone(&reply));
                self.wire.lock().unwrap().push_back(Parcel {
                    execute: Box::new(move |server| {
                        let answer = work(server);
                        Box::new(move || there.give(Ok(answer)))
                    }),
                    get_lost: Box::new(move || {
                        lost.give(Err(StoreError::Unavailable("timed out".to_owned())));
                    }),
                });
            }
            *reply.waker.lock().unwrap() = Some(context.waker().clone());
            match reply.answer.lock().unwrap().take() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            }
        })))
    }
}

impl SliceServer {
    fn cells<T>(&self, work: impl FnOnce(&mut Cells, Time) -> T) -> T {
        let now = self.clock.now();
        work(&mut self.cells.lock().unwrap(), now)
    }
}

/// A charge that outlives its caller.
struct Owned {
    limit: NamedLimit,
    key: Vec<u8>,
    cost: u64,
}

impl Owned {
    fn of(charge: &Charge<'_>) -> Self {
        Self { limit: charge.limit.clone(), key: charge.key.to_vec(), cost: charge.cost }
    }

    fn charge(&self) -> Charge<'_> {
        Charge { limit: &self.limit, key: &self.key, cost: self.cost }
    }
}

fn owned(charges: &[Charge<'_>]) -> Vec<Owned> {
    charges.iter().map(Owned::of).collect()
}

fn lent(owned: &[Owned]) -> Vec<Charge<'_>> {
    owned.iter().map(Owned::charge).collect()
}

impl Store for SliceNode {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        let (charges, patience, lease) = (owned(take.charges), take.patience, take.lease);
        self.call(move |server| {
            let take = Take { charges: &lent(&charges), patience, lease };
            server.cells(|cells, now| cells.take(&take, now))
        })
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        let takes: Vec<_> =
            takes.iter().map(|take| (owned(take.charges), take.patience, take.lease)).collect();
        self.call(move |server| {
            let each = takes.iter().map(|(charges, patience, lease)| {
                let take = Take { charges: &lent(charges), patience: *patience, lease: *lease };
                server.cells(|cells, now| cells.take(&take, now))
            });
            each.collect()
        })
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        let charges = owned(charges);
        self.call(move |server| server.cells(|cells, now| cells.refund(&lent(&charges), now)))
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        let charges = owned(charges);
        self.call(move |server| {
            server.cells(|cells, now| {
                for charge in &lent(&charges) {
                    let cell = cells.cell(charge, now);
                    cell.limit.release(&mut cell.state, lease);
                }
            });
        })
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        let names: Vec<_> = charges.iter().map(name).collect();
        self.call(move |server| {
            server.cells(|cells, _| {
                names.iter().for_each(|name| {
                    cells.0.remove(name);
                })
            })
        })
    }

    fn now(&self) -> Time {
        self.server.clock.now()
    }
}

impl Slices for SliceNode {
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        let (charge, want, left) = (Owned::of(&draw.charge), draw.want, draw.left);
        let node = self.name.clone();
        self.call(move |server| {
            let draw = Draw { charge: charge.charge(), want, left };
            server.cells(|cells, now| cells.draw(&node, &draw, now))
        })
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        let charges: Vec<_> = holdings.iter().map(|one| Owned::of(&one.charge)).collect();
        let node = self.name.clone();
        self.call(move |server| {
            server.cells(|cells, now| {
                for charge in lent(&charges) {
                    cells.cell(&charge, now).take_back(&node, charge.cost, now);
                }
            });
        })
    }

    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        let holdings: Vec<_> =
            holdings.iter().map(|one| (Owned::of(&one.charge), one.level)).collect();
        let node = self.name.clone();
        self.call(move |server| {
            server.cells(|cells, now| {
                for (charge, level) in &holdings {
                    let holding = Holding { charge: charge.charge(), level: *level };
                    cells.reassert(&node, &holding, now);
                }
            });
        })
    }

    fn epoch(&self) -> u64 {
        self.server.epoch.load(Ordering::SeqCst)
    }
}
