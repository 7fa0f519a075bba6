//! Every algorithm against its slow, obvious model, over random lives of a key.

mod support;

use proptest::prelude::*;
use support::{Key, SlowClock, Step, limits, starts, steps};
use tollgate_core::{Limit, Time, Timeline, Wait};
use tollgate_testkit::models::{Model, model};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    // covers: A1, A2, A3, A4, A5, A6, A8, A9, A10, A12, A13
    #[test]
    fn every_algorithm_does_what_its_model_does(limit in limits(), start in starts(), steps in steps()) {
        let mut key = Key::new(limit, start);
        let mut slow = model(&limit);
        let (mut clock, mut timeline) = (SlowClock::at(start), Timeline::new());
        timeline.at(start);
        for step in steps {
            match step {
                Step::Pause(pause) => {
                    clock.forward(pause.duration(&limit));
                    key.now = timeline.at(clock.shown);
                }
                Step::SetBack(micros) => {
                    let before = key.look().remaining;
                    clock.back(micros);
                    key.now = timeline.at(clock.shown);
                    prop_assert_eq!(key.look().remaining, before, "a step back is no time");
                }
                Step::Take(cost) => check_take(&mut key, &mut *slow, cost)?,
                Step::Look => {
                    let before = key.state.clone();
                    let remaining = slow.remaining(key.now);
                    let look = key.look();
                    if !rounds_up(&limit) {
                        prop_assert_eq!((look.allowed, look.remaining), (remaining > 0, remaining));
                    }
                    prop_assert_eq!(before, key.state.clone());
                }
                // Which of several leases ends first is not for the model to know.
                Step::Refund(_) if matches!(limit, Limit::Concurrency(_)) => {}
                // A past sub-window counts in steps; giving back less than a step is lost.
                Step::Refund(_) if limit.capacity() > 65_535 => {}
                Step::Refund(cost) => {
                    limit.refund(&mut key.state, key.now, cost);
                    slow.refund(key.now, cost);
                }
                Step::Reset => {
                    key.state = limit.fresh();
                    slow = model(&limit);
                }
            }
            prop_assert_eq!(key.now, clock.time, "the timeline goes as the slow clock does");
            if rounds_up(&limit) {
                prop_assert!(key.look().remaining <= slow.remaining(key.now));
            } else {
                prop_assert_eq!(key.look().remaining, slow.remaining(key.now), "at {:?}", key.now);
            }
            check_reset(&key)?;
        }
    }
}

/// Past sub-windows of a large limit count in steps, rounded up: never more than the model gives.
fn rounds_up(limit: &Limit) -> bool {
    matches!(limit, Limit::SlidingWindow(_)) && limit.capacity() > 65_535
}

fn check_take(key: &mut Key, slow: &mut dyn Model, cost: u64) -> Result<(), TestCaseError> {
    let before = key.state.clone();
    let remaining = slow.remaining(key.now);
    let verdict = key.take(cost);
    if rounds_up(&key.limit) {
        prop_assert!(!verdict.allowed || cost <= remaining);
    } else {
        prop_assert_eq!(
            verdict.allowed,
            cost <= remaining,
            "{:?} of {} at {:?}",
            cost,
            remaining,
            key.now
        );
    }
    if verdict.allowed {
        slow.take(key.now, cost);
        prop_assert_eq!(verdict.retry_after, Wait::ZERO);
        return Ok(());
    }
    prop_assert_eq!(&before, &key.state, "a refusal changed something");
    match verdict.retry_after {
        Wait::Never => prop_assert!(cost > key.limit.capacity()),
        Wait::For(wait) => {
            let late = key.now.after(wait);
            let early = Time::from_micros(late.as_micros() - 1);
            let at = |now| {
                key.limit.check(&key.state, tollgate_core::Ask { now, ..key.ask(cost) }).allowed
            };
            prop_assert!(at(late), "waited {:?} and was refused", wait);
            prop_assert!(!at(early), "admitted a tick before {:?}", wait);
        }
    }
    Ok(())
}

/// After `reset_after` the key is as good as new.
fn check_reset(key: &Key) -> Result<(), TestCaseError> {
    let later = key.now.after(key.look().reset_after);
    let look = key.limit.check(&key.state, tollgate_core::Ask { now: later, ..key.ask(0) });
    prop_assert_eq!(look.remaining, key.limit.capacity());
    Ok(())
}
