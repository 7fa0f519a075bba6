//! What a decision from a slice shows is what its caller then gets.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Wait};

use crate::fleet::{Fleet, all_of, leased, per_second};

const LIMIT: u64 = 300;

/// Requests with pauses of so many microseconds, then the last decision.
fn used(limit: Limit, steps: &[(u64, u64)]) -> (Fleet, tollgate_core::Decision) {
    let mut fleet = Fleet::new(1, leased(limit, 10));
    let mut last = fleet.take(0, b"ann", 1);
    for (pause, cost) in steps {
        fleet.pass(Duration::from_micros(*pause));
        last = fleet.take(0, b"ann", *cost);
    }
    (fleet, last)
}

fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..9_000, 1_u64..3), 20..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // part of: A13
    #[test]
    fn all_that_remains_can_be_had_at_once(steps in steps(), which in 0_usize..6) {
        let limit = all_of(LIMIT)[which];
        let (mut fleet, last) = used(limit, &steps);
        for at in 0..last.remaining {
            prop_assert!(fleet.take(0, b"ann", 1).allowed, "{limit}: {at} of {last:?}");
        }
        fleet.assert_balanced();
    }

    // part of: A13
    #[test]
    fn all_that_remains_can_be_had_by_one_request(steps in steps(), which in 0_usize..6) {
        let limit = all_of(LIMIT)[which];
        let (mut fleet, last) = used(limit, &steps);
        let all = last.remaining.max(1);
        prop_assert!(last.remaining == 0 || fleet.take(0, b"ann", all).allowed, "{limit}: {last:?}");
    }

    // part of: A13
    #[test]
    fn a_look_promises_no_more_than_can_be_had_either(steps in steps(), which in 0_usize..6) {
        let limit = all_of(LIMIT)[which];
        let (mut fleet, _) = used(limit, &steps);
        let look = fleet.take(0, b"ann", 0);
        for at in 0..look.remaining {
            prop_assert!(fleet.take(0, b"ann", 1).allowed, "{limit}: {at} of {look:?}");
        }
    }

    // part of: A13
    #[test]
    fn whoever_waits_for_the_reset_finds_the_limit_full(steps in steps(), which in 0_usize..6) {
        let limit = all_of(LIMIT)[which];
        let (mut fleet, last) = used(limit, &steps);
        fleet.pass(last.reset_after);
        prop_assert_eq!(fleet.take(0, b"ann", 0).remaining, LIMIT, "{} {:?}", limit, last);
    }

    // part of: A13
    #[test]
    fn whoever_waits_as_told_is_admitted(steps in steps(), which in 0_usize..6) {
        let limit = all_of(LIMIT)[which];
        let (mut fleet, _) = used(limit, &steps);
        let mut refused = fleet.take(0, b"ann", 2);
        while refused.allowed {
            refused = fleet.take(0, b"ann", 2);
        }
        let Wait::For(wait) = refused.retry_after else { panic!("{refused:?}") };
        fleet.pass(wait);
        prop_assert!(fleet.take(0, b"ann", 2).allowed, "{limit}: {refused:?}");
    }
}

#[test]
fn decisions_from_a_slice_look_like_the_stores() {
    let limit = Limit::fixed_window(per_second(1_000)).unwrap();
    let mut fleet = Fleet::new(1, leased(limit, 10));
    for remaining in (900..1_000).rev() {
        let decision = fleet.take(0, b"ann", 1);
        assert_eq!((decision.limit, decision.remaining), (1_000, remaining));
        assert_eq!(decision.retry_after, Wait::ZERO);
        assert_eq!(decision.at.after(decision.reset_after).as_micros() % 1_000_000, 0);
        fleet.pass(Duration::from_millis(1));
    }
    assert!(fleet.nodes[0].leases.stats().decided > 50);
}
