//! What an operator finds in Redis, and for how long.

use std::{collections::HashMap, time::Duration};

use tollgate_core::{Limit, Patience, Rate, Time, Unit, Wait};
use tollgate_store::{Charge, NamedLimit, Take};
use tollgate_testkit::{servers, wait::wait_until};

use super::{
    chance::Chance,
    support::{Redis, named},
};
use crate::{names, request::Request};

const DAY: u64 = Unit::Day.micros();

/// For what the server's clock has to do.
const PATIENCE: Duration = Duration::from_secs(30);

const ROUTE: &str = "550e8400-e29b-41d4-a716-446655440000";
const NAME: &str = "rl:550e8400-e29b-41d4-a716-446655440000:192.168.1.100";

/// 10 a second, 15 at once.
fn classic() -> NamedLimit {
    named(ROUTE, Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap())
}

fn every_algorithm(rate: Rate) -> Vec<NamedLimit> {
    let limits = [
        Limit::token_bucket(rate, rate.count),
        Limit::leaky_bucket(rate, rate.count),
        Limit::fixed_window(rate),
        Limit::sliding_log(rate),
        Limit::sliding_counter(rate),
        Limit::sliding_window(rate),
        // A place is held for a day at most.
        Limit::concurrency(rate.count, Duration::from_micros(rate.period_micros().min(DAY))),
    ];
    let limits = limits.into_iter().enumerate();
    limits.map(|(at, limit)| NamedLimit::new("every", at, limit.unwrap())).collect()
}

fn name_of(limit: &NamedLimit, key: &str) -> String {
    let name = names::Names::new("rl", false).counter(limit, key.as_bytes());
    String::from_utf8(name).unwrap()
}

impl Redis {
    fn fields(&mut self, name: &str) -> HashMap<String, String> {
        self.ask(redis::cmd("HGETALL").arg(name))
    }

    fn number(&mut self, name: &str, field: &str) -> f64 {
        self.fields(name)[field].parse().unwrap()
    }

    fn acquire(&mut self, limit: &NamedLimit, patience_micros: u64) -> bool {
        let charges = [Charge { limit, key: b"ann", cost: 1 }];
        let patience = Patience::Micros(patience_micros);
        let take = Take { patience, ..Take::now(&charges) };
        self.decide(&Request::take(&self.names, take)).allowed
    }
}

// part of: B3
#[test]
fn a_bucket_is_a_hash_of_tokens_and_a_whole_millisecond() {
    let mut redis = Redis::start();
    let limit = classic();
    redis.set(Time::from_micros(1_794_830_400_123_456));
    redis.take(&limit, "192.168.1.100", 1);
    let fields = redis.fields(NAME);
    // Thirteen tokens and what is missing to the beginning of the millisecond: 456 µs at 10/s.
    let expected = [("tokens", "13.99544"), ("lastRefill", "1794830400123"), ("limit", "10/s 15")];
    assert_eq!(fields, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
}

// part of: B3
#[test]
fn tokens_lie_between_none_and_the_burst_at_whole_milliseconds() {
    let mut redis = Redis::start();
    let mut chance = Chance::new(3);
    for (at, burst) in [1, 2, 15, 1_000].into_iter().enumerate() {
        let rates =
            [Rate::per(10, Unit::Second), Rate::per(7, Unit::Hour), Rate::per(1_000, Unit::Second)];
        for (of, rate) in rates.into_iter().enumerate() {
            let policy = format!("policy {at} {of}");
            let limit = named(&policy, Limit::token_bucket(rate, burst).unwrap());
            for _ in 0..200 {
                redis.pass(chance.within(0, 300_000));
                let cost = chance.within(1, burst + 1);
                if !redis.take(&limit, "ann", cost).allowed {
                    continue;
                }
                let name = format!("rl:{policy}:ann");
                let tokens = redis.number(&name, "tokens");
                assert!((0.0..=burst as f64).contains(&tokens), "{tokens} of {burst}");
                let refilled = redis.fields(&name)["lastRefill"].clone();
                let off =
                    refilled.parse::<u64>().unwrap().abs_diff(redis.now().as_micros() / 1_000);
                assert!(off <= 1, "{refilled} is a whole millisecond near now");
            }
        }
    }
}

// part of: A1
#[test]
fn one_token_a_second_polled_twice_a_second_gives_one_a_second() {
    let mut redis = Redis::start();
    let limit = named("slow", Limit::token_bucket(Rate::per(1, Unit::Second), 1).unwrap());
    let mut passed = Vec::new();
    for _ in 0..10 {
        passed.push(redis.take(&limit, "ann", 1).allowed);
        redis.pass(500_000);
    }
    assert_eq!(passed, [true, false].repeat(5));
}

// part of: B3
#[test]
fn deleting_a_key_resets_it() {
    let mut redis = Redis::start();
    for limit in every_algorithm(Rate::per(3, Unit::Hour)) {
        assert_eq!(redis.take(&limit, "ann", 3).remaining, 0);
        let deleted: u64 = redis.ask(redis::cmd("DEL").arg(name_of(&limit, "ann")));
        assert_eq!((deleted, redis.take(&limit, "ann", 1).remaining), (1, 2), "{limit:?}");
    }
}

// part of: B4
#[test]
fn a_key_outlives_its_state_by_one_to_two_seconds() {
    let mut redis = Redis::start();
    let rates = [
        Rate::per(3, Unit::Second),
        Rate::per(7, Unit::Minute),
        Rate::per(2, Unit::Day),
        Rate { count: 5, times: 90, unit: Unit::Year },
    ];
    for rate in rates {
        for limit in every_algorithm(rate) {
            for key in [format!("ann {rate}"), format!("bob {rate}")] {
                redis.pass(137_123);
                let reset = redis.take(&limit, &key, 1).reset_after;
                let full = i64::try_from(reset.as_millis()).unwrap();
                let ttl = redis.ttl_millis(&name_of(&limit, &key));
                // The server's clock has gone on meanwhile.
                assert!(ttl > full + 500, "{limit:?}: {ttl} ms, full after {full}");
                // An estimate is zero before the last of the two windows ends.
                let exact = !matches!(limit.limit(), Limit::SlidingCounter(_));
                let most = full + 2_001 + full / 500_000_000;
                assert!(!exact || ttl <= most, "{limit:?}: {ttl} ms, full after {full}");
            }
        }
    }
}

// covers: B4
// Beside the others here, and tests/memory.rs of tollgate-store.
#[test]
fn a_policys_own_time_to_live_holds_and_is_renewed() {
    let mut redis = Redis::start();
    for limit in every_algorithm(Rate::per(3, Unit::Second)) {
        let limit = limit.kept_for(Duration::from_secs(120));
        let name = name_of(&limit, "ann");
        redis.take(&limit, "ann", 1);
        assert!((119_000..=122_000).contains(&redis.ttl_millis(&name)), "{limit:?}");
        let _: i64 = redis.ask(redis::cmd("PEXPIRE").arg(&name).arg(60_000));
        redis.take(&limit, "ann", 1);
        assert!(redis.ttl_millis(&name) > 119_000, "{limit:?}");
    }
}

// part of: B4
#[test]
fn a_state_that_reaches_further_is_kept_longer() {
    let mut redis = Redis::start();
    for limit in every_algorithm(Rate::per(2, Unit::Minute)).into_iter().take(6) {
        let name = name_of(&limit, "ann");
        let mut kept = 0;
        for _ in 0..5 {
            if !redis.acquire(&limit, 600_000_000) {
                break;
            }
            let ttl = redis.ttl_millis(&name);
            assert!(ttl + 500 >= kept, "{limit:?}: {ttl} after {kept}");
            kept = ttl;
        }
        assert!(kept > 60_000, "{limit:?}: {kept}");
    }
}

// part of: B4
#[test]
fn a_busy_key_is_told_its_time_to_live_once_a_second() {
    let mut redis = Redis::start();
    let limit = named("busy", Limit::token_bucket(Rate::per(1_000, Unit::Second), 1_000).unwrap());
    redis.ask::<()>(redis::cmd("CONFIG").arg("RESETSTAT"));
    for _ in 0..1_000 {
        redis.take(&limit, "ann", 1);
        redis.pass(1_000);
    }
    let stats: String = redis.ask(redis::cmd("INFO").arg("commandstats"));
    let told = stats.lines().find_map(|line| line.strip_prefix("cmdstat_pexpire:calls=")).unwrap();
    let told: u64 = told.split(',').next().unwrap().parse().unwrap();
    assert!((1..=3).contains(&told), "{told} times");
}

// part of: B4
#[test]
fn an_idle_pause_mints_no_tokens() {
    // By the server's own clock, because its keys expire by it: a second later a key of which the
    // time to live were too short would be gone, and full.
    let mut redis = Redis::start().in_real_time();
    let limits = every_algorithm(Rate::per(3, Unit::Day));
    for limit in &limits {
        redis.take(limit, "ann", 3);
    }
    let later = redis.server_seconds() + 3;
    wait_until(PATIENCE, || redis.server_seconds() >= later).unwrap();
    for limit in &limits {
        let look = redis.take(limit, "ann", 1);
        assert_eq!((look.allowed, look.remaining), (false, 0), "{limit:?}");
    }
}

// part of: B5
#[test]
fn a_clock_set_back_a_little_is_waited_out() {
    let mut redis = Redis::start();
    for limit in every_algorithm(Rate::per(3, Unit::Minute)) {
        redis.pass(60_000_000);
        let start = redis.now().as_micros();
        redis.take(&limit, "ann", 2);
        redis.set(Time::from_micros(start - 900_000));
        assert_eq!(redis.take(&limit, "ann", 0).remaining, 1, "{limit:?}");
        assert!(redis.take(&limit, "ann", 1).allowed, "{limit:?}");
        assert!(!redis.take(&limit, "ann", 1).allowed, "{limit:?}");
        // To and fro mints nothing.
        for _ in 0..50 {
            redis.set(Time::from_micros(start));
            assert!(!redis.take(&limit, "ann", 1).allowed, "{limit:?}");
            redis.set(Time::from_micros(start - 900_000));
            assert!(!redis.take(&limit, "ann", 1).allowed, "{limit:?}");
        }
        redis.set(Time::from_micros(start));
    }
}

// part of: B5
#[test]
fn a_clock_set_back_far_keeps_levels_and_blocks_nobody_longer() {
    let mut redis = Redis::start();
    for limit in every_algorithm(Rate::per(3, Unit::Minute)) {
        redis.take(&limit, "ann", 2);
        let back = redis.now().as_micros() - 86_400_000_000;
        redis.set(Time::from_micros(back));
        assert_eq!(redis.take(&limit, "ann", 0).remaining, 1, "{limit:?}");
        redis.take(&limit, "ann", 1);
        let refused = redis.take(&limit, "ann", 1);
        assert!(!refused.allowed, "{limit:?}");
        // Two windows for what looks at the one before.
        let longest = Wait::For(Duration::from_secs(121));
        assert!(refused.retry_after < longest, "{limit:?}: {refused:?}");
        redis.pass(121_000_000);
        assert_eq!(redis.take(&limit, "ann", 1).remaining, 2, "{limit:?}");
    }
}

#[test]
fn a_log_that_lost_its_entries_by_hand_is_given_back_to_in_bounded_time() {
    let mut redis = Redis::start();
    let limit = named("p", Limit::sliding_log(Rate::per(3, Unit::Hour)).unwrap());
    redis.take(&limit, "ann", 2);
    let _: redis::Value = redis.ask(redis::cmd("LTRIM").arg(name_of(&limit, "ann")).arg(0).arg(0));
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let refund = Request::refund(&redis.names, &charges);
    assert_eq!(redis.decide(&refund).remaining, 3);
}

#[test]
fn a_value_of_another_kind_under_the_name_is_forgotten() {
    let mut redis = Redis::start();
    let limits = every_algorithm(Rate::per(3, Unit::Hour));
    let foreign: [&[&str]; 6] = [
        &["SET", "text"],
        &["RPUSH", "a", "b"],
        &["SADD", "a"],
        &["ZADD", "1", "a"],
        &["HSET", "tokens", "many", "lastRefill", "now", "limit", "3/h 3"],
        &["XADD", "*", "a", "1"],
    ];
    for limit in &limits {
        for command in foreign {
            let name = name_of(limit, "ann");
            redis.ask::<()>(redis::cmd("DEL").arg(&name));
            let mut write = redis::cmd(command[0]);
            write.arg(&name).arg(&command[1..]);
            let _: redis::Value = redis.ask(&write);
            // A set of places is what such a limit keeps: a place that ended long ago is free.
            assert_eq!(redis.take(limit, "ann", 1).remaining, 2, "{command:?} {limit:?}");
            assert_eq!(redis.take(limit, "ann", 1).remaining, 1, "{command:?} {limit:?}");
        }
        // And what another algorithm left there.
        for other in &limits {
            let (one, two) = (named("shared", *limit.limit()), named("shared", *other.limit()));
            redis.ask::<()>(redis::cmd("DEL").arg(name_of(&one, "ann")));
            redis.take(&two, "ann", 2);
            let left = redis.take(&one, "ann", 1).remaining;
            // The two buckets keep the same state.
            assert!(left == 2 || left == 0, "{one:?} after {two:?}: {left}");
            assert_eq!(redis.take(&one, "ann", 0).remaining, left, "{one:?} after {two:?}");
        }
    }
}

// part of: B3
#[test]
fn long_keys_are_kept_under_a_hash_of_bounded_length() {
    let mut redis = Redis::start();
    let limit = classic();
    for length in [256, 257, 100_000] {
        assert_eq!(redis.take(&limit, &"x".repeat(length), 1).remaining, 14);
        assert_eq!(redis.take(&limit, &"x".repeat(length), 1).remaining, 13);
    }
    let names: Vec<String> = redis.ask(redis::cmd("KEYS").arg("rl:*"));
    assert_eq!(names.len(), 3);
    assert!(names.iter().all(|name| name.len() <= NAME.len() - 13 + 256), "{names:?}");
}

// part of: B3
#[test]
fn slots_are_where_redis_puts_them() {
    let server = servers::RedisOptions::new().line("cluster-enabled yes").start().unwrap();
    let client = redis::Client::open(format!("redis://{}", server.addr())).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut chance = Chance::new(5);
    let names = names::Names::new("rl", true);
    for _ in 0..500 {
        let key: Vec<u8> =
            (0..chance.within(0, 12)).map(|_| chance.one_of(b"{}{}ab\x00\xff:")).collect();
        let name = names.counter(&classic(), &key);
        for name in [key, name] {
            let asked =
                redis::cmd("CLUSTER").arg("KEYSLOT").arg(&name).query::<u16>(&mut connection);
            assert_eq!(names::slot(&name), asked.unwrap(), "{name:?}");
        }
    }
}

#[test]
fn places_of_a_holder_come_back_however_many_they_are() {
    let mut redis = Redis::start();
    let limit = named("many", Limit::concurrency(5_000, Duration::from_secs(60)).unwrap());
    for (lease, cost) in [(7, 40), (8, 1), (9, 2_500), (0, 3), (0, 4)] {
        let charges = [Charge { limit: &limit, key: b"ann", cost }];
        let take = Take { lease, ..Take::now(&charges) };
        let request = Request::take(&redis.names, take);
        assert!(redis.decide(&request).allowed);
    }
    let mut left = 5_000 - 40 - 1 - 2_500 - 7;
    assert_eq!(redis.take(&limit, "ann", 0).remaining, left);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 0 }];
    for (lease, freed) in [(9, 2_500), (7, 40), (7, 0), (1, 0), (0, 7), (8, 1)] {
        let release = Request::release(&redis.names, &charges, lease);
        redis.run(&[&release]);
        left += freed;
        assert_eq!(redis.take(&limit, "ann", 0).remaining, left, "lease {lease}");
    }
    let keys: u64 = redis.ask(redis::cmd("EXISTS").arg("rl:many:ann"));
    assert_eq!(keys, 0);
}

#[test]
fn keys_take_no_more_memory_than_the_classic_ones() {
    let mut redis = Redis::start();
    let limit = classic();
    redis.pass(123_457);
    redis.take(&limit, "192.168.1.100", 1);
    let ours: u64 = redis.ask(redis::cmd("MEMORY").arg("USAGE").arg(NAME));
    // Two fields, a float and milliseconds, as the well-known scripts write them.
    let classic = NAME.replace("rl:", "cl:");
    let mut write = redis::cmd("HSET");
    write.arg(&classic).arg(&["tokens", "13.995440000000001", "lastRefill", "1794830400123"]);
    let _: i64 = redis.ask(&write);
    let _: i64 = redis.ask(redis::cmd("PEXPIRE").arg(&classic).arg(10_000));
    let theirs: u64 = redis.ask(redis::cmd("MEMORY").arg("USAGE").arg(&classic));
    assert!(ours <= theirs, "{ours} bytes, the classic hash {theirs}");

    let strict = named("strict", Limit::sliding_window(Rate::per(100, Unit::Minute)).unwrap());
    for _ in 0..100 {
        redis.take(&strict, "192.168.1.100", 1);
        // The leanest log there is: its members are nothing but the time.
        let now = redis.now().as_micros();
        let _: i64 = redis.ask(redis::cmd("ZADD").arg("log").arg(now).arg(now));
        redis.pass(500_000);
    }
    let ours: u64 = redis.ask(redis::cmd("MEMORY").arg("USAGE").arg("rl:strict:192.168.1.100"));
    let mut theirs = redis::cmd("MEMORY");
    theirs.arg("USAGE").arg("log").arg("SAMPLES").arg(0);
    let theirs: u64 = redis.ask(&theirs);
    assert!(ours * 10 <= theirs, "{ours} bytes, a log of a hundred {theirs}");
}
