//! All layers on one another are still a store.

use std::{sync::Arc, time::Duration};

use tollgate_core::Clock;
use tollgate_store::{Charge, Draw, Holding, OnFailure, Slices, Store, Take};
use tollgate_testkit::{
    ManualClock, TokioClock, contract,
    remote_store::{Network, RemoteStore},
};

use super::node::{HALF, Node, Stack, alone, bucket, look, now, run};

struct Layers {
    store: Arc<Stack>,
    clock: Option<ManualClock>,
}

impl contract::Subject for Layers {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            // Timers tick in milliseconds, and never early.
            None => tokio::time::sleep(time).await,
        }
    }
}

// part of: A7, A8, A9, A12, A13, B11, B12
#[test]
fn all_layers_keep_the_contract() {
    run(async {
        let (_remote, node, clock) = alone(OnFailure::Deny);
        contract::check(&Layers { store: node.store, clock: Some(clock) }).await;
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
        let remote = Arc::new(RemoteStore::new(clock.clone()));
        remote.set(Network::Late { there: Duration::ZERO, back: Duration::from_millis(1) });
        let node = Node::new(&remote, &clock, OnFailure::Deny);
        contract::check(&Layers { store: node.store, clock: None }).await;
    });
}

#[test]
fn a_batch_is_one_call_and_each_request_is_on_its_own() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(1, 4);
    let charge = |key: &'static str, cost| [Charge { limit: &limit, key: key.as_bytes(), cost }];
    let charges = [charge("ann", 3), charge("bob", 1), charge("ann", 3), charge("cyd", 5)];
    let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
    let allowed = || -> Vec<bool> {
        let decisions = now(node.store.take_each(&takes)).unwrap();
        decisions.into_iter().map(|decision| decision.allowed).collect()
    };
    assert_eq!(allowed(), [true, true, false, false]);
    assert_eq!(remote.calls(), 1);
    // Without the store each has half: one of ann's four is left, and three of bob's.
    remote.set(Network::Refused);
    let charges = [charge("ann", 1), charge("bob", 1), charge("bob", 1), charge("cyd", 2)];
    let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
    let decisions = now(node.store.take_each(&takes)).unwrap();
    let allowed: Vec<_> = decisions.into_iter().map(|decision| decision.allowed).collect();
    assert_eq!(allowed, [false, true, false, true]);
}

// part of: B10
#[test]
fn slices_go_through_and_what_is_drawn_counts_as_gone() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let slices = node.store.inner();
    let limit = bucket(1, 20);
    let charge = Charge { limit: &limit, key: b"ann", cost: 1 };
    let drawn = now(slices.draw(Draw { charge, want: 9, left: 2 })).unwrap();
    assert_eq!((drawn.decision.allowed, drawn.slice, drawn.level.remaining), (true, 11, 10));
    let holding = [Holding { charge: Charge { cost: 4, ..charge }, level: drawn.level }];
    now(slices.put_back(&holding)).unwrap();
    now(slices.reassert(&holding)).unwrap();
    assert_eq!((slices.epoch(), remote.calls()), (0, 3));
    remote.fail_over();
    assert_eq!(slices.epoch(), 1);
    assert_eq!(look(remote.behind(), &limit, "ann").remaining, 14);
    remote.set(Network::Refused);
    assert_eq!(node.take(&limit, "ann", 0).remaining, 7);
}
