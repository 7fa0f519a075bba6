//! Numbers that change while keys are in use.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Algorithm, Limit, Rate, Unit};
use tollgate_store::{Charge, MemoryConfig, MemoryStore, NamedLimit, Take};
use tollgate_testkit::ManualClock;

use super::{
    chance::Chance,
    support::{Redis, named},
    traces::limit,
};
use crate::{call::Outcome, request::Request};

/// Both stores, step by step at the same time.
struct Pair {
    redis: Redis,
    memory: MemoryStore,
    clock: ManualClock,
}

impl Pair {
    fn take(&mut self, limit: &NamedLimit, cost: u64) -> bool {
        let charges = [Charge { limit, key: b"ann", cost }];
        let expected = self.memory.take_now(Take::now(&charges));
        assert_eq!(self.redis.take(limit, "ann", cost), expected, "cost {cost} of {limit:?}");
        expected.allowed
    }

    fn pass(&mut self, micros: u64) {
        self.redis.pass(micros);
        self.clock.set(self.redis.now());
    }

    /// Uses a key, changes the numbers, and goes on.
    fn change(&mut self, chance: &mut Chance, old: &NamedLimit, new: NamedLimit) {
        let memory_micros = old.limit().memory_micros();
        for _ in 0..chance.within(1, 8) {
            let cost = chance.within(1, old.limit().capacity() / 2 + 2);
            self.take(old, cost);
            self.pass(chance.within(0, memory_micros / 4 + 1));
        }
        let new = new.succeeding(old, self.redis.now());
        self.take(&new, 0);
        // Only what passes is written, and so carried for good.
        for _ in 0..20 {
            if !self.take(&new, 1) {
                break;
            }
            self.pass(chance.within(0, memory_micros / 20 + 1));
        }
    }
}

// part of: B12
#[test]
fn levels_are_carried_to_new_numbers_as_in_memory() {
    let (redis, clock) = (Redis::start(), ManualClock::default());
    clock.set(redis.now());
    let memory = MemoryStore::new(MemoryConfig::default(), Arc::new(clock.clone()));
    let mut pair = Pair { redis, memory, clock };
    let mut chance = Chance::new(11);
    for life in 0..1_500 {
        // All but the last, of which more below.
        let algorithm = Algorithm::ALL[life % (Algorithm::ALL.len() - 1)];
        let kept = |limit| named(&format!("life {life}"), limit).kept_for(Duration::from_secs(900));
        let (old, new) = (limit(&mut chance, algorithm), limit(&mut chance, algorithm));
        pair.change(&mut chance, &kept(old), kept(new));
    }
}

// part of: B12
#[test]
fn two_sets_of_numbers_in_one_call_share_the_level() {
    let mut redis = Redis::start();
    let hour = |count| Rate::per(count, Unit::Hour);
    let pairs = [
        (Limit::token_bucket(hour(4), 4), Limit::token_bucket(hour(8), 8)),
        (Limit::leaky_bucket(hour(4), 4), Limit::leaky_bucket(hour(8), 8)),
        (Limit::fixed_window(hour(4)), Limit::fixed_window(hour(8))),
        (Limit::sliding_log(hour(4)), Limit::sliding_log(hour(8))),
        (Limit::sliding_counter(hour(4)), Limit::sliding_counter(hour(8))),
        (Limit::sliding_window(hour(4)), Limit::sliding_window(hour(8))),
    ];
    for (at, (old, new)) in pairs.into_iter().enumerate() {
        let policy = format!("policy {at}");
        let (old, new) = (named(&policy, old.unwrap()), named(&policy, new.unwrap()));
        let take = |limit| {
            let charges = [Charge { limit, key: b"ann", cost: 1 }];
            Request::take(&redis.names, Take::now(&charges))
        };
        let requests = [take(&old), take(&new), take(&old), take(&new), take(&old)];
        let outcomes = redis.run(&requests.iter().collect::<Vec<_>>());
        let remaining: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Decided(decision) => (decision.allowed, decision.remaining),
                other => panic!("{other:?}"),
            })
            .collect();
        // 1 of 4 is 2 of 8, one more 3 of 8, which is 2 of 4 with one to come; and so on.
        let expected = [(true, 3), (true, 5), (true, 1), (true, 1), (false, 0)];
        assert_eq!(remaining, expected, "{old:?}");
    }
}

// part of: B12
#[test]
fn who_is_in_flight_stays_so_whatever_the_limit_is_now() {
    let mut redis = Redis::start();
    let places =
        |places| named("places", Limit::concurrency(places, Duration::from_secs(30)).unwrap());
    redis.take(&places(5), "ann", 4);
    assert_eq!(redis.take(&places(7), "ann", 0).remaining, 3);
    assert!(!redis.take(&places(2), "ann", 1).allowed);
    redis.pass(30_000_000);
    assert!(redis.take(&places(2), "ann", 2).allowed);
}
