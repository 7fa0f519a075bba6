//! A fleet in virtual time: nodes with slices, one store, and what was admitted.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tollgate_core::{Clock, Decision, Limit, Rate, Time, Unit};
use tollgate_store::{Charge, Denials, Leases, Mode, NamedLimit, Slices, Store, StoreError, Take};
use tollgate_testkit::{
    ManualClock,
    history::Admission,
    slices::{SliceNode, SliceServer},
};

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// How often nodes tend their slices.
const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Node {
    pub(crate) wire: Arc<SliceNode>,
    pub(crate) leases: Leases<Arc<dyn Slices>>,
}

pub(crate) struct Fleet {
    pub(crate) clock: ManualClock,
    pub(crate) server: Arc<SliceServer>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) limit: Arc<NamedLimit>,
    pub(crate) admitted: Vec<Admission>,
    denials: bool,
    named: usize,
    next_tick: Time,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    node: usize,
    sent: Time,
    cost: u64,
    answer: Pin<Box<dyn Future<Output = Result<Decision, StoreError>>>>,
}

/// Leased at so many per cent.
pub(crate) fn leased(limit: Limit, percent: u32) -> NamedLimit {
    let mode = Mode::Leased { epsilon_millionths: percent * 10_000 };
    NamedLimit::new("p", 0, limit).in_mode(mode)
}

pub(crate) fn per_second(count: u64) -> Rate {
    Rate::per(count, Unit::Second)
}

/// Every algorithm that can be leased, with this many a second.
pub(crate) fn all_of(count: u64) -> [Limit; 6] {
    let rate = per_second(count);
    [
        Limit::token_bucket(rate, count).unwrap(),
        Limit::leaky_bucket(rate, count).unwrap(),
        Limit::fixed_window(rate).unwrap(),
        Limit::sliding_log(rate).unwrap(),
        Limit::sliding_counter(rate).unwrap(),
        Limit::sliding_window(rate).unwrap(),
    ]
}

impl Fleet {
    pub(crate) fn new(nodes: usize, limit: NamedLimit) -> Self {
        Self::start(nodes, limit, false)
    }

    /// With nodes that remember what they were refused.
    pub(crate) fn with_denials(nodes: usize, limit: NamedLimit) -> Self {
        Self::start(nodes, limit, true)
    }

    fn start(nodes: usize, limit: NamedLimit, denials: bool) -> Self {
        let clock = ManualClock::default();
        let server = SliceServer::new(&clock);
        let mut fleet = Self {
            next_tick: clock.now().after(TICK),
            clock,
            server,
            nodes: Vec::new(),
            limit: Arc::new(limit),
            admitted: Vec::new(),
            denials,
            named: 0,
            under_way: Vec::new(),
        };
        for _ in 0..nodes {
            let node = fleet.node();
            fleet.nodes.push(node);
        }
        fleet
    }

    /// A new node, of a name that no other ever had.
    fn node(&mut self) -> Node {
        self.named += 1;
        let wire = self.server.node(&format!("node {}", self.named));
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let store: Arc<dyn Slices> = match self.denials {
            true => Arc::new(Denials::new(Arc::clone(&wire), Arc::clone(&clock))),
            false => Arc::clone(&wire) as _,
        };
        let leases = Leases::new(store, clock);
        Node { wire, leases }
    }

    /// A node dies with all it holds and all it has under way, and starts again as another.
    pub(crate) fn crash(&mut self, node: usize) {
        self.under_way.retain(|one| one.node != node);
        self.nodes[node] = self.node();
    }

    /// The most that may be held ahead.
    pub(crate) fn ahead_max(&self) -> u64 {
        let Mode::Leased { epsilon_millionths } = self.limit.mode() else { return 0 };
        self.limit.limit().capacity() * u64::from(epsilon_millionths) / 1_000_000
    }

    /// Lets time pass, with nodes tending their slices meanwhile.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.clock.now().after(time);
        while self.next_tick <= end {
            self.clock.set(self.next_tick);
            self.tend();
            self.next_tick = self.next_tick.after(TICK);
        }
        self.clock.set(end);
    }

    /// Lets time pass while all nodes stand still.
    pub(crate) fn stand(&mut self, time: Duration) {
        self.clock.advance(time);
        while self.next_tick <= self.clock.now() {
            self.next_tick = self.next_tick.after(TICK);
        }
    }

    pub(crate) fn tend(&mut self) {
        for at in 0..self.nodes.len() {
            let leases = self.nodes[at].leases.clone();
            let wire = Arc::clone(&self.nodes[at].wire);
            let mut tended = Box::pin(async move { leases.tend_once().await });
            let mut steps = 0;
            while poll(tended.as_mut()).is_pending() {
                // What is held up on the wire arrives with the tending: late, but it does.
                assert!(wire.arrive(), "tending waits for nothing but the wire");
                steps += 1;
                assert!(steps < 1_000_000);
            }
        }
        self.settle();
    }

    /// One request whose answer is there at once.
    pub(crate) fn take(&mut self, node: usize, key: &[u8], cost: u64) -> Decision {
        let now = self.clock.now();
        let charge = Charge { limit: &self.limit, key, cost };
        let charges = [charge];
        let decision = ready(self.nodes[node].leases.take(Take::now(&charges))).unwrap();
        if decision.allowed && cost > 0 {
            self.admitted.push(Admission::at(now, cost));
        }
        decision
    }

    /// One request that may have to wait for the wire.
    pub(crate) fn send(&mut self, node: usize, key: &'static [u8], cost: u64) {
        let (leases, limit) = (self.nodes[node].leases.clone(), Arc::clone(&self.limit));
        let answer = Box::pin(async move {
            let charges = [Charge { limit: &limit, key, cost }];
            leases.take(Take::now(&charges)).await
        });
        self.under_way.push(UnderWay { node, sent: self.clock.now(), cost, answer });
        self.settle();
    }

    /// The oldest request of a node gives up.
    pub(crate) fn give_up(&mut self, node: usize) {
        if let Some(at) = self.under_way.iter().position(|one| one.node == node) {
            self.under_way.remove(at);
        }
    }

    /// Brings everything under way as far as it goes.
    pub(crate) fn settle(&mut self) {
        let mut progress = true;
        while progress {
            progress = false;
            let mut at = 0;
            while at < self.under_way.len() {
                let one = &mut self.under_way[at];
                let Poll::Ready(answer) = poll(one.answer.as_mut()) else {
                    at += 1;
                    continue;
                };
                progress = true;
                if answer.is_ok_and(|decision| decision.allowed) {
                    let (sent, answered, cost) = (one.sent, self.clock.now(), one.cost);
                    self.admitted.push(Admission { sent, answered, cost });
                }
                self.under_way.remove(at);
            }
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.under_way.len()
    }

    pub(crate) fn admitted_between(&self, from: Time, to: Time) -> u64 {
        let inside = self.admitted.iter().filter(|one| one.sent >= from && one.sent < to);
        inside.map(|one| one.cost).sum()
    }

    #[track_caller]
    pub(crate) fn assert_balanced(&self) {
        for node in &self.nodes {
            let stats = node.leases.stats();
            let accounted = stats.spent + stats.held + stats.returned + stats.lost;
            assert_eq!(stats.drawn, accounted, "{stats:?}");
        }
    }
}

pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match poll(Box::pin(future).as_mut()) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the answer should have been there"),
    }
}

/// A small generator, the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
