//! What can be done without the store, and what cannot.

use std::time::Duration;

use tollgate_core::{Limit, Rate, Unit, Wait};
use tollgate_store::{Charge, Condition, Health, NamedLimit, OnFailure, Store, Take};
use tollgate_testkit::remote_store::Network;

use super::node::{HALF, alone, begin, bucket, now, run};

// part of: B6
#[test]
fn without_the_store_everything_passes_if_so_configured() {
    let (remote, node, _clock) = alone(OnFailure::Allow);
    let limit = bucket(1, 2);
    assert!(node.take(&limit, "ann", 2).allowed && !node.take(&limit, "ann", 1).allowed);
    remote.set(Network::Refused);
    for cost in [1, 2, 1_000] {
        let decision = node.take(&limit, "bob", cost);
        assert!(decision.allowed && decision.wait.is_zero());
        assert_eq!((decision.limit, decision.remaining, decision.at), (2, 2, begin()));
    }
    assert_eq!(node.store.stats().decisions, 3);
}

// part of: B6
#[test]
fn without_the_store_everything_is_refused_if_so_configured() {
    let (remote, node, _clock) = alone(OnFailure::Deny);
    let limit = bucket(1, 2);
    assert!(node.take(&limit, "ann", 1).allowed);
    remote.set(Network::Refused);
    let decision = node.take(&limit, "bob", 1);
    assert_eq!((decision.allowed, decision.limit, decision.remaining), (false, 2, 0));
    assert_eq!(decision.retry_after, Wait::For(Duration::from_secs(1)));
    remote.set(Network::AtOnce);
    assert!(node.take(&limit, "bob", 1).allowed);
}

// part of: B6
#[test]
fn what_was_decided_locally_is_not_charged_to_the_store() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(1, 10);
    assert_eq!(node.take(&limit, "ann", 1).remaining, 9);
    remote.set(Network::Refused);
    assert_eq!(node.take(&limit, "ann", 4).remaining, 0);
    remote.set(Network::AtOnce);
    assert_eq!(node.take(&limit, "ann", 1).remaining, 8);
    // But what a node has given at its share it does not give again.
    remote.set(Network::Refused);
    assert_eq!(node.take(&limit, "ann", 0).remaining, 0);
}

#[test]
fn a_refund_without_the_store_goes_to_the_share() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(1, 10);
    remote.set(Network::Refused);
    node.take(&limit, "ann", 4);
    let refund = |cost| {
        let charges = [Charge { limit: &limit, key: b"ann", cost }];
        now(node.store.refund(&charges)).unwrap().remaining
    };
    assert_eq!((refund(3), refund(100)), (4, 5));
}

// A reset that only one node has done would be a lie.
#[test]
fn a_reset_without_the_store_is_an_error_and_changes_nothing() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(1, 10);
    node.take(&limit, "ann", 10);
    remote.set(Network::Refused);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 0 }];
    let error = now(node.store.reset(&charges)).unwrap_err();
    assert_eq!(error.to_string(), "the store is unavailable: connection refused");
    assert!(!node.take(&limit, "ann", 1).allowed);
    remote.set(Network::AtOnce);
    assert!(!node.take(&limit, "ann", 1).allowed);
    now(node.store.reset(&charges)).unwrap();
    assert!(node.take(&limit, "ann", 10).allowed);
    // The reset also forgot what was kept for the day the store goes.
    now(node.store.reset(&charges)).unwrap();
    remote.set(Network::Refused);
    assert_eq!(node.take(&limit, "ann", 0).remaining, 5);
}

// part of: A6
#[test]
fn places_given_back_while_the_store_is_away_are_free_in_it_afterwards() {
    run(async {
        let (remote, node, _clock) = alone(OnFailure::Local(HALF));
        let health = Health::new();
        let watching = tokio::spawn(node.store.watch(&health, "Redis"));
        let limit = Limit::concurrency(4, Duration::from_secs(3_600)).unwrap();
        let limit = NamedLimit::new("p", 0, limit);
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        let take = |lease| now(node.store.take(Take { lease, ..Take::now(&charges) })).unwrap();
        assert!((1..5).all(|lease| take(lease).allowed) && !take(5).allowed);
        remote.set(Network::Refused);
        health.set(Condition::Down("connection refused".to_owned()));
        tokio::task::yield_now().await;
        for lease in 1..4 {
            now(node.store.release(&charges, lease)).unwrap();
        }
        assert_eq!(remote.behind().take_now(Take { lease: 9, ..Take::now(&charges) }).remaining, 0);
        remote.set(Network::AtOnce);
        health.set(Condition::Up);
        tokio::task::yield_now().await;
        assert_eq!(take(6).remaining, 2);
        watching.abort();
    });
}

// part of: A6
#[test]
fn a_store_that_takes_releases_badly_is_told_again_and_holds_up_no_warning() {
    run(async {
        let (remote, node, _clock) = alone(OnFailure::Local(HALF));
        let health = Health::new();
        let watching = tokio::spawn(node.store.watch(&health, "Redis"));
        let away = || Condition::Down("connection refused".to_owned());
        let limit = Limit::concurrency(2, Duration::from_secs(3_600)).unwrap();
        let limit = NamedLimit::new("p", 0, limit);
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        let take = |lease| now(node.store.take(Take { lease, ..Take::now(&charges) })).unwrap();
        assert!(take(1).allowed && take(2).allowed);
        remote.set(Network::Refused);
        health.set(away());
        now(node.store.release(&charges, 1)).unwrap();
        // It says that it is there, and takes nothing.
        health.set(Condition::Up);
        tokio::task::yield_now().await;
        assert!(!node.store.stats().is_active());
        health.set(away());
        tokio::task::yield_now().await;
        assert!(node.store.stats().is_active());
        remote.set(Network::AtOnce);
        health.set(Condition::Up);
        tokio::task::yield_now().await;
        assert_eq!(take(3).remaining, 0);
        watching.abort();
    });
}

// part of: A12, B6
#[test]
fn a_wall_stays_a_wall_and_a_cost_above_the_share_never_passes() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    remote.set(Network::Refused);
    let wall = NamedLimit::new("w", 0, Limit::fixed_window(Rate::per(0, Unit::Second)).unwrap());
    assert_eq!(node.take(&wall, "ann", 1).retry_after, Wait::Never);
    assert_eq!(node.take(&bucket(10, 10), "ann", 6).retry_after, Wait::Never);
    assert!(node.take(&bucket(10, 10), "ann", 5).allowed);
}
