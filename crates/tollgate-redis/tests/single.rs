//! One server: what is shared, what is waited for, what happens when it goes and comes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;

use std::{
    pin::Pin,
    sync::{Arc, Barrier},
    task::{Context, Waker},
    thread,
    time::Duration,
};

use node::{
    Counts, complaint, config, daily, passes, runtime, start, start_hurried, take, wait_for_trouble,
};
use tollgate_core::{Clock, Limit, Rate, Unit};
use tollgate_redis::{ErrorKind, RedisStore};
use tollgate_store::{Charge, NamedLimit, Slices, Store, SystemClock, Take};
use tollgate_testkit::{
    ManualClock,
    faulty_link::{Fault, FaultyLink},
    history::{self, Admission},
    servers::{Redis, RedisOptions, redis},
    stopwatch::Stopwatch,
    wait::{PATIENCE, wait_until},
};

const SECOND: Duration = Duration::from_secs(1);

/// Takes until the store answers, and gives how long that took.
fn time_until_answered(store: &RedisStore, limit: &NamedLimit) -> Duration {
    let watch = Stopwatch::start();
    let runtime = runtime();
    wait_until(PATIENCE, || runtime.block_on(take(store, limit, "ann")).is_ok()).unwrap();
    watch.elapsed()
}

#[test]
fn a_lone_request_goes_at_once_and_many_share_calls() {
    let server = redis().unwrap();
    let counts = Arc::new(Counts::default());
    let store = RedisStore::start(config(&server.url()), counts.clone()).unwrap();
    let limit = daily("p", 1_000);
    runtime().block_on(async {
        take(&store, &limit, "ann").await.unwrap();
        assert_eq!(counts.seen(), (1, 1));
        let callers = (0..64).map(|_| {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(async move { passes(&store, &limit, "ann").await })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert!(caller.await.unwrap());
        }
        let (calls, requests) = counts.seen();
        assert_eq!(requests, 65);
        assert!(calls <= 8, "{calls} calls");
        assert!(passes(&store, &limit, "ann").await);
        assert_eq!(counts.seen(), (calls + 1, 66));
    });
}

#[test]
fn many_requests_of_one_caller_share_calls() {
    let server = redis().unwrap();
    let counts = Arc::new(Counts::default());
    let store = RedisStore::start(config(&server.url()), counts.clone()).unwrap();
    let limit = daily("p", 150);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let takes = vec![Take::now(&charges); 200];
    let decisions = runtime().block_on(store.take_each(&takes)).unwrap();
    // In two calls, of which either may be the first to arrive on a new connection.
    assert_eq!(decisions.iter().filter(|decision| decision.allowed).count(), 150);
    assert_eq!(counts.seen(), (2, 200));
}

/// Runs `callers` at the same time on each of four nodes.
fn on_four_nodes<T: Send>(url: &str, work: impl Fn(Arc<RedisStore>) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let store = start(url);
                    barrier.wait();
                    work(store)
                })
            })
            .collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

// covers: B2
#[test]
fn with_a_burst_of_one_exactly_one_of_many_callers_passes() {
    let server = redis().unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        let limit = daily("p", 1);
        let passed = on_four_nodes(&server.url(), |store| {
            runtime().block_on(async {
                let callers = (0..50).map(|_| {
                    let (store, limit) = (store.clone(), limit.clone());
                    tokio::spawn(async move { passes(&store, &limit, key).await })
                });
                let mut passed = 0;
                for caller in callers.collect::<Vec<_>>() {
                    passed += usize::from(caller.await.unwrap());
                }
                passed
            })
        });
        assert_eq!(passed.iter().sum::<usize>(), 1, "{passed:?}");
        // The script is not there any more; the next round begins with loading it.
        server.ask("SCRIPT FLUSH");
    }
}

// part of: B9
#[test]
fn four_nodes_never_admit_one_too_many() {
    let server = redis().unwrap();
    let rate = Rate::per(300, Unit::Second);
    let limit = NamedLimit::new("p", 0, Limit::token_bucket(rate, 30).unwrap());
    let clock = SystemClock::start();
    let admitted = on_four_nodes(&server.url(), |store| {
        runtime().block_on(async {
            let callers = (0..8).map(|_| {
                let (store, limit) = (store.clone(), limit.clone());
                tokio::spawn(async move {
                    let mut admitted = Vec::new();
                    for _ in 0..100 {
                        let sent = clock.now();
                        if passes(&store, &limit, "ann").await {
                            admitted.push(Admission { sent, answered: clock.now(), cost: 1 });
                        }
                    }
                    admitted
                })
            });
            let mut admitted = Vec::new();
            for caller in callers.collect::<Vec<_>>() {
                admitted.extend(caller.await.unwrap());
            }
            admitted
        })
    });
    let admitted = admitted.concat();
    assert!(admitted.len() >= 30, "{}", admitted.len());
    history::check_bucket(&admitted, rate, 30).unwrap();
}

// covers: B5
// Beside the clocks that are set back in src/call/tests/keys.rs, and the metrics page of tollgate-cli.
#[test]
fn nodes_whose_own_clocks_differ_share_one_limit_exactly() {
    let server = redis().unwrap();
    let own = SystemClock::start().now();
    let (early, late) = (ManualClock::default(), ManualClock::default());
    early.set(own);
    late.set(own);
    late.advance(Duration::from_millis(200));
    let nodes = [early, late].map(|clock| {
        RedisStore::start_with_clock(config(&server.url()), Arc::new(()), Arc::new(clock)).unwrap()
    });
    // A clock that stands still, and two that disagree, are as good as any.
    let limit = NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(1, Unit::Hour), 10).unwrap());
    runtime().block_on(async {
        let mut passed = 0;
        for turn in 0..40 {
            passed += usize::from(passes(&nodes[turn % 2], &limit, "ann").await);
        }
        assert_eq!(passed, 10);
        nodes[0].ready().await;
        nodes[1].ready().await;
    });
    let [one, other] = nodes.map(|node| node.stats().clock_offset_micros);
    // Both have measured how far they are from the same clock, give or take when they asked.
    assert!((one - other - 200_000).abs() < 3_000_000, "{one} {other}");
    assert!(one > 0, "{one}");
}

// part of: A13, B5
#[test]
fn whoever_waits_as_told_by_the_servers_clock_is_admitted_and_not_before() {
    let server = redis().unwrap();
    let store = start(&server.url());
    let rate = Rate::per(20, Unit::Second);
    let limits = [Limit::token_bucket(rate, 1), Limit::leaky_bucket(rate, 1)];
    let runtime = runtime();
    for (position, limit) in limits.into_iter().enumerate() {
        let limit = NamedLimit::new("p", position, limit.unwrap());
        let ask = || runtime.block_on(take(&store, &limit, "ann")).unwrap();
        assert!(ask().allowed);
        let refused = ask();
        let told = refused.retry_after.duration().unwrap();
        assert!(!refused.allowed && told <= Duration::from_millis(50), "{told:?}");
        let mut answers = vec![refused];
        wait_until(PATIENCE, || {
            answers.push(ask());
            answers.last().unwrap().allowed
        })
        .unwrap();
        for answer in answers {
            assert_eq!(answer.allowed, answer.at >= refused.at.after(told), "{answer:?}");
        }
    }
}

#[test]
fn a_forgotten_script_is_told_again() {
    let server = redis().unwrap();
    let (store, limit) = (start(&server.url()), daily("p", 3));
    runtime().block_on(async {
        for remaining in [2, 1, 0] {
            server.ask("SCRIPT FLUSH");
            assert_eq!(take(&store, &limit, "ann").await.unwrap().remaining, remaining);
        }
        assert!(!passes(&store, &limit, "ann").await);
    });
    assert_eq!(store.epoch(), 0);
}

#[test]
fn a_server_that_is_killed_is_missed_at_once_and_found_within_a_second() {
    let mut server = redis().unwrap();
    let (store, limit) = (start(&server.url()), daily("p", 3));
    let runtime = runtime();
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    server.kill();
    let cause = runtime.block_on(complaint(&store, &limit, "ann"));
    assert!(cause.contains("connection"), "{cause}");
    wait_until(PATIENCE, || {
        store.health().condition() == tollgate_store::Condition::Down("connection refused".into())
    })
    .unwrap();
    assert_eq!(runtime.block_on(complaint(&store, &limit, "ann")), "connection refused");
    server.restart().unwrap();
    let watch = Stopwatch::start();
    wait_until(PATIENCE, || store.health().is_up()).unwrap();
    assert!(watch.elapsed() < SECOND, "{:?}", watch.elapsed());
    // It has forgotten everything, and that is known.
    assert_eq!(runtime.block_on(take(&store, &limit, "ann")).unwrap().remaining, 2);
    assert_eq!(store.epoch(), 1);
}

#[test]
fn a_store_starts_without_its_server() {
    let mut server = redis().unwrap();
    server.kill();
    let (store, limit) = (start(&server.url()), daily("p", 3));
    let watch = Stopwatch::start();
    assert_eq!(runtime().block_on(complaint(&store, &limit, "ann")), "connection refused");
    assert_eq!(wait_for_trouble(&store), "connection refused");
    assert!(watch.elapsed() < node::UNHURRIED);
    server.restart().unwrap();
    assert!(time_until_answered(&store, &limit) < SECOND);
    assert!(store.health().is_up());
    assert_eq!(store.epoch(), 0);
}

// part of: B8
#[test]
fn a_frozen_server_costs_a_few_time_outs_and_then_nothing() {
    let timeout = Duration::from_millis(200);
    let server = redis().unwrap();
    let (store, limit) = (start_hurried(&server.url(), timeout), daily("p", 100));
    let runtime = runtime();
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    server.freeze();
    let watch = Stopwatch::start();
    let mut late = 0;
    while store.health().is_up() {
        let cause = runtime.block_on(complaint(&store, &limit, "ann"));
        assert_eq!(cause, "timed out after 200 ms");
        late += 1;
    }
    assert!(late <= 3, "{late}");
    assert!(watch.elapsed() < timeout * 3 + SECOND, "{:?}", watch.elapsed());
    let watch = Stopwatch::start();
    for _ in 0..100 {
        runtime.block_on(complaint(&store, &limit, "ann"));
    }
    assert!(watch.elapsed() < timeout, "{:?}", watch.elapsed());
    server.thaw();
    assert!(time_until_answered(&store, &limit) < SECOND);
    // It was away, not gone.
    assert_eq!(store.epoch(), 0);
}

#[test]
fn many_callers_of_a_frozen_server_wait_no_longer_than_one() {
    let timeout = Duration::from_millis(300);
    let server = redis().unwrap();
    let (store, limit) = (start_hurried(&server.url(), timeout), daily("p", 100));
    runtime().block_on(async {
        assert!(passes(&store, &limit, "ann").await);
        server.freeze();
        let watch = Stopwatch::start();
        let callers = (0..1_000).map(|_| {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(async move { take(&store, &limit, "ann").await.is_err() })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert!(caller.await.unwrap());
        }
        assert!(watch.elapsed() < timeout + SECOND, "{:?}", watch.elapsed());
        server.thaw();
    });
}

/// A store behind a link, with a link that works.
fn behind_a_link(server: &Redis) -> (FaultyLink, Arc<RedisStore>) {
    let link = FaultyLink::to(server.addr()).unwrap();
    let store = start_hurried(&server.url_through(link.addr()), Duration::from_millis(200));
    (link, store)
}

#[test]
fn a_connection_that_went_silent_is_given_up_though_others_work() {
    let server = redis().unwrap();
    let limit = daily("p", 1_000_000);
    let (link, store) = behind_a_link(&server);
    let runtime = runtime();
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    link.set(Fault::BlackHole);
    runtime.block_on(complaint(&store, &limit, "ann"));
    // A connection that lost something stays silent for good; what is opened from now on works.
    link.set(Fault::None);
    for _ in 0..5 {
        // Answers to others keep the breaker closed.
        let others = || time_until_answered(&store, &limit);
        thread::scope(|scope| scope.spawn(others).join().unwrap());
        assert!(runtime.block_on(passes(&store, &limit, "ann")));
    }
}

#[test]
fn a_bad_link_is_noticed_and_a_mended_one_within_a_second() {
    let server = redis().unwrap();
    let limit = daily("p", 100_000);
    let faults = [
        Fault::BlackHole,
        Fault::Stall,
        Fault::Reset,
        Fault::Refuse,
        Fault::Throttle { bytes_per_second: 1 },
        Fault::Garble,
        Fault::CutAfter(3),
    ];
    for fault in faults {
        let (link, store) = behind_a_link(&server);
        let runtime = runtime();
        assert!(runtime.block_on(passes(&store, &limit, "ann")));
        link.set(fault);
        let watch = Stopwatch::start();
        wait_until(PATIENCE, || {
            let asked = Stopwatch::start();
            let _ = runtime.block_on(take(&store, &limit, "ann"));
            assert!(asked.elapsed() < SECOND, "{fault:?}: {:?}", asked.elapsed());
            !store.health().is_up()
        })
        .unwrap();
        assert!(watch.elapsed() < 3 * SECOND, "{fault:?}: {:?}", watch.elapsed());
        link.set(Fault::None);
        let back = time_until_answered(&store, &limit);
        assert!(back < SECOND, "{fault:?}: {back:?}");
    }
}

#[test]
fn one_lost_connection_is_no_alarm() {
    let server = redis().unwrap();
    let limit = daily("p", 100_000);
    let (link, store) = behind_a_link(&server);
    let runtime = runtime();
    runtime.block_on(store.ready());
    let watch = store.health().watch();
    for _ in 0..5 {
        assert!(runtime.block_on(passes(&store, &limit, "ann")));
        link.reset_once();
        // Whatever was under way then may be lost; what comes after it is not.
        let _ = runtime.block_on(take(&store, &limit, "ann"));
    }
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    assert!(!watch.has_changed().unwrap());
}

#[test]
fn a_place_is_given_back_without_a_runtime() {
    let server = redis().unwrap();
    let store = start(&server.url());
    let limit = NamedLimit::new("p", 0, Limit::concurrency(1, Duration::from_secs(3_600)).unwrap());
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let runtime = runtime();
    let held = |lease| {
        let take = Take { lease, ..Take::now(&charges) };
        runtime.block_on(store.take(take)).unwrap().allowed
    };
    assert!(held(1) && !held(2));
    let mut release = store.release(&charges, 1);
    // Polled once, as whoever drops something does, and forgotten.
    let _ = Pin::new(&mut release).poll(&mut Context::from_waker(Waker::noop()));
    drop(release);
    wait_until(PATIENCE, || held(3)).unwrap();
}

#[test]
fn a_place_is_given_back_by_a_task_that_ends_with_its_runtime() {
    struct Held(Arc<RedisStore>, NamedLimit);
    impl Drop for Held {
        fn drop(&mut self) {
            let charges = [Charge { limit: &self.1, key: b"ann", cost: 1 }];
            let mut release = self.0.release(&charges, 1);
            let _ = Pin::new(&mut release).poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    let server = redis().unwrap();
    let store = start(&server.url());
    let limit = NamedLimit::new("p", 0, Limit::concurrency(1, Duration::from_secs(3_600)).unwrap());
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let first = runtime();
    let take = |lease| Take { lease, ..Take::now(&charges) };
    assert!(first.block_on(store.take(take(1))).unwrap().allowed);
    let held = Held(store.clone(), limit.clone());
    first.spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    first.block_on(tokio::task::yield_now());
    drop(first);
    let second = runtime();
    wait_until(PATIENCE, || second.block_on(store.take(take(2))).unwrap().allowed).unwrap();
}

#[test]
fn a_store_serves_one_runtime_after_another_and_several_at_once() {
    let server = redis().unwrap();
    let (store, limit) = (start(&server.url()), daily("p", 100));
    for _ in 0..3 {
        assert!(runtime().block_on(passes(&store, &limit, "ann")));
    }
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    many.unwrap().block_on(async {
        let callers = (0..90).map(|_| {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(async move { passes(&store, &limit, "ann").await })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert!(caller.await.unwrap());
        }
    });
    assert_eq!(runtime().block_on(take(&store, &limit, "ann")).unwrap().remaining, 6);
}

#[test]
fn connections_end_with_the_store() {
    let server = redis().unwrap();
    let (store, limit) = (start(&server.url()), daily("p", 100));
    let runtime = runtime();
    assert!(runtime.block_on(passes(&store, &limit, "ann")));
    runtime.block_on(store.ready());
    let connected = || server.info("connected_clients").unwrap();
    assert_eq!(connected(), "3");
    drop(store);
    // The one who asks stays.
    wait_until(PATIENCE, || {
        runtime.block_on(tokio::task::yield_now());
        connected() == "1"
    })
    .unwrap();
}

// part of: B1
#[test]
fn users_and_passwords_are_told_and_wrong_ones_are_named() {
    let options = RedisOptions::new().password("s3cret");
    let server =
        options.user("limiter", "w@rd", "~ratelimit:* +@all -info -config").start().unwrap();
    let limit = daily("p", 100);
    let host = server.addr();
    for url in [server.url(), format!("redis://limiter:w%40rd@{host}/0")] {
        let store = start(&url);
        assert!(runtime().block_on(passes(&store, &limit, "ann")));
        runtime().block_on(store.ready());
        assert!(store.health().is_up());
    }
    let wrong = start(&format!("redis://:guess@{host}"));
    assert_eq!(runtime().block_on(complaint(&wrong, &limit, "ann")), "wrong user name or password");
    assert_eq!(wait_for_trouble(&wrong), "wrong user name or password");
    let none = start(&format!("redis://{host}"));
    assert_eq!(runtime().block_on(complaint(&none, &limit, "ann")), "a password is needed");
}

#[test]
fn another_database_is_another_store() {
    let server = redis().unwrap();
    let limit = daily("p", 1);
    let (zero, one) = (start(&server.url()), start(&format!("{}/1", server.url())));
    let runtime = runtime();
    assert!(runtime.block_on(passes(&zero, &limit, "ann")));
    assert!(runtime.block_on(passes(&one, &limit, "ann")));
    assert!(!runtime.block_on(passes(&one, &limit, "ann")));
}

// part of: B7
#[test]
fn nodes_count_each_other() {
    let server = redis().unwrap();
    let one = start(&server.url());
    let another = start(&server.url());
    wait_until(PATIENCE, || one.fleet_size() == 2 && another.fleet_size() == 2).unwrap();
    assert_ne!(one.node(), another.node());
    // Who leaves says so.
    drop(another);
    wait_until(PATIENCE, || one.fleet_size() == 1).unwrap();
    assert_eq!(server.ask("ZRANGE ratelimit:nodes 0 -1"), one.node());
}

// part of: B7
#[test]
fn a_node_that_dies_without_a_word_is_missed() {
    let server = redis().unwrap();
    let store = start(&server.url());
    let now = SystemClock::start().now().as_micros();
    server.ask(&format!("ZADD ratelimit:nodes {now} ghost"));
    wait_until(PATIENCE, || store.fleet_size() == 2).unwrap();
    wait_until(PATIENCE, || store.fleet_size() == 1).unwrap();
    // As last seen, when nobody can be asked any more.
    server.freeze();
    wait_for_trouble(&store);
    assert_eq!(store.fleet_size(), 1);
    server.thaw();
}

#[test]
fn a_server_that_answers_but_cannot_decide_is_not_healthy() {
    let master = redis().unwrap();
    let replica = RedisOptions::new().replica_of(master.addr()).start().unwrap();
    replica.wait_until_in_sync();
    let limit = daily("p", 100);
    let store = start(&replica.url());
    let cause = wait_for_trouble(&store);
    assert!(cause.starts_with("READONLY"), "{cause}");
    assert!(runtime().block_on(complaint(&store, &limit, "ann")).starts_with("READONLY"));
    replica.ask("REPLICAOF NO ONE");
    assert!(time_until_answered(&store, &limit) < SECOND);

    let full = RedisOptions::new().memory_max(1).start().unwrap();
    let counts = Arc::new(Counts::default());
    let store = RedisStore::start(config(&full.url()), counts.clone()).unwrap();
    let cause = wait_for_trouble(&store);
    assert!(cause.starts_with("OOM"), "{cause}");
    assert!(counts.failures.lock().unwrap().iter().all(|kind| *kind == ErrorKind::OutOfMemory));
    full.ask("CONFIG SET maxmemory 0");
    assert!(time_until_answered(&store, &limit) < SECOND);
}
