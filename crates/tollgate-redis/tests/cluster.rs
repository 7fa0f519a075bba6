//! Cluster: keys are found where they are, and where they go.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;

use std::sync::Arc;

use node::{Counts, config, daily, passes, runtime, start, take};
use tollgate_core::{Limit, Rate, Unit};
use tollgate_redis::RedisStore;
use tollgate_store::{Charge, NamedLimit, Slices, Store, Take};
use tollgate_testkit::{
    servers::{RedisCluster, slot_of},
    stopwatch::Stopwatch,
    wait::{PATIENCE, wait_until},
};

// part of: B1
#[test]
fn keys_of_all_slots_are_limited() {
    let cluster = RedisCluster::start().unwrap();
    let counts = Arc::new(Counts::default());
    let store = RedisStore::start(config(&cluster.url()), counts.clone()).unwrap();
    let limit = daily("p", 2);
    runtime().block_on(async {
        let callers = (0..300).map(|number| {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(
                async move { passes(&store, &limit, &format!("key {}", number % 100)).await },
            )
        });
        let mut passed = 0;
        for caller in callers.collect::<Vec<_>>() {
            passed += usize::from(caller.await.unwrap());
        }
        assert_eq!(passed, 200);
    });
    // Three servers, each asked a few times.
    assert!(counts.seen().0 <= 30, "{:?}", counts.seen());
    for node in &cluster.nodes[..3] {
        assert_ne!(node.ask("DBSIZE"), "0");
    }
}

#[test]
fn a_slot_that_moves_takes_its_clients_along() {
    let cluster = RedisCluster::start().unwrap();
    let (store, limit) = (start(&cluster.url()), daily("p", 100));
    let second =
        NamedLimit::new("p", 1, Limit::token_bucket(Rate::per(1, Unit::Day), 100).unwrap());
    let runtime = runtime();
    let remaining = |key: &str| runtime.block_on(take(&store, &limit, key)).unwrap().remaining;
    assert_eq!(remaining("ann"), 99);
    let slot = slot_of(b"ann");
    let owner = cluster.owner_of(slot);
    let moving = cluster.begin_move(slot, (owner + 1) % 3);
    // Still there; then gone ahead (ASK); a key that is new goes ahead at once.
    assert_eq!(remaining("ann"), 98);
    moving.take_key(b"ratelimit:p:{ann}");
    assert_eq!(remaining("ann"), 97);
    // Both limits of one client, of which one has gone ahead and the other is new.
    let charge = |limit| Charge { limit, key: b"ann", cost: 1 };
    let both = [charge(&limit), charge(&second)];
    assert!(runtime.block_on(store.take(Take::now(&both))).unwrap().allowed);
    moving.take_all_keys();
    moving.finish();
    // MOVED, and from then on straight.
    for expected in [95, 94, 93] {
        assert_eq!(remaining("ann"), expected);
    }
    wait_until(PATIENCE, || store.epoch() > 0).unwrap();
    assert!(store.health().is_up());
}

#[test]
fn a_master_that_dies_is_replaced() {
    let mut cluster = RedisCluster::start().unwrap();
    let (store, limit) = (start(&cluster.url()), daily("p", 100));
    let runtime = runtime();
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    let slot = slot_of(b"ann");
    let promoted = cluster.failover(slot);
    wait_until(PATIENCE, || store.epoch() == 1).unwrap();
    wait_until(PATIENCE, || runtime.block_on(take(&store, &limit, "ann")).is_ok()).unwrap();
    cluster.wait_until_whole();

    cluster.nodes[promoted].kill();
    wait_until(PATIENCE, || !store.health().is_up()).unwrap();
    // Clients of the others notice nothing.
    let elsewhere = ["a", "b", "c", "d", "e", "f"].into_iter();
    let elsewhere = elsewhere.filter(|key| cluster.owner_of(slot_of(key.as_bytes())) != promoted);
    for key in elsewhere.take(1) {
        assert!(runtime.block_on(passes(&store, &limit, key)));
    }
    cluster.wait_for_other_owner(slot, promoted);
    let watch = Stopwatch::start();
    wait_until(PATIENCE, || runtime.block_on(take(&store, &limit, "ann")).is_ok()).unwrap();
    assert!(watch.elapsed().as_secs() < 1, "{:?}", watch.elapsed());
    wait_until(PATIENCE, || store.health().is_up()).unwrap();
    assert!(store.epoch() >= 2);
}

#[test]
fn a_request_under_several_keys_takes_all_or_nothing() {
    let cluster = RedisCluster::start().unwrap();
    let store = start(&cluster.url());
    let (wide, narrow) = (daily("wide", 10), daily("narrow", 2));
    let charges = [
        Charge { limit: &wide, key: b"everybody", cost: 1 },
        Charge { limit: &narrow, key: b"ann", cost: 1 },
    ];
    runtime().block_on(async {
        for allowed in [true, true, false, false, false] {
            let decision = store.take(Take::now(&charges)).await.unwrap();
            assert_eq!((decision.allowed, decision.shown, decision.limit), (allowed, 1, 2));
        }
        let look = [Charge { cost: 0, ..charges[0] }];
        assert_eq!(store.take(Take::now(&look)).await.unwrap().remaining, 8);
        store.refund(&charges).await.unwrap();
        assert_eq!(store.take(Take::now(&look)).await.unwrap().remaining, 9);
        store.reset(&charges).await.unwrap();
        assert_eq!(store.take(Take::now(&look)).await.unwrap().remaining, 10);
    });
}
