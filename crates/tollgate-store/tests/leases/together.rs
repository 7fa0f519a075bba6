//! The contract of every store with everything leased, and many threads at once.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};
use tollgate_core::{Limit, Rate, Unit};
use tollgate_store::{Charge, Leases, Mode, Store, SystemClock, Take};
use tollgate_testkit::{
    ManualClock, contract,
    slices::{SliceNode, SliceServer},
};

use crate::fleet::{leased, ready};

struct OnLeases {
    leases: Leases<Arc<SliceNode>>,
    clock: ManualClock,
}

impl contract::Subject for OnLeases {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.leases.clone())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.leases.tend_once().await;
    }

    fn mode(&self) -> Mode {
        Mode::Leased { epsilon_millionths: 1_000_000 }
    }
}

// part of: B10
#[test]
fn leases_keep_the_contract() {
    let clock = ManualClock::default();
    let wire = SliceServer::new(&clock).node("one");
    let leases = Leases::new(wire, Arc::new(clock.clone()));
    ready(contract::check(&OnLeases { leases: leases.clone(), clock }));
    assert!(leases.stats().draws > 0);
}

// part of: B9, B10
#[test]
fn many_threads_on_two_nodes_never_admit_one_too_many() {
    const LIMIT: u64 = 20_000;
    const THREADS: usize = 4;
    let server = SliceServer::new(&ManualClock::default());
    let clock = Arc::new(SystemClock::start());
    let nodes: Vec<_> =
        ["one", "two"].map(|name| Leases::new(server.node(name), clock.clone())).into();
    let limit = leased(Limit::sliding_log(Rate::per(LIMIT, Unit::Hour)).unwrap(), 5);
    let (admitted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let together = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..THREADS)
            .map(|number| {
                let (leases, limit) = (&nodes[number % 2], &limit);
                let (admitted, together) = (&admitted, &together);
                scope.spawn(move || {
                    let runtime = runtime();
                    together.wait();
                    for _ in 0..LIMIT {
                        let charges = [Charge { limit, key: b"ann", cost: 1 }];
                        let decision = runtime.block_on(leases.take(Take::now(&charges))).unwrap();
                        admitted.fetch_add(u64::from(decision.allowed), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let (nodes, over, together) = (&nodes, &over, &together);
        scope.spawn(move || {
            let runtime = runtime();
            together.wait();
            while !over.load(Ordering::Relaxed) {
                nodes.iter().for_each(|leases| runtime.block_on(leases.tend_once()));
                thread::yield_now();
            }
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    let lost: u64 = nodes.iter().map(|leases| leases.stats().lost).sum();
    let held: u64 = nodes.iter().map(|leases| leases.stats().held).sum();
    let admitted = admitted.load(Ordering::Relaxed);
    assert!(admitted <= LIMIT && admitted >= LIMIT - lost - held - LIMIT / 100, "{admitted}");
    for leases in &nodes {
        let stats = leases.stats();
        assert!(stats.decided > 0);
        assert_eq!(stats.drawn, stats.spent + stats.held + stats.returned + stats.lost);
    }
}

/// To wait for answers that another thread may bring.
fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}
