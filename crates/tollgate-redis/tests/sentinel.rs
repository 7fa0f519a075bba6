//! Sentinel: the master is found, and followed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;

use node::{complaint, daily, passes, runtime, start, take};
use tollgate_store::Slices;
use tollgate_testkit::{
    servers::RedisSentinel,
    stopwatch::Stopwatch,
    wait::{PATIENCE, wait_until},
};

// part of: B1
#[test]
fn a_failover_is_followed_and_known() {
    let mut set = RedisSentinel::start().unwrap();
    let (store, limit) = (start(&set.url()), daily("p", 100));
    let runtime = runtime();
    // Asked before the sentinels could be: it waits for them, not for a second try.
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    assert_eq!(store.epoch(), 0);

    let second = set.failover();
    wait_until(PATIENCE, || store.epoch() == 1).unwrap();
    wait_until(PATIENCE, || runtime.block_on(take(&store, &limit, "bob")).is_ok()).unwrap();
    assert_eq!(set.servers[second].ask("EXISTS ratelimit:p:bob"), "1");

    set.servers[second].kill();
    let third = set.wait_for_other_master(second);
    let watch = Stopwatch::start();
    wait_until(PATIENCE, || runtime.block_on(take(&store, &limit, "cat")).is_ok()).unwrap();
    assert!(watch.elapsed().as_secs() < 1, "{:?}", watch.elapsed());
    assert_eq!(set.servers[third].ask("EXISTS ratelimit:p:cat"), "1");
    assert_eq!(store.epoch(), 2);
    wait_until(PATIENCE, || store.health().is_up()).unwrap();
}

#[test]
fn a_master_that_nobody_knows_is_named() {
    let set = RedisSentinel::start().unwrap();
    let store = start(&set.url().replace("/main", "/other"));
    let cause = runtime().block_on(complaint(&store, &daily("p", 1), "ann"));
    assert!(cause.ends_with("it knows no master called \"other\""), "{cause}");
}

#[test]
fn sentinels_that_are_away_are_named() {
    let set = RedisSentinel::start().unwrap();
    let url = set.url();
    drop(set);
    let store = start(&url);
    let cause = runtime().block_on(complaint(&store, &daily("p", 1), "ann"));
    assert!(cause.starts_with("sentinel 127.0.0.1:"), "{cause}");
    assert!(cause.ends_with(": connection refused"), "{cause}");
}
