//! Decisions on a store whose answers take their time, or do not come, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::{Instant, timeout};
use tollgate_engine::{CannotDecide, Engine, Outcome, Rules};
use tollgate_rules::Attributes;
use tollgate_store::{MemoryConfig, MemoryStore, Store};
use tollgate_testkit::{
    TokioClock,
    remote_store::{Network, RemoteStore},
};

const LATE: Network = Network::Late { there: Duration::ZERO, back: Duration::from_millis(20) };

fn rules(policies: &str) -> Rules {
    let config = tollgate_rules::read("test", &format!("policies:\n{policies}"), &|_| None);
    Rules::new(config.unwrap_or_else(|mistakes| panic!("{mistakes}")).rules, 64)
}

fn late_engine(policies: &str) -> (Arc<Engine>, Arc<RemoteStore>) {
    let store = Arc::new(RemoteStore::new(Arc::new(TokioClock::start())));
    store.set(LATE);
    (Arc::new(Engine::new(store.clone(), rules(policies))), store)
}

struct Anybody;

impl Attributes for Anybody {
    fn ip(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }
    fn header(&self, _name: &str) -> Option<&[u8]> {
        None
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

async fn decide(engine: &Engine, policies: &[usize]) -> Outcome {
    let rules = engine.rules().clone();
    engine.decide(&rules, policies, &Anybody).await.unwrap()
}

const ALL_KINDS: &str = r#"
  - {id: lone, key: "{ip}", limits: [{algorithm: token_bucket, rate: 3/h}]}
  - {id: several, key: "{ip}", limits: [{algorithm: token_bucket, rate: 5/h}, {algorithm: fixed_window, rate: 4/day}]}
  - {id: tried, enforce: false, key: "{ip}", limits: [{algorithm: token_bucket, rate: 2/h}]}
  - {id: tried2, enforce: false, key: "{ip}", limits: [{algorithm: token_bucket, rate: 9/h}, {algorithm: sliding_log, rate: 1/h}]}
  - {id: flight, key: "{ip}", limits: [{algorithm: concurrency, limit: 2, lease: 30s}, {algorithm: token_bucket, rate: 6/h}]}
  - {id: open, key: "{ip}", limits: []}
"#;

// part of: A7, C14
#[tokio::test(start_paused = true)]
async fn every_question_is_one_round_trip() {
    let (engine, store) = late_engine(ALL_KINDS);
    let (start, mut calls) = (Instant::now(), 0);
    let mut one_more = || {
        calls += 1;
        assert_eq!(store.calls(), calls);
        let waited = Duration::from_millis(20 * calls);
        assert!((waited..waited + Duration::from_millis(calls)).contains(&start.elapsed()));
    };
    let outcome = decide(&engine, &[0, 1, 2, 3, 4, 5]).await;
    assert!(outcome.allowed && outcome.dry_run.is_empty() && outcome.held.is_some());
    assert_eq!(outcome.shown.unwrap().policy, 4);
    one_more();
    let second = decide(&engine, &[0, 1, 2, 3, 4, 5]).await;
    assert!(second.allowed);
    assert_eq!(second.dry_run.as_slice(), [3]);
    one_more();
    let levels = engine.inspect("several", b"127.0.0.1").await.unwrap();
    assert_eq!(levels.iter().map(|(_, seen)| seen.remaining).collect::<Vec<_>>(), [3, 2]);
    one_more();
    let rules = engine.rules().clone();
    let key: &[u8] = b"127.0.0.1";
    let asks: Vec<_> = (0..6).map(|policy| (policy, key, 1)).collect();
    let outcomes = engine.check_each(&rules, &asks).await.unwrap();
    let allowed: Vec<_> = outcomes.iter().map(|outcome| outcome.allowed).collect();
    assert_eq!(allowed, [true, true, true, true, false, true]);
    one_more();
    engine.refund("several", key, 1).await.unwrap();
    one_more();
    engine.reset("several", key).await.unwrap();
    one_more();
    assert_eq!(engine.check("several", key, 0).await.unwrap().shown.unwrap().decision.remaining, 4);
    one_more();
    // Nothing to ask.
    assert!(decide(&engine, &[5]).await.allowed);
    assert_eq!(engine.inspect("open", key).await.unwrap(), []);
    assert_eq!(store.calls(), calls);
    drop((outcome, second));
}

/// What came of it, with whether places are held.
fn told(outcome: &Outcome) -> String {
    let shown = outcome.shown.map(|shown| (shown.policy, shown.limit, shown.decision.remaining));
    format!("{} {:?} {} {shown:?}", outcome.allowed, outcome.dry_run, outcome.held.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // part of: A7, C14
    #[test]
    fn a_batch_decides_as_one_after_the_other(
        asks in prop::collection::vec((0_usize..6, 0_usize..2, 0_u64..3), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (batched, _store) = late_engine(ALL_KINDS);
            let memory = MemoryStore::new(MemoryConfig::default(), Arc::new(TokioClock::start()));
            let single = Engine::new(Arc::new(memory), rules(ALL_KINDS));
            let keys: [&[u8]; 2] = [b"ann", b"bob"];
            let asks: Vec<_> =
                asks.iter().map(|(policy, key, cost)| (*policy, keys[*key], *cost)).collect();
            let together = batched.check_each(&batched.rules(), &asks).await.unwrap();
            let mut outcomes = Vec::new();
            for ((policy, key, cost), seen) in asks.iter().zip(&together) {
                let rules = single.rules().clone();
                let outcome = single.check_under(&rules, *policy, key, *cost).await.unwrap();
                assert_eq!(told(seen), told(&outcome), "{policy} {cost}");
                // Kept, so that places are held by both alike.
                outcomes.push(outcome);
            }
        });
    }
}

const SLOW: &str =
    "  - {id: out, key: \"{ip}\", limits: [{algorithm: token_bucket, rate: 1/s, burst: 1}]}\n";

// part of: A9
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_late_answer_goes_at_its_turn_and_not_before() {
    let (engine, _store) = late_engine(SLOW);
    let start = Instant::now();
    let acquire = || engine.acquire("out", b"api", 1, Duration::from_secs(9));
    let all = tokio::join!(acquire(), acquire(), acquire());
    for (turn, acquired) in [all.0, all.1, all.2].into_iter().enumerate() {
        let (outcome, waited) = acquired.unwrap();
        assert!(outcome.allowed);
        let due = Duration::from_secs(turn as u64);
        assert!((due..due + Duration::from_millis(25)).contains(&waited), "{turn}: {waited:?}");
    }
    assert!(start.elapsed() < Duration::from_millis(2_025));
}

// part of: A9
#[tokio::test(start_paused = true)]
async fn who_leaves_before_the_store_has_answered_gives_the_place_back() {
    let (engine, store) = late_engine(SLOW);
    let acquire = || engine.acquire("out", b"api", 1, Duration::from_secs(9));
    assert!(acquire().await.unwrap().0.allowed);
    // Three leave while the store is being asked; in it their places are taken by then.
    for _ in 0..3 {
        timeout(Duration::from_millis(5), acquire()).await.unwrap_err();
    }
    store.set(Network::AtOnce);
    let start = Instant::now();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(acquire().await.unwrap().0.allowed);
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
}

// part of: A9
#[tokio::test(start_paused = true)]
async fn those_behind_one_that_left_without_an_answer_move_up() {
    let (engine, _store) = late_engine(SLOW);
    let start = Instant::now();
    let acquire = || engine.acquire("out", b"api", 1, Duration::from_secs(9));
    let left = timeout(Duration::from_millis(5), acquire());
    let (first, left, behind) = tokio::join!(acquire(), left, acquire());
    assert!(first.unwrap().0.allowed && left.is_err() && behind.unwrap().0.allowed);
    // The turn after the first: its own would have been a second later.
    let at = start.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_millis(1_050)).contains(&at), "{at:?}");
    // And nobody else has it: the next goes a second after.
    assert!(acquire().await.unwrap().0.allowed);
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
}

const FLIGHT: &str = r#"
  - {id: both, key: "{ip}", limits: [{algorithm: concurrency, limit: 3, lease: 30s}, {algorithm: token_bucket, rate: 1/s, burst: 1}]}
  - {id: two, key: "{ip}", limits: [{algorithm: concurrency, limit: 2, lease: 30s}]}
"#;

// part of: A6
#[tokio::test(start_paused = true)]
async fn who_leaves_a_queue_frees_its_own_place_in_flight_and_nobody_elses() {
    let (engine, _store) = late_engine(FLIGHT);
    let (first, _) = engine.acquire("both", b"ann", 1, Duration::from_secs(9)).await.unwrap();
    assert!(first.allowed);
    let waiting = engine.acquire("both", b"ann", 1, Duration::from_secs(9));
    timeout(Duration::from_millis(300), waiting).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let levels = engine.inspect("both", b"ann").await.unwrap();
    assert_eq!(levels[0].1.remaining, 2);
    drop(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(engine.inspect("both", b"ann").await.unwrap()[0].1.remaining, 3);
}

// part of: A6
#[tokio::test(start_paused = true)]
async fn a_place_in_flight_is_free_again_when_its_request_left_before_the_answer() {
    let (engine, _store) = late_engine(FLIGHT);
    for _ in 0..5 {
        timeout(Duration::from_millis(5), decide(&engine, &[1])).await.unwrap_err();
    }
    let held = decide(&engine, &[1]).await;
    assert!(held.allowed);
    assert_eq!(engine.inspect("two", b"127.0.0.1").await.unwrap()[0].1.remaining, 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_there_is_no_decision() {
    let (engine, store) = late_engine(ALL_KINDS);
    store.set(Network::Refused);
    let rules = engine.rules().clone();
    let told = |error: CannotDecide| {
        assert_eq!(error.to_string(), "the store is unavailable: connection refused")
    };
    told(engine.decide(&rules, &[0], &Anybody).await.unwrap_err());
    told(engine.decide(&rules, &[0, 2, 4], &Anybody).await.unwrap_err());
    told(engine.check_each(&rules, &[(4, b"ann", 1)]).await.unwrap_err());
    told(engine.acquire("lone", b"ann", 1, Duration::ZERO).await.unwrap_err());
    told(engine.inspect("lone", b"ann").await.unwrap_err());
    told(engine.reset("lone", b"ann").await.unwrap_err());
    told(engine.refund("lone", b"ann", 1).await.unwrap_err());
    told(engine.release("flight", b"ann", 1).await.unwrap_err());
    assert!(store.now() > tollgate_core::Time::ZERO);
}
