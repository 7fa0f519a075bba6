//! How long a decision waits for the store, and what happens to answers that come late.

use std::{sync::Arc, task::Context, time::Duration};

use tokio::time::Instant;
use tollgate_core::Clock;
use tollgate_store::{Answer, Charge, OnFailure, Store, Take};
use tollgate_testkit::{
    TokioClock,
    remote_store::{Network, RemoteStore},
};

use super::node::{HALF, Node, TIMEOUT, alone, bucket, look, run};

fn in_tokio_time(on_failure: OnFailure) -> (Arc<RemoteStore>, Node) {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    let remote = Arc::new(RemoteStore::new(clock.clone()));
    let node = Node::new(&remote, &clock, on_failure);
    (remote, node)
}

const fn late(there: u64, back: u64) -> Network {
    Network::Late { there: Duration::from_millis(there), back: Duration::from_millis(back) }
}

/// Timers tick in milliseconds.
const TICK: Duration = Duration::from_millis(1);

// part of: B8
#[test]
fn no_call_waits_longer_than_the_time_out() {
    run(async {
        let (remote, node) = in_tokio_time(OnFailure::Local(HALF));
        let limit = bucket(10, 10);
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        let takes = [Take::now(&charges), Take::now(&charges)];
        for network in [Network::Silent, late(0, 1_000), late(1_000, 0), late(30, 30)] {
            remote.set(network);
            let start = Instant::now();
            node.store.take(takes[0]).await.unwrap();
            node.store.take_each(&takes).await.unwrap();
            node.store.refund(&charges).await.unwrap();
            node.store.release(&charges, 1).await.unwrap();
            node.store.reset(&charges).await.unwrap_err();
            let waited = start.elapsed();
            assert!((TIMEOUT * 5..TIMEOUT * 5 + TICK * 5).contains(&waited), "{waited:?}");
        }
        assert_eq!(node.store.stats().timeouts, 20);
        assert_eq!(node.store.stats().decisions, 4 * 3);
    });
}

// part of: B8
#[test]
fn an_answer_in_time_is_the_stores() {
    run(async {
        let (remote, node) = in_tokio_time(OnFailure::Deny);
        let limit = bucket(10, 10);
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        for network in [late(0, 0), late(0, 49), late(20, 20)] {
            remote.set(network);
            let decision = node.store.take(Take::now(&charges)).await.unwrap();
            assert!(decision.allowed && decision.limit == 10);
        }
        assert_eq!(node.store.stats().timeouts, 0);
    });
}

// part of: B8
#[test]
fn a_reset_that_took_too_long_says_so() {
    run(async {
        let (remote, node) = in_tokio_time(OnFailure::Local(HALF));
        remote.set(Network::Silent);
        let limit = bucket(10, 10);
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        let error = node.store.reset(&charges).await.unwrap_err();
        assert_eq!(error.to_string(), "the store is unavailable: timed out after 50 ms");
    });
}

// Whoever leaves must be able to give places back without a runtime around.
#[test]
fn a_call_is_set_going_by_its_first_poll_even_outside_of_a_runtime() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(10, 10);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 3 }];
    node.take(&limit, "ann", 5);
    remote.set(Network::Silent);
    let mut answer = std::pin::pin!(node.store.refund(&charges));
    assert!(matches!(*answer, Answer::Waiting(_)));
    assert_eq!(look(remote.behind(), &limit, "ann").remaining, 5);
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(answer.as_mut().poll(&mut context).is_pending());
    assert_eq!(look(remote.behind(), &limit, "ann").remaining, 8);
}
