//! Decisions over real rules and a memory store, with time in the test's hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::Instant;
use tollgate_core::{Clock, Rate, Time, Unit, Wait};
use tollgate_engine::{CannotDecide, Engine, Outcome, Rules};
use tollgate_rules::Attributes;
use tollgate_store::{MemoryConfig, MemoryStore};
use tollgate_testkit::history::{Admission, check_bucket};

/// The time of tokio, which tests pause and which then jumps to the next timer.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Time {
        Time::from_secs(1_794_787_200).after(self.0.elapsed())
    }
}

fn rules(policies: &str) -> Rules {
    let config = tollgate_rules::read("test", &format!("policies:\n{policies}"), &|_| None);
    Rules::new(config.unwrap_or_else(|mistakes| panic!("{mistakes}")).rules, 64)
}

fn engine(policies: &str) -> Arc<Engine> {
    let clock = Arc::new(TokioClock(Instant::now()));
    Arc::new(Engine::new(
        Arc::new(MemoryStore::new(MemoryConfig::default(), clock)),
        rules(policies),
    ))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(test));
}

/// Lets time pass. It is paused, so nobody waits: the clock jumps from timer to timer.
async fn pass(time: Duration) {
    tokio::time::sleep_until(Instant::now() + time).await;
}

struct From(&'static str);

impl Attributes for From {
    fn ip(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        (name == "x-user").then_some(self.0.as_bytes())
    }
    fn host(&self) -> Option<&str> {
        None
    }
    fn method(&self) -> &str {
        "GET"
    }
    fn path(&self) -> &str {
        "/"
    }
    fn query(&self) -> Option<&str> {
        None
    }
}

async fn decide(engine: &Engine, policies: &[usize], user: &'static str) -> Outcome {
    let rules = engine.rules().clone();
    engine.decide(&rules, policies, &From(user)).await.unwrap()
}

const ENDPOINT_AND_GLOBAL: &str = r#"
  - {id: endpoint, key: "{header.x-user}", limits: [{algorithm: token_bucket, rate: 2/h}]}
  - {id: global, key: "{header.x-user}", limits: [{algorithm: token_bucket, rate: 9/h}, {algorithm: fixed_window, rate: 3/day}]}
"#;

// covers: A7
#[test]
fn policies_of_a_route_are_decided_together_and_the_refusing_limit_is_named() {
    run(async {
        let engine = engine(ENDPOINT_AND_GLOBAL);
        assert!(decide(&engine, &[0, 1], "ann").await.allowed);
        assert!(decide(&engine, &[0, 1], "ann").await.allowed);
        for _ in 0..5 {
            let refused = decide(&engine, &[0, 1], "ann").await;
            let shown = refused.shown.unwrap();
            assert!(!refused.allowed);
            assert_eq!((shown.policy, shown.limit), (0, 0));
        }
        // The refusals cost the global policy nothing; its second limit has one left.
        assert!(decide(&engine, &[1], "ann").await.allowed);
        let shown = decide(&engine, &[1], "ann").await.shown.unwrap();
        assert_eq!((shown.policy, shown.limit, shown.decision.allowed), (1, 1, false));
        assert!(decide(&engine, &[0, 1], "bob").await.allowed);
    });
}

// covers: C14
#[test]
fn a_dry_run_neither_refuses_nor_spares() {
    run(async {
        let engine = engine(
            r#"
  - {id: tried, enforce: false, key: "{ip}", limits: [{algorithm: token_bucket, rate: 1/h}]}
  - {id: real, key: "{ip}", limits: [{algorithm: token_bucket, rate: 3/h}]}
"#,
        );
        let mut seen = Vec::new();
        for _ in 0..5 {
            let outcome = decide(&engine, &[0, 1], "ann").await;
            seen.push((outcome.allowed, outcome.dry_run.to_vec()));
        }
        let would = |allowed| (allowed, vec![0]);
        assert_eq!(seen, [(true, vec![]), would(true), would(true), would(false), would(false)]);
    });
}

// covers: A12
#[test]
fn a_policy_without_limits_is_no_limit() {
    run(async {
        let engine = engine("  - {id: open, key: \"{ip}\", limits: []}\n");
        for _ in 0..100 {
            let outcome = decide(&engine, &[0], "ann").await;
            assert!(outcome.allowed && outcome.shown.is_none());
        }
    });
}

#[test]
fn what_cannot_be_decided_is_said_and_changes_nothing() {
    run(async {
        let engine = engine(ENDPOINT_AND_GLOBAL);
        let long = vec![b'x'; 4_097];
        let told = |result: Result<Outcome, CannotDecide>| result.unwrap_err().to_string();
        assert_eq!(told(engine.check("nobody", b"ann", 1).await), "there is no policy \"nobody\"");
        assert_eq!(
            told(engine.check("global", b"", 1).await),
            "the key is empty: name whom to count"
        );
        assert_eq!(
            told(engine.check("global", &long, 1).await),
            "the key has 4097 bytes: at most 4096"
        );
        let high = told(engine.check("global", b"ann", (1 << 53) + 1).await);
        assert_eq!(high, "the cost is 9007199254740993: at most 9007199254740992");
        assert_eq!(engine.inspect("global", b"ann").await.unwrap()[1].1.remaining, 3);
    });
}

// covers: B12
#[test]
fn new_rules_keep_the_levels() {
    run(async {
        let engine = engine(ENDPOINT_AND_GLOBAL);
        engine.check("endpoint", b"ann", 1).await.unwrap();
        engine.replace(rules(
            "  - {id: endpoint, key: \"{ip}\", limits: [{algorithm: token_bucket, rate: 10/h}]}\n",
        ));
        assert_eq!(
            engine.check("endpoint", b"ann", 0).await.unwrap().shown.unwrap().decision.remaining,
            5
        );
        // Rules that only look different change nothing at all.
        engine.replace(rules("  - {id: endpoint, key: \"{host}\", limits: [{algorithm: token_bucket, rate: 10/h, burst: 10}]}\n"));
        assert_eq!(
            engine.check("endpoint", b"ann", 1).await.unwrap().shown.unwrap().decision.remaining,
            4
        );
    });
}

const TEN_A_SECOND: &str =
    "  - {id: out, key: \"{ip}\", limits: [{algorithm: token_bucket, rate: 10/s, burst: 1}]}\n";

// covers: A9
#[test]
fn callers_who_wait_go_in_the_order_they_came() {
    run(async {
        let engine = engine(TEN_A_SECOND);
        let start = Instant::now();
        let gone = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for number in 0..5_u64 {
            let (engine, gone) = (engine.clone(), gone.clone());
            tasks.push(tokio::task::spawn_local(async move {
                let (outcome, waited) =
                    engine.acquire("out", b"api", 1, Duration::from_secs(9)).await.unwrap();
                assert!(outcome.allowed);
                gone.lock().unwrap().push((
                    number,
                    start.elapsed().as_millis(),
                    waited.as_millis(),
                ));
            }));
            tokio::task::yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        let gone = gone.lock().unwrap();
        assert!(gone.iter().map(|(number, ..)| *number).eq(0..5), "{gone:?}");
        // Timers tick in milliseconds, and never early.
        for (number, at, waited) in gone.iter() {
            assert!(
                (number * 100..=number * 100 + 2).contains(&u64::try_from(*at).unwrap()),
                "{gone:?}"
            );
            assert_eq!(at, waited);
        }
    });
}

// covers: A9
#[test]
fn who_would_wait_too_long_is_refused_at_once() {
    run(async {
        let engine = engine(TEN_A_SECOND);
        engine.check("out", b"api", 1).await.unwrap();
        let start = Instant::now();
        let (outcome, _) =
            engine.acquire("out", b"api", 1, Duration::from_millis(99)).await.unwrap();
        assert_eq!((outcome.allowed, start.elapsed()), (false, Duration::ZERO));
        let told = outcome.shown.unwrap().decision.retry_after;
        assert_eq!(told, Wait::For(Duration::from_millis(100)));
        let (never, _) = engine.acquire("out", b"api", 2, Duration::from_secs(900)).await.unwrap();
        assert_eq!(never.shown.unwrap().decision.retry_after, Wait::Never);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Callers come, wait and leave at random. Nobody passes early, nobody loses more than the
    /// place it gave up, and once all have gone nothing is left behind.
    // covers: A9
    #[test]
    fn leaving_a_queue_never_lets_two_pass_for_one(
        callers in prop::collection::vec((0_u64..400, prop::option::of(0_u64..1_500), 1_u64..3), 1..25),
        same_cost in any::<bool>(),
    ) {
        run(async move {
            let engine = engine("  - {id: out, key: \"{ip}\", limits: [{algorithm: token_bucket, rate: 5/s, burst: 2}]}\n");
            let start = Instant::now();
            let passed = Arc::new(Mutex::new(Vec::new()));
            let mut tasks = Vec::new();
            for (pause, leaves, cost) in callers {
                pass(Duration::from_millis(pause)).await;
                let cost = if same_cost { 1 } else { cost };
                let (engine, passed) = (engine.clone(), passed.clone());
                tasks.push(tokio::task::spawn_local(async move {
                    let leaves = leaves.map_or(Duration::from_secs(600), Duration::from_millis);
                    let acquired = engine.acquire("out", b"api", cost, Duration::from_secs(60));
                    if let Ok(acquired) = tokio::time::timeout(leaves, acquired).await {
                        assert!(acquired.unwrap().0.allowed);
                        let at = Time::from_secs(1).after(start.elapsed());
                        // A timer fires within the millisecond after the turn.
                        let sent = Time::from_micros(at.as_micros() - 2_000);
                        passed.lock().unwrap().push(Admission { sent, answered: at, cost });
                    }
                }));
            }
            for task in tasks {
                task.await.unwrap();
            }
            let rate = Rate::per(5, Unit::Second);
            check_bucket(&passed.lock().unwrap(), rate, 2).unwrap();
            pass(Duration::from_secs(60)).await;
            assert_eq!(engine.check("out", b"api", 0).await.unwrap().shown.unwrap().decision.remaining, 2);
        });
    }
}

// covers: A9
#[test]
fn when_one_leaves_those_behind_move_up() {
    run(async {
        let engine = engine(TEN_A_SECOND);
        let start = Instant::now();
        engine.check("out", b"api", 1).await.unwrap();
        let acquire = |engine: Arc<Engine>| async move {
            engine.acquire("out", b"api", 1, Duration::from_secs(9)).await.unwrap();
            start.elapsed().as_millis()
        };
        let mut tasks: Vec<_> =
            (0..4).map(|_| tokio::task::spawn_local(acquire(engine.clone()))).collect();
        pass(Duration::from_millis(10)).await;
        tasks.remove(0).abort();
        let mut at = Vec::new();
        for task in tasks {
            at.push(task.await.unwrap());
        }
        assert!(
            at.iter().zip([100, 200, 300]).all(|(at, due)| (due..=due + 2).contains(at)),
            "{at:?}"
        );
    });
}

// covers: A6
#[test]
fn a_place_in_flight_is_passed_on_when_it_is_given_back() {
    run(async {
        let engine = engine(
            "  - {id: two, key: \"{ip}\", limits: [{algorithm: concurrency, limit: 2, lease: 30s}]}\n",
        );
        let first = decide(&engine, &[0], "ann").await;
        let second = decide(&engine, &[0], "ann").await;
        assert!(first.allowed && second.allowed && first.held.is_some());
        assert!(!decide(&engine, &[0], "ann").await.allowed);
        drop(first);
        let third = decide(&engine, &[0], "ann").await;
        assert!(third.allowed);
        // Someone who waits is woken by the next who leaves.
        let waiting = tokio::task::spawn_local({
            let engine = engine.clone();
            async move { engine.acquire("two", b"127.0.0.1", 1, Duration::from_secs(60)).await.unwrap() }
        });
        pass(Duration::from_secs(1)).await;
        drop(third);
        let (outcome, waited) = waiting.await.unwrap();
        assert!(outcome.allowed && waited < Duration::from_secs(2), "{waited:?}");
        // And a holder that died loses its place when its lease ends.
        std::mem::forget(second);
        std::mem::forget(outcome);
        assert!(!decide(&engine, &[0], "ann").await.allowed);
        pass(Duration::from_secs(30)).await;
        assert!(decide(&engine, &[0], "ann").await.allowed);
    });
}

// part of: A6
#[test]
fn a_place_that_comes_free_at_another_engine_is_found() {
    run(async {
        let clock = Arc::new(TokioClock(Instant::now()));
        let store = Arc::new(MemoryStore::new(MemoryConfig::default(), clock));
        let policies = "- id: two\n  limits: [{algorithm: concurrency, limit: 1, lease: 60s}]\n";
        let node = |first| Engine::new(store.clone(), rules(policies)).naming_leases_from(first);
        let (here, there) = (node(1), Arc::new(node(1_000)));
        let mut held = there.check("two", b"ann", 1).await.unwrap();
        let lease = held.held.take().unwrap().keep();
        let elsewhere = there.clone();
        tokio::task::spawn_local(async move {
            pass(Duration::from_secs(2)).await;
            elsewhere.release("two", b"ann", lease).await.unwrap();
        });
        let acquired = here.acquire("two", b"ann", 1, Duration::from_secs(60)).await.unwrap();
        assert!(acquired.0.allowed);
        assert!(acquired.1 < Duration::from_millis(2_051), "{:?}", acquired.1);
    });
}
