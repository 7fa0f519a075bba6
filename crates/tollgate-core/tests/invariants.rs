//! What must hold whatever happens, without a model to compare with.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use proptest::prelude::*;
use support::{Key, Step, limit, limits, limits_of, starts, steps};
use tollgate_core::{Algorithm, Ask, COST_MAX, Limit, Patience, Rate, Time, Unit, judge};
use tollgate_testkit::history::{Admission, check_bucket, check_window};

/// Lives a random life and returns what was admitted. Refunds are left out: they are not load.
fn admitted(key: &mut Key, steps: &[Step]) -> Vec<Admission> {
    let mut admissions = Vec::new();
    for step in steps {
        match step {
            Step::Pause(pause) => key.pass(pause.duration(&key.limit)),
            Step::Take(cost) if key.take(*cost).allowed => {
                admissions.push(Admission::at(key.now, *cost))
            }
            _ => {}
        }
    }
    admissions
}

/// The same with callers who wait for their turn.
fn acquired(key: &mut Key, steps: &[Step]) -> Vec<Admission> {
    let mut admissions = Vec::new();
    let patience = key.limit.memory_micros().saturating_mul(3);
    for step in steps {
        match step {
            Step::Pause(pause) => key.pass(pause.duration(&key.limit) / 4),
            Step::Take(cost) => {
                let verdict = key.acquire(*cost, patience);
                if verdict.allowed {
                    admissions.push(turn(key.now.after(verdict.wait), *cost));
                }
            }
            _ => {}
        }
    }
    admissions
}

/// A turn is told in whole ticks, rounded up: the instant itself lies in the tick before.
fn turn(told: Time, cost: u64) -> Admission {
    Admission { sent: Time::from_micros(told.as_micros() - 1), answered: told, cost }
}

fn window(limit: &Limit) -> Duration {
    Duration::from_micros(limit.rate().unwrap().period_micros())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    // covers: A1
    #[test]
    fn a_bucket_admits_its_burst_and_what_flows_in(limit in limits_of(Algorithm::TokenBucket), start in starts(), steps in steps()) {
        let history = admitted(&mut Key::new(limit, start), &steps);
        check_bucket(&history, limit.rate().unwrap(), limit.capacity()).unwrap();
    }

    // covers: A9
    #[test]
    fn a_bucket_with_patient_callers_admits_no_more(limit in limits_of(Algorithm::TokenBucket), start in starts(), steps in steps()) {
        let history = acquired(&mut Key::new(limit, start), &steps);
        prop_assert!(history.is_sorted_by_key(|one| one.sent), "turns out of order");
        check_bucket(&history, limit.rate().unwrap(), limit.capacity()).unwrap();
    }

    // covers: A2
    #[test]
    fn a_leaky_queue_lets_out_one_at_a_time(limit in limits_of(Algorithm::LeakyBucket), start in starts(), steps in steps()) {
        let history = acquired(&mut Key::new(limit, start), &steps);
        prop_assert!(history.is_sorted_by_key(|one| one.sent), "turns out of order");
        // Behind each request there is a gap of as long as it takes to drain.
        for pair in history.windows(2) {
            let rate = limit.rate().unwrap();
            let drain = u128::from(pair[0].cost) * u128::from(rate.period_micros()) / u128::from(rate.count);
            prop_assert!(pair[1].sent.since(pair[0].sent).as_micros() + 1 >= drain);
        }
    }

    // covers: A4, A10
    #[test]
    fn no_window_of_any_position_admits_too_much(
        limit in prop_oneof![limits_of(Algorithm::SlidingLog), limits_of(Algorithm::SlidingWindow)],
        start in starts(),
        steps in steps(),
    ) {
        check_window(&admitted(&mut Key::new(limit, start), &steps), window(&limit), limit.capacity()).unwrap();
        let history = acquired(&mut Key::new(limit, start), &steps);
        check_window(&history, window(&limit), limit.capacity()).unwrap();
    }

    // covers: A3
    #[test]
    fn no_window_of_the_clock_admits_too_much(limit in limits_of(Algorithm::FixedWindow), start in starts(), steps in steps()) {
        for history in [admitted(&mut Key::new(limit, start), &steps), acquired(&mut Key::new(limit, start), &steps)] {
            let micros = limit.rate().unwrap().period_micros();
            let mut counts = std::collections::HashMap::<u64, u64>::new();
            for one in history {
                let count = counts.entry(one.answered.as_micros() / micros).or_default();
                *count += one.cost;
                prop_assert!(*count <= limit.capacity());
            }
        }
    }

    // covers: A7
    #[test]
    fn several_limits_are_taken_from_all_or_none(
        limits in prop::collection::vec(limits(), 2..5),
        costs in prop::collection::vec(1_u64..12, 1..60),
        start in starts(),
    ) {
        let mut keys: Vec<_> = limits.iter().map(|limit| Key::new(*limit, start)).collect();
        for cost in costs {
            let before: Vec<_> = keys.iter().map(|key| key.state.clone()).collect();
            let fits = keys.iter().all(|key| key.look().remaining >= cost);
            let mut asked: Vec<_> = keys.iter_mut().map(|key| { let ask = key.ask(cost); (&key.limit, &mut key.state, ask) }).collect();
            let judgement = judge(&mut asked, false);
            prop_assert_eq!(judgement.allowed(), fits);
            let decision = judgement.decision(&keys[0].ask(cost));
            if fits {
                let least = keys.iter().map(|key| key.look().remaining).min().unwrap();
                prop_assert_eq!(decision.remaining, least);
            } else {
                prop_assert!(before.iter().zip(&keys).all(|(before, key)| *before == key.state));
                prop_assert!(keys[decision.shown].look().remaining < cost, "names a limit that had room");
                // Whoever waits as told passes all of them.
                if let Some(wait) = decision.retry_after.duration() {
                    let now = start.after(wait);
                    let passes = keys.iter().all(|key| key.limit.check(&key.state, Ask { now, ..key.ask(cost) }).allowed);
                    prop_assert!(passes);
                }
            }
        }
    }

    // covers: B12
    #[test]
    fn a_change_of_numbers_never_mints(
        algorithm in prop::sample::select(&Algorithm::ALL[..6]),
        (old_rate, new_rate) in (support::rates(), support::rates()),
        (old_burst, new_burst) in (1_u64..30, 1_u64..30),
        costs in prop::collection::vec(1_u64..9, 1..20),
        start in starts(),
    ) {
        let mut key = Key::new(limit(algorithm, old_rate, old_burst), start);
        for cost in costs {
            key.take(cost);
        }
        let new = limit(algorithm, new_rate, new_burst);
        let (old_left, old_all) = (u128::from(key.look().remaining), u128::from(key.limit.capacity()));
        let state = new.carry(&key.limit, &key.state, key.now).unwrap();
        let left = u128::from(Key { limit: new, state, now: key.now }.look().remaining);
        // The same share, rounded towards used; past sub-windows of large limits may lose a step each.
        prop_assert!(left * old_all <= old_left * u128::from(new.capacity()));
        let lost = old_left * u128::from(new.capacity()) - left * old_all;
        prop_assert!(lost <= old_all * 40, "lost {lost} of {old_all}");
    }
}

// covers: A11
#[test]
fn a_million_polls_admit_what_one_wait_admits() {
    for rate in
        [Rate::per(3, Unit::Second), Rate::per(7, Unit::Minute), Rate::per(999_983, Unit::Hour)]
    {
        let limit = Limit::token_bucket(rate, 5).unwrap();
        let start = Time::from_secs(1_794_787_200);
        let mut polled = Key::new(limit, start);
        let mut count = 0_u64;
        for _ in 0..1_000_000 {
            polled.now = Time::from_micros(polled.now.as_micros() + 1);
            count += u64::from(polled.take(1).allowed);
        }
        // The burst, and what a second lets in, to the last whole token.
        let flowed = u128::from(rate.count) * 999_999 / u128::from(rate.period_micros());
        assert_eq!(u128::from(count), 5 + flowed, "{rate}");
        // Looking does not wear a bucket out either.
        let mut waited = Key { limit, state: polled.state.clone(), now: polled.now };
        for _ in 0..1_000 {
            polled.now = Time::from_micros(polled.now.as_micros() + 997);
            polled.take(6);
            polled.look();
        }
        waited.pass(Duration::from_micros(997_000));
        assert_eq!(polled.look(), waited.look());
    }
}

// covers: A1
#[test]
fn a_token_a_second_polled_every_half_second_gives_one_a_second() {
    let mut key =
        Key::new(Limit::token_bucket(Rate::per(1, Unit::Second), 1).unwrap(), Time::from_secs(100));
    let mut passed = Vec::new();
    for _ in 0..8 {
        passed.push(key.take(1).allowed);
        key.pass(Duration::from_millis(500));
    }
    assert_eq!(passed, [true, false, true, false, true, false, true, false]);
}

// covers: A11
#[test]
fn no_numbers_overflow() {
    let units = Unit::ALL;
    let counts = [1, 2, 3, 1_000, 999_999_937, 1_000_000_000, COST_MAX - 1, COST_MAX];
    let starts = [Time::ZERO, Time::from_secs(1_794_787_200), Time::from_secs(16_725_225_600)];
    for (count, unit, burst, start) in counts
        .iter()
        .flat_map(|count| units.map(|unit| (*count, unit)))
        .flat_map(|(count, unit)| {
            counts
                .iter()
                .flat_map(move |burst| starts.map(move |start| (count, unit, *burst, start)))
        })
    {
        let rate = Rate::per(count, unit);
        for algorithm in Algorithm::ALL {
            let made = match algorithm {
                Algorithm::TokenBucket => Limit::token_bucket(rate, burst),
                Algorithm::LeakyBucket => Limit::leaky_bucket(rate, burst),
                Algorithm::FixedWindow => Limit::fixed_window(rate),
                Algorithm::SlidingLog => Limit::sliding_log(rate),
                Algorithm::SlidingCounter => Limit::sliding_counter(rate),
                Algorithm::SlidingWindow => Limit::sliding_window(rate),
                Algorithm::Concurrency => Limit::concurrency(burst, Duration::from_secs(86_400)),
            };
            let Ok(limit) = made else { continue };
            let mut key = Key::new(limit, start);
            for cost in [
                1,
                limit.capacity() / 2,
                limit.capacity() - 1,
                limit.capacity(),
                COST_MAX,
                u64::MAX,
            ] {
                for patience in [0, 1, u64::MAX] {
                    key.take(cost);
                    key.acquire(cost, patience);
                    key.look();
                    key.pass(Duration::from_micros(patience / 3));
                }
                let ask = key.ask(cost);
                limit.charge(&mut key.state, ask);
                limit.refund(&mut key.state, key.now, cost);
            }
            key.now = Time::from_micros(u64::MAX);
            key.take(1);
        }
    }
}

// covers: A10
#[test]
fn the_strict_window_admits_nearly_what_the_log_admits() {
    for (count, unit, every) in [
        (10, Unit::Second, 7_919),
        (100, Unit::Minute, 104_729),
        (5, Unit::Hour, 15_485_863),
        (70_000, Unit::Minute, 331),
    ] {
        let rate = Rate::per(count, unit);
        let start = Time::from_secs(1_794_787_211);
        let mut strict = Key::new(Limit::sliding_window(rate).unwrap(), start);
        let mut exact = Key::new(Limit::sliding_log(rate).unwrap(), start);
        let (mut by_strict, mut by_log) = (0_u64, 0_u64);
        let end = start.after(Duration::from_micros(rate.period_micros() * 60));
        while strict.now < end {
            by_strict += u64::from(strict.take(1).allowed);
            by_log += u64::from(exact.take(1).allowed);
            strict.pass(Duration::from_micros(every));
            exact.pass(Duration::from_micros(every));
        }
        assert!(by_strict * 100 >= by_log * 97, "{rate}: {by_strict} of {by_log}");
    }
    assert!(
        size_of::<tollgate_core::SubTallies>() <= 96,
        "what a store adds must fit beside it in 128"
    );
}

// covers: A2
#[test]
fn a_patient_caller_of_a_bucket_waits_only_for_what_is_missing() {
    let mut key =
        Key::new(Limit::token_bucket(Rate::per(10, Unit::Second), 2).unwrap(), Time::from_secs(5));
    let waits: Vec<_> = (0..5).map(|_| key.acquire(1, 10_000_000).wait.as_millis()).collect();
    assert_eq!(waits, [0, 0, 100, 200, 300]);
    let mut queue =
        Key::new(Limit::leaky_bucket(Rate::per(10, Unit::Second), 4).unwrap(), Time::from_secs(5));
    let turns: Vec<_> = (0..6).map(|_| queue.acquire(1, 10_000_000)).collect();
    let waits: Vec<_> =
        turns.iter().filter(|turn| turn.allowed).map(|turn| turn.wait.as_millis()).collect();
    assert_eq!(waits, [0, 100, 200, 300], "the queue has four places, and the newest is refused");
    let ask = Ask { patience: Patience::Micros(99_999), ..queue.ask(1) };
    assert!(!queue.limit.check(&queue.state, ask).allowed);
}
