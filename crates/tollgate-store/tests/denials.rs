//! The denial cache: it never says no when the store would say yes, and asks no more than it must.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tollgate_core::{Clock, Decision, Limit, Patience, Rate, Unit, Wait};
use tollgate_store::{
    Answer, Charge, Denials, Draw, Holding, MemoryConfig, MemoryStore, NamedLimit, Slices, Store,
    Take,
};
use tollgate_testkit::{
    ManualClock, TokioClock, contract,
    remote_store::{Network, RemoteStore},
};

fn denials() -> (Denials<RemoteStore>, ManualClock) {
    let clock = ManualClock::default();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    (Denials::new(RemoteStore::new(shared.clone()), shared), clock)
}

fn bucket(count: u64, burst: u64) -> NamedLimit {
    NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(count, Unit::Second), burst).unwrap())
}

#[track_caller]
fn now<T>(answer: Answer<'_, T>) -> T {
    match answer {
        Answer::Ready(answer) => answer.unwrap().unwrap(),
        Answer::Waiting(_) => panic!("this must not wait"),
    }
}

fn take(store: &dyn Store, limit: &NamedLimit, key: &str, cost: u64) -> Decision {
    now(store.take(Take::now(&[Charge { limit, key: key.as_bytes(), cost }])))
}

/// How often the store was called for what `act` does.
fn calls(store: &Denials<RemoteStore>, act: impl FnOnce()) -> u64 {
    let before = store.inner().calls();
    act();
    store.inner().calls() - before
}

struct Layer {
    store: Arc<Denials<RemoteStore>>,
    clock: ManualClock,
}

impl contract::Subject for Layer {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

#[tokio::test]
async fn with_the_denial_cache_a_store_keeps_the_contract() {
    let (store, clock) = denials();
    contract::check(&Layer { store: Arc::new(store), clock }).await;
}

#[derive(Debug, Clone)]
enum Act {
    Take { cost: u64, both: bool },
    Each,
    Refund(u64),
    Reset,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => (0_u64..6, any::<bool>()).prop_map(|(cost, both)| Act::Take { cost, both }),
        2 => Just(Act::Each),
        1 => (1_u64..4).prop_map(Act::Refund),
        1 => Just(Act::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Two stores with one clock, one behind the cache: at every instant both let the same pass.
    /// Refusals are never told a later time than the right one; it may have become later since,
    /// by what others took, and another limit may refuse for longer by now.
    // part of: B11
    #[test]
    fn behind_the_cache_the_same_requests_pass_at_the_same_instants(
        which in 0_usize..6,
        count in 1_u64..8,
        burst in 1_u64..8,
        steps in prop::collection::vec((act(), 0_usize..3, 0_u64..300_000), 1..200),
    ) {
        let rate = Rate::per(count, Unit::Second);
        let limits = [
            Limit::token_bucket(rate, burst),
            Limit::leaky_bucket(rate, burst),
            Limit::fixed_window(rate),
            Limit::sliding_log(rate),
            Limit::sliding_counter(rate),
            Limit::sliding_window(rate),
        ];
        let limit = NamedLimit::new("p", 0, limits[which].unwrap());
        let other = NamedLimit::new("p", 1, Limit::token_bucket(Rate::per(1, Unit::Second), 5).unwrap());
        let (cached, clock) = denials();
        let plain = MemoryStore::new(MemoryConfig::default(), Arc::new(clock.clone()));
        for (act, key, pause) in steps {
            // Many at the same instant, and some exactly when they were told to come.
            clock.advance(Duration::from_micros(if pause < 150_000 { 0 } else { pause }));
            let key: &[u8] = [b"ann", b"bob", b"cyd"][key];
            let charge = |limit, cost| Charge { limit, key, cost };
            match act {
                Act::Take { cost, both } => {
                    let charges = [charge(&limit, cost), charge(&other, cost)];
                    let take = Take::now(&charges[..if both { 2 } else { 1 }]);
                    let (seen, right) = (now(cached.take(take)), plain.take_now(take));
                    check(&seen, &right)?;
                    if let (false, Some(wait)) = (right.allowed, right.retry_after.duration())
                        && pause % 4 == 0
                    {
                        clock.advance(wait - Duration::from_micros(1));
                        prop_assert!(!now(cached.take(take)).allowed && !plain.take_now(take).allowed);
                        clock.advance(Duration::from_micros(1));
                        prop_assert!(now(cached.take(take)).allowed && plain.take_now(take).allowed);
                    }
                }
                Act::Each => {
                    let charges: Vec<_> = (1..6).map(|cost| [charge(&limit, cost)]).collect();
                    let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
                    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                    let mut answer = std::pin::pin!(cached.take_each(&takes));
                    let std::task::Poll::Ready(seen) = answer.as_mut().poll(&mut context) else {
                        panic!("the store behind does not wait");
                    };
                    for (seen, take) in seen.unwrap().iter().zip(&takes) {
                        check(seen, &plain.take_now(*take))?;
                    }
                }
                Act::Refund(cost) => {
                    let seen = now(cached.refund(&[charge(&limit, cost)]));
                    prop_assert_eq!(seen, plain.refund_now(&[charge(&limit, cost)]));
                }
                Act::Reset => {
                    now(cached.reset(&[charge(&limit, 0)]));
                    plain.reset_now(&[charge(&limit, 0)]);
                }
            }
        }
    }
}

fn check(seen: &Decision, right: &Decision) -> Result<(), TestCaseError> {
    prop_assert_eq!((seen.allowed, seen.at), (right.allowed, right.at));
    prop_assert!(seen.retry_after <= right.retry_after, "{:?} instead of {:?}", seen, right);
    Ok(())
}

// part of: B11
#[test]
fn a_refused_client_costs_no_call_until_it_may_pass() {
    let (store, clock) = denials();
    let limit = bucket(1, 2);
    assert!(take(&store, &limit, "ann", 2).allowed);
    let told = take(&store, &limit, "ann", 1);
    assert_eq!(told.retry_after, Wait::For(Duration::from_secs(1)));
    for millis in 0..1_000 {
        let refused = calls(&store, || {
            let decision = take(&store, &limit, "ann", 1);
            let left = Duration::from_millis(1_000 - millis);
            assert_eq!((decision.allowed, decision.retry_after), (false, Wait::For(left)));
            assert_eq!(decision.reset_after, left + Duration::from_secs(1));
            assert_eq!(decision.at, clock.now());
        });
        assert_eq!(refused, 0);
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(calls(&store, || assert!(take(&store, &limit, "ann", 1).allowed)), 1);
    assert_eq!(store.hits(), 1_000);
}

// part of: B11
#[test]
fn other_costs_keys_limits_and_numbers_are_other_requests() {
    let (store, _clock) = denials();
    let limit = bucket(1, 3);
    assert!(take(&store, &limit, "ann", 2).allowed && !take(&store, &limit, "ann", 2).allowed);
    assert!(take(&store, &limit, "bob", 2).allowed);
    let elsewhere = NamedLimit::new("q", 0, *limit.limit());
    assert!(take(&store, &elsewhere, "ann", 2).allowed);
    let wider = bucket(1, 30).succeeding(&limit, store.now());
    assert!(take(&store, &wider, "ann", 2).allowed);
    let narrow = bucket(1, 3).succeeding(&wider, store.now());
    // The very numbers of before, but other levels.
    assert_eq!(calls(&store, || assert!(!take(&store, &narrow, "ann", 2).allowed)), 1);
    assert_eq!(store.hits(), 0);
}

// part of: B11
#[test]
fn what_is_given_back_is_seen_at_once() {
    let (store, _clock) = denials();
    let limit = bucket(1, 3);
    let refused = || {
        assert!(!take(&store, &limit, "ann", 3).allowed);
        assert_eq!(calls(&store, || assert!(!take(&store, &limit, "ann", 3).allowed)), 0);
    };
    assert!(take(&store, &limit, "ann", 3).allowed);
    refused();
    let charge = |cost| Charge { limit: &limit, key: b"ann", cost };
    now(store.refund(&[charge(3)]));
    assert!(take(&store, &limit, "ann", 3).allowed);
    refused();
    now(store.reset(&[charge(0)]));
    assert!(take(&store, &limit, "ann", 3).allowed);
    refused();
    let level = tollgate_store::Level { at: store.now(), remaining: 0 };
    now(store.put_back(&[Holding { charge: charge(3), level }]));
    assert!(take(&store, &limit, "ann", 3).allowed);
}

// part of: B11
#[test]
fn what_an_operator_deletes_is_noticed_within_two_seconds() {
    let (store, clock) = denials();
    let hour = NamedLimit::new("p", 0, Limit::fixed_window(Rate::per(1, Unit::Hour)).unwrap());
    assert!(take(&store, &hour, "ann", 1).allowed && !take(&store, &hour, "ann", 1).allowed);
    assert_eq!(take(&store, &hour, "bob", 2).retry_after, Wait::Never);
    store.inner().behind().reset_now(&[Charge { limit: &hour, key: b"ann", cost: 0 }]);
    clock.advance(Duration::from_micros(1_999_999));
    let again = || take(&store, &hour, "ann", 1);
    assert_eq!(calls(&store, || assert!(!again().allowed)), 0);
    assert_eq!(again().retry_after, Wait::For(Duration::from_micros(3_598_000_001)));
    assert_eq!(calls(&store, || assert!(!take(&store, &hour, "bob", 2).allowed)), 0);
    clock.advance(Duration::from_micros(1));
    assert!(again().allowed);
    assert_eq!(calls(&store, || assert!(!take(&store, &hour, "bob", 2).allowed)), 1);
}

// part of: B11
#[test]
fn what_only_the_store_can_say_is_always_asked() {
    let (store, _clock) = denials();
    let limit = bucket(1, 1);
    let strict = bucket(1, 2).counting_refused(true);
    let places = Limit::concurrency(1, Duration::from_secs(9)).unwrap();
    let places = NamedLimit::new("c", 0, places);
    let ask = |limit: &NamedLimit, cost, patience| {
        let charges = [Charge { limit, key: b"ann", cost }];
        let ask = || now(store.take(Take { patience, lease: 1, ..Take::now(&charges) })).allowed;
        ask();
        assert_eq!(calls(&store, || assert!(!ask())), 1);
        assert_eq!(calls(&store, || assert!(!ask())), 1);
    };
    ask(&limit, 1, Patience::Micros(1));
    ask(&limit, 0, Patience::None);
    ask(&strict, 2, Patience::None);
    ask(&places, 1, Patience::None);
    assert_eq!(store.hits(), 0);
}

// part of: B11
#[test]
fn a_batch_asks_only_for_those_that_may_pass() {
    let (store, _clock) = denials();
    let limit = bucket(1, 2);
    let charge = |key: &'static str, cost| [Charge { limit: &limit, key: key.as_bytes(), cost }];
    let charges = [charge("ann", 2), charge("ann", 1), charge("bob", 1), charge("cyd", 3)];
    let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
    let decisions = now(store.take_each(&takes));
    let allowed: Vec<_> = decisions.iter().map(|decision| decision.allowed).collect();
    assert_eq!(allowed, [true, false, true, false]);
    // Two of the four are known by now; the others go in one call.
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let again = calls(&store, || {
        let mut answer = std::pin::pin!(store.take_each(&takes));
        let std::task::Poll::Ready(Ok(decisions)) = answer.as_mut().poll(&mut context) else {
            panic!("the store behind does not wait");
        };
        let allowed: Vec<_> = decisions.iter().map(|decision| decision.allowed).collect();
        assert_eq!(allowed, [false, false, true, false]);
    });
    assert_eq!((again, store.hits()), (1, 2));
    let known = [takes[0], takes[1], takes[3]];
    assert_eq!(calls(&store, || assert_eq!(now(store.take_each(&known)).len(), 3)), 0);
}

// part of: B10, B11
#[test]
fn a_refused_draw_is_not_drawn_again() {
    let (store, clock) = denials();
    let limit = bucket(1, 4);
    let charge = Charge { limit: &limit, key: b"ann", cost: 1 };
    assert_eq!(now(store.draw(Draw { charge, want: 9, left: 0 })).slice, 3);
    assert!(!now(store.draw(Draw { charge, want: 9, left: 0 })).decision.allowed);
    let again = calls(&store, || {
        let drawn = now(store.draw(Draw { charge, want: 9, left: 0 }));
        assert_eq!((drawn.decision.allowed, drawn.slice, drawn.level.remaining), (false, 0, 0));
        assert!(!now(store.take(Take::now(&[charge]))).allowed);
    });
    assert_eq!(again, 0);
    // Who still holds something hears from the store for how long.
    let draw = Draw { charge, want: 9, left: 1 };
    let holding = calls(&store, || assert_eq!(now(store.draw(draw)).slice, 1));
    assert_eq!(holding, 1);
    clock.advance(Duration::from_secs(1));
    assert!(now(store.draw(Draw { charge, want: 0, left: 0 })).decision.allowed);
}

// part of: B11
#[test]
fn a_flood_of_refused_keys_makes_no_wrong_answer_and_takes_bounded_memory() {
    let (store, _clock) = denials();
    let limit = bucket(1, 1);
    for number in 0..100_000 {
        let key = format!("{number}");
        assert!(take(&store, &limit, &key, 1).allowed, "{key} is somebody new");
        assert!(!take(&store, &limit, &key, 1).allowed);
    }
    let asked = calls(&store, || {
        for number in 0..100_000 {
            assert!(!take(&store, &limit, &format!("{number}"), 1).allowed);
        }
    });
    // What was pushed out is asked for again, and right.
    assert!((50_000..100_000).contains(&asked), "{asked}");
    // As many as have room cost nothing while they keep coming.
    let (store, _clock) = denials();
    let each = || {
        for number in 0..10_000 {
            take(&store, &limit, &format!("{number}"), 1);
        }
    };
    each();
    each();
    let asked = calls(&store, each);
    assert!(asked < 500, "{asked}");
}

// part of: B11
#[tokio::test(start_paused = true)]
async fn an_answer_that_took_long_is_kept_until_the_earliest_instant_it_can_mean_and_no_longer() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    let store = Denials::new(RemoteStore::new(clock.clone()), clock);
    let limit = bucket(1, 1);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    assert!(store.take(Take::now(&charges)).await.unwrap().allowed);
    let (there, back) = (Duration::from_millis(40), Duration::from_millis(30));
    store.inner().set(Network::Late { there, back });
    // Asked at 0, decided at 40 ms, answered at 70 ms: it may pass in the store after 960 ms.
    let told = store.take(Take::now(&charges)).await.unwrap();
    assert_eq!(told.retry_after, Wait::For(Duration::from_millis(960)));
    let calls = store.inner().calls();
    tokio::time::advance(Duration::from_millis(889)).await;
    // 959 ms after it was asked: from here. Whoever waits as told is admitted.
    let told = now(store.take(Take::now(&charges)));
    assert_eq!((told.allowed, store.inner().calls()), (false, calls));
    assert_eq!(told.retry_after, Wait::For(Duration::from_millis(71)));
    // From 960 ms on the store is asked: when the call arrives it is time.
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(store.take(Take::now(&charges)).await.unwrap().allowed);
}

// part of: B11
#[tokio::test(start_paused = true)]
async fn what_was_refused_while_a_refund_was_under_way_is_asked_again() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    let store = Denials::new(RemoteStore::new(clock.clone()), clock);
    let limit = bucket(1, 1);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    assert!(store.take(Take::now(&charges)).await.unwrap().allowed);
    let slow = Duration::from_millis(20);
    store.inner().set(Network::Late { there: slow, back: slow });
    let refund = async { store.refund(&charges).await.unwrap() };
    let refused = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        store.inner().set(Network::AtOnce);
        assert!(!now(store.take(Take::now(&charges))).allowed);
        assert!(!now(store.take(Take::now(&charges))).allowed);
        assert_eq!(store.hits(), 1);
    };
    tokio::join!(refund, refused);
    assert!(now(store.take(Take::now(&charges))).allowed);
}
