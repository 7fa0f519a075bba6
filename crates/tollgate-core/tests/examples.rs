//! The worked examples, to the digit, and the traps that others fell into.

mod support;

use std::time::Duration;

use support::Key;
use tollgate_core::{Limit, Rate, Time, Timeline, Unit, Wait};

/// So many seconds after one o'clock.
fn past_one(seconds: u64) -> Time {
    Time::from_secs(1_794_790_800 + seconds)
}

fn takes(key: &mut Key, at: Time, count: usize) -> usize {
    key.now = at;
    (0..count).filter(|_| key.take(1).allowed).count()
}

// covers: A4
#[test]
fn the_log_of_two_a_minute() {
    let mut key = Key::new(Limit::sliding_log(Rate::per(2, Unit::Minute)).unwrap(), past_one(0));
    let passed = [1, 30, 50, 100].map(|second| takes(&mut key, past_one(second), 1) == 1);
    assert_eq!(passed, [true, true, false, true]);
}

// covers: A4
#[test]
fn a_log_that_records_refusals_counts_them_too() {
    let mut key = Key::new(Limit::sliding_log(Rate::per(2, Unit::Minute)).unwrap(), past_one(0));
    for second in [1, 30, 50] {
        key.now = past_one(second);
        if !key.take(1).allowed {
            let ask = key.ask(1);
            key.limit.charge(&mut key.state, ask);
        }
    }
    // At 1:01:40 the one refused at 1:00:50 still counts, the one of 1:00:30 does not.
    key.now = past_one(100);
    assert_eq!(key.look().remaining, 1);
    // And however many are refused, the log keeps no more than the limit.
    for _ in 0..10_000 {
        let ask = key.ask(1);
        key.limit.charge(&mut key.state, ask);
    }
    let tollgate_core::State::Log(log) = &key.state else { panic!("a log") };
    assert!(log.heap_bytes() <= 1_024);
}

// covers: A5
#[test]
fn the_counter_of_seven_a_minute() {
    let mut key =
        Key::new(Limit::sliding_counter(Rate::per(7, Unit::Minute)).unwrap(), past_one(0));
    assert_eq!(takes(&mut key, past_one(10), 5), 5);
    assert_eq!(
        takes(&mut key, past_one(60), 3),
        2,
        "at its first second the whole minute before counts"
    );
    assert_eq!(takes(&mut key, past_one(73), 1), 1, "3 + 5 × 47/60 leaves room for the third");
    // At 30 % of the minute: 3 + 5 × 0.7 = 6.5, floored 6, and one more passes.
    key.now = past_one(78);
    assert_eq!(key.look().remaining, 1);
    assert_eq!(takes(&mut key, past_one(78), 2), 1);
}

// covers: A3
#[test]
fn a_fixed_window_starts_again_with_the_clock() {
    let mut key = Key::new(Limit::fixed_window(Rate::per(5, Unit::Minute)).unwrap(), past_one(0));
    assert_eq!(takes(&mut key, past_one(59), 9), 5);
    let refused = key.take(1);
    assert_eq!(refused.retry_after, Wait::For(Duration::from_secs(1)));
    assert_eq!(takes(&mut key, past_one(60), 9), 5);
    // A calendar month, not thirty days: the 16th to the 1st of December.
    let mut month = Key::new(
        Limit::fixed_window(Rate::per(1, Unit::Month)).unwrap(),
        Time::from_secs(1_794_787_200),
    );
    assert!(month.take(1).allowed);
    assert_eq!(month.take(1).retry_after, Wait::For(Duration::from_secs(15 * 86_400)));
}

// covers: C3
#[test]
fn ten_a_second_with_a_burst_of_fifteen() {
    let limit = Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap();
    let mut spread = Key::new(limit, past_one(0));
    for tenth in 0..10 {
        spread.now = past_one(0).after(Duration::from_millis(tenth * 100));
        assert!(spread.take(1).allowed);
    }
    let mut at_once = Key::new(limit, past_one(0));
    assert_eq!(takes(&mut at_once, past_one(0), 20), 15);
    let first = Key::new(limit, past_one(0)).take(1);
    assert_eq!((first.remaining, first.reset_after), (14, Duration::from_millis(100)));
}

// covers: A6
#[test]
fn a_place_in_flight_ends_with_its_lease() {
    let mut key = Key::new(Limit::concurrency(2, Duration::from_secs(30)).unwrap(), past_one(0));
    assert_eq!(takes(&mut key, past_one(0), 1), 1);
    assert_eq!(takes(&mut key, past_one(10), 5), 1);
    assert_eq!(key.take(1).retry_after, Wait::For(Duration::from_secs(20)));
    assert_eq!(takes(&mut key, past_one(30), 5), 1);
}

// covers: A9
#[test]
fn a_cost_above_the_capacity_is_refused_for_ever() {
    let key = Key::new(Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap(), past_one(0));
    let verdict = key.limit.check(&key.state, key.ask(16));
    assert_eq!((verdict.allowed, verdict.retry_after), (false, Wait::Never));
}

/// Whole-second arithmetic admitted 20 where 12 were right.
// covers: A11
#[test]
fn parts_of_a_second_are_not_rounded() {
    let mut key =
        Key::new(Limit::token_bucket(Rate::per(10, Unit::Second), 10).unwrap(), past_one(0));
    assert_eq!(takes(&mut key, past_one(0).after(Duration::from_millis(900)), 10), 10);
    assert_eq!(takes(&mut key, past_one(1).after(Duration::from_millis(100)), 20), 2);
}

/// A clock set back admitted 17 at once under a burst of 10, where an old arrival time was
/// clamped wrongly; and a clock that stands back must not block either.
// part of: B5
#[test]
fn a_clock_set_back_neither_mints_nor_blocks() {
    let limit = Limit::token_bucket(Rate::per(10, Unit::Second), 10).unwrap();
    for back_millis in [1, 700, 3_000, 3_600_000] {
        let mut key = Key::new(limit, past_one(0));
        let mut timeline = Timeline::new();
        let start = past_one(7_200);
        key.now = timeline.at(start);
        assert_eq!((0..4).filter(|_| key.take(1).allowed).count(), 4);
        // Set back: no time has passed, so six are left, and no more.
        let back = Time::from_micros(start.as_micros() - back_millis * 1_000);
        key.now = timeline.at(back);
        assert_eq!((0..20).filter(|_| key.take(1).allowed).count(), 6, "{back_millis} ms back");
        // From there on the bucket fills again, at the latest after what a small step waits out.
        let full = back.after(Duration::from_millis(back_millis.min(1_000) + 1_000));
        key.now = timeline.at(full);
        assert_eq!((0..20).filter(|_| key.take(1).allowed).count(), 10, "{back_millis} ms back");
    }
}

/// Refused requests were charged to the other limits: five served, then a minute blocked.
// covers: A7, A12
#[test]
fn hammering_one_limit_does_not_use_up_the_other() {
    let mut second =
        Key::new(Limit::fixed_window(Rate::per(5, Unit::Second)).unwrap(), past_one(0));
    let mut minute =
        Key::new(Limit::fixed_window(Rate::per(100, Unit::Minute)).unwrap(), past_one(0));
    let mut served = 0;
    for at in 0..10 {
        for _ in 0..50 {
            (second.now, minute.now) = (past_one(at), past_one(at));
            let (one, other) = (second.ask(1), minute.ask(1));
            let mut both = [
                (&second.limit, &mut second.state, one),
                (&minute.limit, &mut minute.state, other),
            ];
            served += usize::from(tollgate_core::judge(&mut both, false).allowed());
        }
    }
    assert_eq!(served, 50);
}
