//! What happens while a draw or a parcel is under way.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Limit, Rate, Unit};
use tollgate_store::{Charge, Store};

use crate::fleet::{Fleet, MILLISECOND, leased, poll, ready};

/// One node that has used a key for a while and holds nothing of it.
fn warm() -> Fleet {
    let limit = Limit::sliding_log(Rate::per(1_000, Unit::Hour)).unwrap();
    let mut fleet = Fleet::new(1, leased(limit, 10));
    for _ in 0..40 {
        assert!(fleet.take(0, b"ann", 1).allowed);
        fleet.clock.advance(MILLISECOND);
    }
    fleet
}

/// Spends what the node holds.
fn exhaust(fleet: &mut Fleet) {
    while fleet.nodes[0].leases.stats().held > 0 {
        assert!(fleet.take(0, b"ann", 1).allowed);
    }
}

/// A node that holds something.
fn holding() -> Fleet {
    let mut fleet = warm();
    exhaust(&mut fleet);
    assert!(fleet.take(0, b"ann", 1).allowed);
    assert!(fleet.nodes[0].leases.stats().held > 10);
    fleet
}

#[test]
fn who_comes_during_a_draw_waits_for_it_and_draws_no_other() {
    let mut fleet = warm();
    exhaust(&mut fleet);
    let (draws, admitted) = (fleet.nodes[0].leases.stats().draws, fleet.admitted.len());
    fleet.nodes[0].wire.hold_up(true);
    (0..10).for_each(|_| fleet.send(0, b"ann", 1));
    assert_eq!(fleet.waiting(), 10);
    assert!(fleet.nodes[0].wire.arrive());
    fleet.settle();
    assert_eq!((fleet.waiting(), fleet.admitted.len()), (0, admitted + 10));
    assert_eq!(fleet.nodes[0].leases.stats().draws, draws + 1);
    assert!(!fleet.nodes[0].wire.arrive(), "one call was enough");
}

#[test]
fn more_than_a_draw_will_bring_do_not_wait_for_it() {
    let mut fleet = warm();
    exhaust(&mut fleet);
    fleet.nodes[0].wire.hold_up(true);
    (0..500).for_each(|_| fleet.send(0, b"ann", 1));
    assert!(fleet.nodes[0].wire.arrive());
    fleet.settle();
    let mut calls = 1;
    while fleet.nodes[0].wire.arrive() {
        calls += 1;
    }
    fleet.settle();
    assert!(calls > 300, "{calls}");
    assert_eq!(fleet.waiting(), 0);
    fleet.assert_balanced();
}

#[test]
fn a_draw_that_fails_fails_for_all_who_waited() {
    let mut fleet = warm();
    exhaust(&mut fleet);
    let admitted = fleet.admitted.len();
    fleet.nodes[0].wire.hold_up(true);
    (0..10).for_each(|_| fleet.send(0, b"ann", 1));
    assert!(fleet.nodes[0].wire.lose(false));
    fleet.settle();
    assert_eq!((fleet.waiting(), fleet.admitted.len()), (0, admitted));
    assert!(!fleet.nodes[0].wire.arrive(), "nobody asks a dead store once more");
}

#[test]
fn a_draw_whose_caller_has_left_is_brought_to_its_end() {
    let mut fleet = warm();
    exhaust(&mut fleet);
    fleet.nodes[0].wire.hold_up(true);
    (0..3).for_each(|_| fleet.send(0, b"ann", 1));
    fleet.give_up(0);
    fleet.nodes[0].wire.hold_up(false);
    assert!(fleet.nodes[0].wire.arrive());
    fleet.settle();
    assert_eq!(fleet.waiting(), 2, "those who wait do not bring it on");
    fleet.tend();
    assert_eq!(fleet.waiting(), 0);
    assert!(fleet.nodes[0].leases.stats().held > 0, "and its slice is there");
    fleet.assert_balanced();
}

#[test]
fn what_a_lost_draw_carried_is_not_spent() {
    for executed in [false, true] {
        let mut fleet = holding();
        let before = fleet.nodes[0].leases.stats();
        fleet.nodes[0].wire.hold_up(true);
        // More than is in hand, so that the store is asked and what is in hand goes along.
        fleet.send(0, b"ann", before.held + 1);
        assert_eq!(fleet.nodes[0].leases.stats().held, before.held);
        assert!(fleet.nodes[0].wire.lose(executed));
        fleet.settle();
        let after = fleet.nodes[0].leases.stats();
        assert_eq!((after.held, after.lost), (0, before.lost + before.held));
        fleet.assert_balanced();
    }
}

#[test]
fn what_is_in_hand_counts_for_a_costly_request() {
    let mut fleet = holding();
    let held = fleet.nodes[0].leases.stats().held;
    let level = fleet.server.remaining(&fleet.limit, b"ann");
    // Ten per cent may be held, and so may a request cost that is decided by slices.
    assert!(held + level > 100);
    while fleet.server.remaining(&fleet.limit, b"ann") + fleet.nodes[0].leases.stats().held > 100 {
        assert!(fleet.take(0, b"ann", 1).allowed);
        fleet.clock.advance(MILLISECOND);
    }
    let rest = fleet.server.remaining(&fleet.limit, b"ann") + fleet.nodes[0].leases.stats().held;
    assert!(fleet.take(0, b"ann", rest).allowed);
    assert!(!fleet.take(0, b"ann", 1).allowed);
}

#[test]
fn nothing_is_drawn_while_a_slice_is_on_its_way_back() {
    let mut fleet = holding();
    let before = fleet.nodes[0].leases.stats();
    fleet.clock.advance(Duration::from_millis(400));
    fleet.nodes[0].wire.hold_up(true);
    let leases = fleet.nodes[0].leases.clone();
    let mut tended = Box::pin(async move { leases.tend_once().await });
    assert!(poll(tended.as_mut()).is_pending());
    (0..20).for_each(|_| fleet.send(0, b"ann", 1));
    assert_eq!(fleet.nodes[0].leases.stats().draws, before.draws);
    while fleet.nodes[0].wire.arrive() {}
    fleet.settle();
    assert!(poll(tended.as_mut()).is_ready());
    let after = fleet.nodes[0].leases.stats();
    assert_eq!((after.held, after.returned), (0, before.returned + before.held));
    assert_eq!(fleet.waiting(), 0);
    fleet.assert_balanced();
}

#[test]
fn a_slice_that_was_drawn_before_a_reset_is_not_spent_after_it() {
    let mut fleet = warm();
    exhaust(&mut fleet);
    fleet.nodes[0].wire.hold_up(true);
    fleet.send(0, b"ann", 1);
    assert!(fleet.nodes[0].wire.execute());
    fleet.nodes[0].wire.hold_up(false);
    let limit = Arc::clone(&fleet.limit);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 0 }];
    ready(fleet.nodes[0].leases.reset(&charges)).unwrap();
    assert!(fleet.nodes[0].wire.arrive());
    fleet.settle();
    let stats = fleet.nodes[0].leases.stats();
    assert_eq!((fleet.waiting(), stats.held), (0, 0));
    assert!(stats.lost > 0);
    fleet.assert_balanced();
}
