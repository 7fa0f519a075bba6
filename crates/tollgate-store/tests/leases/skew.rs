//! Much more is offered than allowed, and most of it to one node.

use std::time::Duration;

use tollgate_core::{Clock, Limit, Time};
use tollgate_store::{Mode, NamedLimit};
use tollgate_testkit::history;

use crate::fleet::{Fleet, Random, all_of, leased, per_second};

const LIMIT: u64 = 1_000;
const WINDOWS: u64 = 13;

/// Four nodes, nine tenths of the load on the first, `times` the limit offered.
fn overloaded(limit: NamedLimit, times: u64) -> Fleet {
    let mut fleet = Fleet::with_denials(4, limit);
    let mut random = Random(7);
    let pause = Duration::from_nanos(1_000_000_000 / (LIMIT * times));
    for _ in 0..LIMIT * times * WINDOWS {
        let node = if random.below(10) < 9 { 0 } else { 1 + random.below(3) };
        fleet.take(usize::try_from(node).unwrap(), b"ann", 1);
        fleet.pass(pause);
    }
    fleet
}

/// What is admitted in every ten windows, the first two left out: that is when bursts are spent.
fn tens(fleet: &Fleet) -> Vec<u64> {
    let end = fleet.clock.now();
    let starts = (2..).map(|window| Time::from_secs(1_794_787_200 + window));
    let spans = starts.map(|from| (from, from.after(Duration::from_secs(10))));
    spans
        .take_while(|(_, to)| *to <= end)
        .map(|(from, to)| fleet.admitted_between(from, to))
        .collect()
}

// part of: B10
#[test]
fn a_skewed_and_overloaded_fleet_admits_what_the_limit_allows() {
    for limit in all_of(LIMIT) {
        let fleet = overloaded(leased(limit, 1), 10);
        let exact = overloaded(NamedLimit::new("p", 0, limit).in_mode(Mode::Exact), 10);
        // The strict window and the counter by two tallies admit less than the limit by themselves.
        for (admitted, alone) in tens(&fleet).into_iter().zip(tens(&exact)) {
            assert!(admitted * 100 >= alone * 99, "{limit}: {admitted} of {alone}");
            assert!(admitted * 100 <= LIMIT * 10 * 101, "{limit}: {admitted}");
        }
        fleet.assert_balanced();
    }
}

// part of: B10
#[test]
fn a_fleet_at_any_load_stays_within_the_limit_and_uses_it() {
    for times in [1, 2, 4] {
        for limit in [
            Limit::fixed_window(per_second(LIMIT)).unwrap(),
            Limit::sliding_log(per_second(LIMIT)).unwrap(),
        ] {
            let fleet = overloaded(leased(limit, 1), times);
            let window = Duration::from_secs(1);
            if let Limit::SlidingLog(_) = limit {
                let most = LIMIT + fleet.ahead_max();
                assert_eq!(history::check_window(&fleet.admitted, window, most), Ok(()));
            }
            for admitted in tens(&fleet) {
                assert!(admitted * 100 >= LIMIT * 10 * 99, "{limit}: {admitted} at {times}");
            }
        }
    }
}
