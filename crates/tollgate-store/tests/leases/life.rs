//! A slice's life: drawn, spent, given back, lost; and what has none.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Limit, Patience, Rate, Unit};
use tollgate_store::{Answer, Charge, Leases, NamedLimit, Store, Take};
use tollgate_testkit::{ManualClock, slices::SliceServer};

use crate::fleet::{Fleet, MILLISECOND, leased, per_second, ready};

/// So many requests, one a millisecond.
fn steady(fleet: &mut Fleet, node: usize, count: u64) {
    for _ in 0..count {
        assert!(fleet.take(node, b"ann", 1).allowed);
        fleet.pass(MILLISECOND);
    }
}

fn minute(count: u64) -> Limit {
    Limit::token_bucket(Rate::per(count, Unit::Minute), count).unwrap()
}

// part of: B10
#[test]
fn well_below_the_limit_decisions_need_hardly_a_round_trip() {
    const KEYS: u64 = 200;
    let mut fleet = Fleet::new(1, leased(minute(100_000), 1));
    let round = |fleet: &mut Fleet| {
        for key in 0..KEYS {
            assert!(fleet.take(0, &key.to_le_bytes(), 1).allowed);
            fleet.pass(Duration::from_micros(5_000 / KEYS));
        }
    };
    // Two hundred requests a second and key: a second to see the rate, then two to count.
    (0..200).for_each(|_| round(&mut fleet));
    let before = fleet.nodes[0].wire.calls();
    (0..400).for_each(|_| round(&mut fleet));
    let calls = fleet.nodes[0].wire.calls() - before;
    assert!(calls * 100 <= KEYS * 400 * 2, "{calls} round trips for {} decisions", KEYS * 400);
}

#[test]
fn a_slice_is_debited_before_it_is_spent() {
    let hour = Rate::per(10_000, Unit::Hour);
    for limit in [
        Limit::fixed_window(hour).unwrap(),
        Limit::sliding_log(hour).unwrap(),
        Limit::sliding_counter(hour).unwrap(),
        Limit::sliding_window(hour).unwrap(),
    ] {
        let mut fleet = Fleet::new(1, leased(limit, 1));
        steady(&mut fleet, 0, 50);
        let stats = fleet.nodes[0].leases.stats();
        assert!(stats.held > 0 && stats.decided > 0, "{limit}: {stats:?}");
        let used = 10_000 - fleet.server.remaining(&fleet.limit, b"ann");
        assert_eq!(used, 50 + stats.held, "{limit}");
        assert!(fleet.server.held(&fleet.limit, b"ann") <= fleet.ahead_max(), "{limit}");
    }
}

// part of: B10
#[test]
fn idle_slices_go_back() {
    for limit in [minute(60_000), Limit::sliding_log(Rate::per(10_000, Unit::Minute)).unwrap()] {
        let mut fleet = Fleet::new(1, leased(limit, 1));
        steady(&mut fleet, 0, 50);
        assert!(fleet.nodes[0].leases.stats().held > 0);
        fleet.pass(Duration::from_millis(500));
        let stats = fleet.nodes[0].leases.stats();
        assert_eq!((stats.held, stats.slices, stats.lost), (0, 0, 0), "{limit}: {stats:?}");
        assert_eq!(fleet.server.held(&fleet.limit, b"ann"), 0);
        if let Limit::SlidingLog(_) = limit {
            assert_eq!(fleet.server.remaining(&fleet.limit, b"ann"), 10_000 - 50);
        }
        fleet.assert_balanced();
    }
}

#[tokio::test]
async fn a_shutdown_gives_everything_back() {
    let mut fleet =
        Fleet::new(1, leased(Limit::sliding_log(Rate::per(10_000, Unit::Hour)).unwrap(), 1));
    steady(&mut fleet, 0, 50);
    assert!(fleet.nodes[0].leases.stats().held > 0);
    fleet.nodes[0].leases.close().await;
    assert_eq!(fleet.nodes[0].leases.stats().held, 0);
    assert_eq!(fleet.server.remaining(&fleet.limit, b"ann"), 10_000 - 50);
    // Afterwards every request is the store's.
    steady(&mut fleet, 0, 50);
    assert_eq!(fleet.nodes[0].leases.stats().held, 0);
    assert_eq!(fleet.server.remaining(&fleet.limit, b"ann"), 10_000 - 100);
    fleet.assert_balanced();
}

// part of: B10
#[test]
fn a_crash_loses_a_slice_and_nothing_spends_it_twice() {
    let mut fleet =
        Fleet::new(2, leased(Limit::sliding_log(Rate::per(1_000, Unit::Hour)).unwrap(), 10));
    steady(&mut fleet, 0, 50);
    let held = fleet.nodes[0].leases.stats().held;
    assert!(held > 0);
    fleet.crash(0);
    fleet.pass(Duration::from_secs(5));
    let mut admitted = 0;
    while fleet.take(admitted % 2, b"ann", 1).allowed {
        admitted += 1;
    }
    assert_eq!(u64::try_from(admitted).unwrap(), 1_000 - 50 - held);
}

// part of: B10
#[test]
fn a_slice_is_not_spent_after_its_time() {
    let mut fleet = Fleet::new(1, leased(minute(60_000), 1));
    steady(&mut fleet, 0, 50);
    let before = fleet.nodes[0].leases.stats();
    assert!(before.held > 0);
    // The node stands still, tending included.
    fleet.clock.advance(Duration::from_secs(2));
    assert!(fleet.take(0, b"ann", 1).allowed);
    let after = fleet.nodes[0].leases.stats();
    assert_eq!((after.decided, after.lost), (before.decided, before.held));
    fleet.assert_balanced();
}

#[test]
fn a_reset_key_is_new_and_its_slice_is_gone() {
    let limit = Limit::sliding_log(Rate::per(1_000, Unit::Hour)).unwrap();
    let mut fleet = Fleet::new(1, leased(limit, 10));
    steady(&mut fleet, 0, 50);
    assert!(fleet.nodes[0].leases.stats().held > 0);
    let charge = [Charge { limit: &fleet.limit, key: b"ann", cost: 0 }];
    ready(fleet.nodes[0].leases.reset(&charge)).unwrap();
    assert_eq!(fleet.nodes[0].leases.stats().held, 0);
    assert_eq!(fleet.take(0, b"ann", 1).remaining, 999);
    fleet.assert_balanced();
}

#[test]
fn what_cannot_be_taken_ahead_goes_to_the_store() {
    let hour = Rate::per(1_000, Unit::Hour);
    let bucket = Limit::token_bucket(hour, 1_000).unwrap();
    let places = Limit::concurrency(1_000, Duration::from_secs(60)).unwrap();
    let cases = [
        ("exact", NamedLimit::new("p", 0, bucket), 1, Patience::None),
        ("nothing to hold", leased(Limit::token_bucket(hour, 50).unwrap(), 1), 1, Patience::None),
        ("refusals count", leased(bucket, 10).counting_refused(true), 1, Patience::None),
        ("places", leased(places, 10), 1, Patience::None),
        ("patient", leased(bucket, 10), 1, Patience::Micros(1)),
        ("a look", leased(bucket, 10), 0, Patience::None),
        ("costly", leased(bucket, 1), 11, Patience::None),
    ];
    for (case, limit, cost, patience) in cases {
        let fleet = Fleet::new(1, limit);
        for lease in 0..40 {
            let charges = [Charge { limit: &fleet.limit, key: b"ann", cost }];
            let take = Take { charges: &charges, patience, lease };
            ready(fleet.nodes[0].leases.take(take)).unwrap();
            fleet.clock.advance(MILLISECOND);
        }
        let stats = fleet.nodes[0].leases.stats();
        assert_eq!((stats.draws, stats.drawn), (0, 0), "{case}");
        assert_eq!(fleet.nodes[0].wire.calls(), 40, "{case}");
    }
}

#[test]
fn requests_with_several_limits_are_the_stores() {
    let fleet = Fleet::new(1, leased(minute(60_000), 1));
    let other = leased(minute(50_000), 1);
    let charge = |limit| Charge { limit, key: b"ann", cost: 1 };
    for _ in 0..40 {
        let charges = [charge(&fleet.limit), charge(&other)];
        assert!(ready(fleet.nodes[0].leases.take(Take::now(&charges))).unwrap().allowed);
    }
    assert_eq!(fleet.nodes[0].leases.stats().draws, 0);
}

#[test]
fn a_decision_from_a_slice_is_ready() {
    let mut fleet = Fleet::new(1, leased(minute(60_000), 1));
    steady(&mut fleet, 0, 50);
    let charges = [Charge { limit: &fleet.limit, key: b"ann", cost: 1 }];
    let answer = fleet.nodes[0].leases.take(Take::now(&charges));
    assert!(matches!(answer, Answer::Ready(Some(Ok(_)))));
    let takes = [Take::now(&charges), Take::now(&charges)];
    let answer = fleet.nodes[0].leases.take_each(&takes);
    assert!(matches!(answer, Answer::Ready(Some(Ok(decisions))) if decisions.len() == 2));
}

#[test]
fn a_batch_is_decided_one_by_one_and_in_order() {
    let limit = leased(Limit::sliding_log(Rate::per(1_000, Unit::Hour)).unwrap(), 10);
    let narrow = NamedLimit::new("q", 0, Limit::sliding_log(Rate::per(3, Unit::Hour)).unwrap());
    let narrow = narrow.in_mode(limit.mode());
    let mut fleet = Fleet::new(1, limit);
    steady(&mut fleet, 0, 50);
    let charges: Vec<_> = (0..20)
        .map(|at| {
            let limit = if at % 2 == 0 { &*fleet.limit } else { &narrow };
            [Charge { limit, key: b"ann", cost: 1 }]
        })
        .collect();
    let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
    let decisions = ready(fleet.nodes[0].leases.take_each(&takes)).unwrap();
    let narrow: Vec<_> = decisions.iter().skip(1).step_by(2).map(|one| one.allowed).collect();
    assert_eq!(narrow, [true, true, true, false, false, false, false, false, false, false]);
    assert!(decisions.iter().step_by(2).all(|one| one.allowed && one.limit == 1_000));
    fleet.assert_balanced();
}

#[test]
fn the_number_of_keys_is_bounded_and_the_rest_is_decided_by_the_store() {
    let clock = ManualClock::default();
    let wire = SliceServer::new(&clock).node("one");
    let leases = Leases::new(Arc::clone(&wire), Arc::new(clock.clone()));
    let limit = leased(Limit::fixed_window(per_second(10_000)).unwrap(), 1);
    for key in 0..400_000_u64 {
        let charges = [Charge { limit: &limit, key: &key.to_le_bytes(), cost: 1 }];
        assert!(ready(leases.take(Take::now(&charges))).unwrap().allowed);
    }
    assert!((200_000..=262_144).contains(&leases.stats().keys), "{}", leases.stats().keys);
    // And an attack leaves nothing behind.
    clock.advance(Duration::from_secs(1));
    ready(leases.tend_once());
    assert_eq!(leases.stats().keys, 0);
}
