//! The store fails over to a copy that is older than what it had answered.

use std::time::Duration;

use tollgate_core::{Clock, Limit, Rate, Unit};

use crate::fleet::{Fleet, MILLISECOND, Random, leased};

const LIMIT: u64 = 10_000;

fn run(fleet: &mut Fleet, random: &mut Random, milliseconds: u64) {
    for _ in 0..milliseconds * 4 {
        let node = usize::try_from(random.below(4)).unwrap();
        fleet.take(node, b"ann", 1);
        fleet.pass(MILLISECOND / 4);
    }
}

// part of: B10
#[test]
fn a_failover_does_not_refill_what_nodes_have_seen() {
    for limit in [
        Limit::token_bucket(Rate::per(1, Unit::Hour), LIMIT).unwrap(),
        Limit::fixed_window(Rate::per(LIMIT, Unit::Day)).unwrap(),
        Limit::sliding_log(Rate::per(LIMIT, Unit::Hour)).unwrap(),
        Limit::sliding_counter(Rate::per(LIMIT, Unit::Day)).unwrap(),
        Limit::sliding_window(Rate::per(LIMIT, Unit::Hour)).unwrap(),
    ] {
        let mut fleet = Fleet::new(4, leased(limit, 1));
        fleet.clock.advance(Duration::from_secs(1));
        let mut random = Random(3);
        run(&mut fleet, &mut random, 500);
        let copy = fleet.server.copy();
        run(&mut fleet, &mut random, 500);
        // Some two thousand admissions are forgotten.
        fleet.server.fail_over(copy);
        run(&mut fleet, &mut random, 4_000);
        let admitted = fleet.admitted_between(tollgate_core::Time::ZERO, fleet.clock.now());
        // What nobody had seen is less than what may be held ahead.
        assert!(admitted <= LIMIT + fleet.ahead_max(), "{limit}: {admitted}");
        assert!(admitted >= LIMIT - 2 * fleet.ahead_max(), "{limit}: {admitted}");
        fleet.assert_balanced();
    }
}

// part of: B10
#[test]
fn nothing_is_drawn_from_a_store_that_has_forgotten_before_it_is_told() {
    let limit = Limit::token_bucket(Rate::per(1, Unit::Hour), LIMIT).unwrap();
    let mut fleet = Fleet::new(1, leased(limit, 1));
    let empty = fleet.server.copy();
    let mut admitted = 0_u64;
    while fleet.take(0, b"ann", 1).allowed {
        admitted += 1;
        fleet.clock.advance(Duration::from_micros(50));
    }
    assert_eq!(admitted, LIMIT);
    fleet.server.fail_over(empty);
    // Untended, so that only the request itself can tell the store.
    assert!(!fleet.take(0, b"ann", 1).allowed);
}

#[test]
fn a_failover_that_lost_nothing_changes_nothing() {
    let limit = Limit::sliding_log(Rate::per(LIMIT, Unit::Hour)).unwrap();
    let mut fleet = Fleet::new(4, leased(limit, 1));
    let mut random = Random(5);
    run(&mut fleet, &mut random, 1_000);
    let before = fleet.server.remaining(&fleet.limit, b"ann");
    let held = fleet.server.held(&fleet.limit, b"ann");
    fleet.server.fail_over(fleet.server.copy());
    fleet.tend();
    assert!(before - fleet.server.remaining(&fleet.limit, b"ann") <= held);
    run(&mut fleet, &mut random, 3_000);
    let admitted = fleet.admitted_between(tollgate_core::Time::ZERO, fleet.clock.now());
    assert!((LIMIT - fleet.ahead_max()..=LIMIT).contains(&admitted), "{admitted}");
}

// part of: B10
#[test]
fn an_answer_of_the_forgetful_store_does_not_replace_what_was_seen() {
    let limit = Limit::token_bucket(Rate::per(1, Unit::Hour), LIMIT).unwrap();
    let mut fleet = Fleet::new(1, leased(limit, 1));
    let empty = fleet.server.copy();
    for _ in 0..LIMIT / 2 {
        assert!(fleet.take(0, b"ann", 1).allowed);
        fleet.clock.advance(Duration::from_micros(50));
    }
    while fleet.nodes[0].leases.stats().held > 0 {
        assert!(fleet.take(0, b"ann", 1).allowed);
    }
    // The draw sets out to the one store and arrives at the other.
    fleet.nodes[0].wire.hold_up(true);
    fleet.send(0, b"ann", 1);
    fleet.server.fail_over(empty);
    assert!(fleet.nodes[0].wire.arrive());
    fleet.settle();
    fleet.nodes[0].wire.hold_up(false);
    assert!(fleet.server.remaining(&fleet.limit, b"ann") > LIMIT / 2);
    fleet.tend();
    assert!(fleet.server.remaining(&fleet.limit, b"ann") <= LIMIT / 2);
}
