//! The memory store: the contract, its bounds, its memory and its file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::HashMap,
    sync::{Arc, Barrier},
    time::Duration,
};

use proptest::prelude::*;
use tollgate_core::{Ask, Clock, Limit, Patience, Rate, State, Time, Unit};
use tollgate_store::{
    AtBound, Bound, Charge, LoadError, MemoryConfig, MemoryStore, NamedLimit, Store, SystemClock,
    Take,
};
use tollgate_testkit::{ManualClock, contract, history};

fn bounded(keys: usize, at_bound: AtBound) -> MemoryConfig {
    MemoryConfig { bound: Bound { keys, bytes: usize::MAX }, at_bound }
}

fn store(config: MemoryConfig) -> (MemoryStore, ManualClock) {
    let clock = ManualClock::default();
    (MemoryStore::new(config, Arc::new(clock.clone())), clock)
}

fn per_hour(count: u64) -> NamedLimit {
    NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(count, Unit::Hour), count).unwrap())
}

fn take(store: &MemoryStore, limit: &NamedLimit, key: &[u8], cost: u64) -> tollgate_core::Decision {
    store.take_now(Take::now(&[Charge { limit, key, cost }]))
}

struct InMemory {
    store: Arc<MemoryStore>,
    clock: ManualClock,
}

impl contract::Subject for InMemory {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_ready(), "memory never waits");
}

// covers: A7, A8, A9, A12, A13, B12
#[test]
fn the_memory_store_keeps_the_contract() {
    for config in
        [MemoryConfig::default(), bounded(1_000, AtBound::Evict), bounded(1_000, AtBound::Refuse)]
    {
        let (store, clock) = store(config);
        block_on(contract::check(&InMemory { store: Arc::new(store), clock }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The store packs, lists, moves and sweeps states; what it decides is what the bare algorithms
    /// decide on states that nobody touches.
    #[test]
    fn packing_and_sweeping_change_no_decision(
        steps in prop::collection::vec((0_u64..40, 0_usize..7, 1_u64..5, 0_u64..400_000), 1..600),
    ) {
        let (store, clock) = store(bounded(100_000, AtBound::Evict));
        let rate = Rate::per(5, Unit::Second);
        let limits = [
            Limit::token_bucket(Rate::per(3, Unit::Second), 4), Limit::leaky_bucket(rate, 4), Limit::fixed_window(rate),
            Limit::sliding_log(rate), Limit::sliding_counter(rate), Limit::sliding_window(rate),
            Limit::token_bucket(Rate::per(1, Unit::Year), 1 << 53),
        ];
        let limits: Vec<_> = limits.into_iter().enumerate().map(|(at, limit)| NamedLimit::new("p", at, limit.unwrap())).collect();
        let mut bare = HashMap::<(u64, usize), State>::new();
        for (turn, (key, limit, cost, pause)) in steps.into_iter().enumerate() {
            clock.advance(Duration::from_micros(pause));
            let named = &limits[limit];
            let decision = take(&store, named, &key.to_le_bytes(), cost);
            let state = bare.entry((key, limit)).or_insert_with(|| named.limit().fresh());
            let ask = Ask { now: clock.now(), cost, patience: Patience::None, lease: 0 };
            let verdict = named.limit().check(state, ask);
            if verdict.allowed { named.limit().spend(state, ask); }
            prop_assert_eq!((decision.allowed, decision.remaining, decision.retry_after, decision.reset_after),
                (verdict.allowed, verdict.remaining, verdict.retry_after, verdict.reset_after));
            store.tidy(turn);
        }
    }
}

// part of: B4
#[test]
fn the_number_of_keys_is_bounded_and_evictions_are_counted() {
    let (store, _) = store(bounded(50_000, AtBound::Evict));
    let limit = per_hour(10);
    for key in 0..200_000_u64 {
        assert!(take(&store, &limit, &key.to_le_bytes(), 1).allowed);
    }
    let stats = store.stats();
    assert!(stats.keys <= 50_000 && stats.keys > 45_000, "{stats:?}");
    assert_eq!(stats.evicted, 200_000 - stats.keys as u64);
}

// part of: B4
#[test]
fn bytes_are_bounded_whatever_a_key_costs() {
    let bytes = 4 << 20;
    let bound = Bound { keys: usize::MAX, bytes };
    let (store, clock) = store(MemoryConfig { bound, at_bound: AtBound::Evict });
    let log = NamedLimit::new("log", 0, Limit::sliding_log(Rate::per(1_000, Unit::Hour)).unwrap());
    let strict =
        NamedLimit::new("strict", 0, Limit::sliding_window(Rate::per(10, Unit::Hour)).unwrap());
    for turn in 0..400_000_u64 {
        clock.advance(Duration::from_micros(10));
        take(&store, &log, &(turn % 700).to_le_bytes(), 1);
        take(&store, &strict, &turn.to_le_bytes(), 1);
        if turn % 1_000 == 0 {
            // A shard may be over by the one log that it holds last.
            assert!(store.stats().bytes <= bytes + bytes / 8, "{:?}", store.stats());
        }
    }
    assert!(store.stats().evicted > 0);
}

// part of: B4
#[test]
fn at_the_bound_new_keys_are_refused_where_told() {
    let (store, clock) = store(bounded(100, AtBound::Refuse));
    let limit = per_hour(10);
    for key in 0..100_u64 {
        assert!(take(&store, &limit, &key.to_le_bytes(), 1).allowed);
    }
    let refused = take(&store, &limit, b"one more", 1);
    assert!(!refused.allowed && refused.retry_after > tollgate_core::Wait::ZERO);
    assert!(take(&store, &limit, &7_u64.to_le_bytes(), 1).allowed, "a known key goes on");
    assert_eq!(store.stats().refused, 1);
    // Once the others are idle there is room again.
    clock.advance(Duration::from_secs(3_600));
    store.tidy(0);
    assert!(take(&store, &limit, b"one more", 1).allowed);
}

/// Unique keys flood a store with a third of the room needed: those who owe much stay limited.
// part of: B4
#[test]
fn under_a_flood_of_unique_keys_an_abuser_stays_limited() {
    let (store, clock) = store(bounded(9_000, AtBound::Evict));
    let limit =
        NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(10, Unit::Second), 100).unwrap());
    let mut admitted = 0_u64;
    let mut flood = 0_u64;
    let seconds = 20;
    for _ in 0..seconds * 100 {
        clock.advance(Duration::from_millis(10));
        for _ in 0..2_700 {
            flood += 1;
            take(&store, &limit, &flood.to_le_bytes(), 1);
        }
        for _ in 0..3 {
            admitted += u64::from(take(&store, &limit, b"abuser", 1).allowed);
        }
    }
    let limit = 100 + 10 * seconds;
    assert!(admitted * 100 <= limit * 101, "{admitted} of {limit}");
}

// part of: B4
#[test]
fn a_flood_leaves_nothing_behind() {
    let (store, clock) = store(MemoryConfig::default());
    let limits = [
        per_hour(10),
        NamedLimit::new("w", 0, Limit::sliding_window(Rate::per(10, Unit::Hour)).unwrap()),
    ];
    for key in 0..300_000_u64 {
        take(&store, &limits[usize::from(key % 2 == 0)], &key.to_le_bytes(), 1);
    }
    assert_eq!(store.stats().keys, 300_000);
    clock.advance(Duration::from_secs(2 * 3_600));
    for turn in 0..store.shard_count() {
        store.tidy(turn);
    }
    let stats = store.stats();
    assert_eq!((stats.keys, stats.bytes), (0, 0), "{stats:?}");
}

/// A TTL shorter than the time to full gave idle clients a new burst.
// part of: B4
#[test]
fn an_idle_pause_mints_nothing() {
    let (store, clock) = store(MemoryConfig::default());
    let limit = per_hour(60);
    assert!(take(&store, &limit, b"ann", 60).allowed);
    for minute in 1..60_u64 {
        clock.advance(Duration::from_secs(60));
        for turn in 0..store.shard_count() {
            store.tidy(turn);
        }
        assert_eq!(take(&store, &limit, b"ann", 0).remaining, minute);
    }
}

// covers: A10; part of: B4
#[test]
fn a_key_costs_what_is_said() {
    let (store, _) = store(MemoryConfig::default());
    let limit = per_hour(10);
    for key in 0..1_000_000_u64 {
        take(&store, &limit, &key.to_le_bytes(), 1);
    }
    let bucket = store.stats().bytes / 1_000_000;
    assert!(bucket <= 34, "{bucket} bytes a bucket");
    let (store, _) = self::store(MemoryConfig::default());
    let strict = NamedLimit::new("w", 0, Limit::sliding_window(Rate::per(10, Unit::Hour)).unwrap());
    for key in 0..1_000_000_u64 {
        take(&store, &strict, &key.to_le_bytes(), 1);
    }
    let strict = store.stats().bytes / 1_000_000;
    assert!(strict <= 140, "{strict} bytes a strict window, with all that the table adds");
}

// part of: B9
#[test]
fn of_many_threads_exactly_one_takes_the_last_place() {
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), Arc::new(SystemClock::start())));
    for round in 0..200_u64 {
        let barrier = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (store, barrier) = (store.clone(), barrier.clone());
                std::thread::spawn(move || {
                    let one = NamedLimit::new(
                        "one",
                        0,
                        Limit::token_bucket(Rate::per(1, Unit::Hour), 1).unwrap(),
                    );
                    let two = NamedLimit::new(
                        "two",
                        0,
                        Limit::fixed_window(Rate::per(9, Unit::Year)).unwrap(),
                    );
                    barrier.wait();
                    let shared = [7; 8];
                    let charges = [
                        Charge { limit: &one, key: &round.to_le_bytes(), cost: 1 },
                        Charge { limit: &two, key: &shared, cost: 0 },
                    ];
                    u64::from(store.take_now(Take::now(&charges)).allowed)
                })
            })
            .collect();
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 1);
    }
}

// part of: B9
#[test]
fn threads_under_real_time_never_admit_one_too_many() {
    let clock = SystemClock::start();
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), Arc::new(clock)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            std::thread::spawn(move || {
                let limit = NamedLimit::new(
                    "p",
                    0,
                    Limit::sliding_window(Rate::per(50, Unit::Second)).unwrap(),
                );
                let mut seen = Vec::new();
                for _ in 0..100_000 {
                    let sent = clock.now();
                    let allowed = take(&store, &limit, b"shared", 1).allowed;
                    if allowed {
                        seen.push(history::Admission { sent, answered: clock.now(), cost: 1 });
                    }
                }
                seen
            })
        })
        .collect();
    let seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(seen.len() >= 50);
    history::check_window(&seen, Duration::from_secs(1), 50).unwrap();
}

// covers: B13
#[test]
fn counters_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (old, clock) = store(MemoryConfig::default());
    let rate = Rate::per(4, Unit::Hour);
    let limits = [
        Limit::token_bucket(rate, 4),
        Limit::leaky_bucket(rate, 4),
        Limit::fixed_window(rate),
        Limit::sliding_log(rate),
        Limit::sliding_counter(rate),
        Limit::sliding_window(rate),
        Limit::concurrency(4, Duration::from_secs(3_600)),
        Limit::token_bucket(Rate::per(1, Unit::Year), 1 << 53),
    ];
    let limits: Vec<_> = limits
        .into_iter()
        .enumerate()
        .map(|(at, limit)| NamedLimit::new("p", at, limit.unwrap()))
        .collect();
    for (limit, key) in limits.iter().flat_map(|limit| (0..500_u64).map(move |key| (limit, key))) {
        take(&old, limit, &key.to_le_bytes(), 3);
    }
    assert_eq!(old.save(&path, &limits).unwrap(), 8 * 500);
    clock.advance(Duration::from_secs(60));
    // A smaller store has fewer shards; the keys are found all the same.
    let mut new = MemoryStore::new(bounded(20_000, AtBound::Evict), Arc::new(clock.clone()));
    let saved = new.load(&path).unwrap();
    assert_eq!(saved.len(), limits.len());
    for (limit, key) in saved.iter().flat_map(|limit| (0..500_u64).map(move |key| (limit, key))) {
        let (before, after) =
            (take(&old, limit, &key.to_le_bytes(), 0), take(&new, limit, &key.to_le_bytes(), 0));
        assert_eq!(before, after, "{limit:?}");
        assert!(after.remaining < limit.limit().capacity());
    }
}

// covers: B13
#[test]
fn a_damaged_file_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (old, clock) = store(MemoryConfig::default());
    let limit = per_hour(4);
    for key in 0..100_u64 {
        take(&old, &limit, &key.to_le_bytes(), 3);
    }
    let mut new = MemoryStore::new(MemoryConfig::default(), Arc::new(clock.clone()));
    assert!(matches!(new.load(&path), Err(LoadError::Missing(_))));
    old.save(&path, std::slice::from_ref(&limit)).unwrap();
    let good = std::fs::read(&path).unwrap();
    for broken in 0..good.len() + 40 {
        let mut bytes = good.clone();
        match bytes.get_mut(broken) {
            Some(byte) => *byte ^= 0x40,
            None => bytes.truncate(good.len() - 1 - (broken - good.len()) * 7),
        }
        if broken % 17 != 0 && broken > 200 && broken < good.len() {
            continue;
        }
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(new.load(&path), Err(LoadError::Damaged(..))), "byte {broken}");
        assert_eq!(new.stats().keys, 0);
    }
    std::fs::write(&path, good).unwrap();
    new.load(&path).unwrap();
    assert_eq!(new.stats().keys, 100);
}

// part of: B5
#[test]
fn a_clock_set_back_by_an_hour_neither_mints_nor_blocks() {
    let (store, clock) = store(MemoryConfig::default());
    let limit =
        NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(10, Unit::Second), 10).unwrap());
    assert!(take(&store, &limit, b"ann", 7).allowed);
    let back = Time::from_micros(clock.now().as_micros() - 3_600_000_000);
    clock.set(back);
    assert_eq!(take(&store, &limit, b"ann", 0).remaining, 3);
    clock.advance(Duration::from_millis(200));
    assert_eq!(take(&store, &limit, b"ann", 0).remaining, 5);
}
