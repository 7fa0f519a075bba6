//! Nodes that share one Redis: never one too many, and what holds without it.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

#[path = "support/fleet.rs"]
mod fleet;
mod support;

use std::{thread, time::Duration};

use fleet::{Fleet, Node, RETURN, is_allowed};
use tollgate_core::Time;
use tollgate_testkit::{
    history::{Admission, check_window},
    http_client::{Connection, get, json_request},
    servers::redis,
    stopwatch::Stopwatch,
    wait::wait_until,
};

#[test]
fn nodes_start_without_redis_and_pick_it_up_later() {
    let mut server = redis().unwrap();
    server.kill();
    let fleet = Fleet::start_alone(2, &format!("url: \"{}\"", server.url()));
    fleet.wait_until_disabled(1);
    // Each on its own, at half of 120.
    let given =
        |node: &Node| (0..70).filter(|_| is_allowed(&node.check("purse", "ann", 1))).count();
    assert_eq!(fleet.nodes.iter().map(given).collect::<Vec<_>>(), [60, 60]);
    assert_eq!(get(fleet.nodes[0].http(), "/readyz").unwrap().status, 200);
    server.restart().unwrap();
    wait_until(RETURN, || fleet.is_shared()).unwrap();
    fleet.wait_until_restored(1);
    fleet.assert_told(1);
    assert_eq!(fleet.take_all("purse", "bob", 130), 120);
}

// covers: B7
#[test]
fn the_share_of_a_fleet_holds_the_policy_and_follows_who_lives() {
    let mut server = redis().unwrap();
    let settings = format!("url: \"{}\", on_failure: {{mode: local, share: fleet}}", server.url());
    let mut fleet = Fleet::start_alone(3, &settings);
    fleet.wait_until_nodes_seen(3);
    server.kill();
    fleet.wait_until_said("limiting locally at 1/3 of policy", 1);
    assert_eq!(fleet.take_all("purse", "ann", 400), 120);
    server.restart().unwrap();
    wait_until(RETURN, || fleet.is_shared()).unwrap();
    // Nobody says good-bye.
    drop(fleet.nodes.pop());
    fleet.wait_until_nodes_seen(2);
    server.kill();
    fleet.wait_until_said("limiting locally at 1/2 of policy", 1);
    assert_eq!(fleet.take_all("purse", "bob", 400), 120);
}

/// What clients saw pass, and how many were refused.
#[derive(Default)]
struct Offered {
    passed: Vec<Admission>,
    refused: usize,
}

/// Offers a leased limit so many at once, again and again, for some windows.
fn offer(node: &Node, at_once: usize, watch: Stopwatch) -> Offered {
    let check = r#"{"policy":"ahead","key":"all"}"#;
    let body = format!(r#"{{"checks":[{}]}}"#, vec![check; at_once].join(","));
    let request = json_request(node.http(), "/v1/check/batch", &body);
    let mut connection = Connection::open(node.http()).unwrap();
    let mut offered = Offered::default();
    while watch.elapsed() < WINDOWS {
        let sent = now(watch);
        let answer = connection.exchange(&request).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let passed = answer.text().matches(r#""allowed":true"#).count();
        let admission = Admission { sent, answered: now(watch), cost: passed as u64 };
        offered.passed.push(admission);
        offered.refused += at_once - passed;
        thread::park_timeout(Duration::from_millis(5));
    }
    offered
}

const WINDOWS: Duration = Duration::from_secs(5);

fn now(watch: Stopwatch) -> Time {
    Time::from_micros(u64::try_from(watch.elapsed().as_micros()).unwrap())
}

// covers: B10
// Beside exact.rs, and tests/leases of tollgate-store.
#[test]
fn nodes_that_spend_ahead_stay_within_the_limit_and_use_it() {
    let server = redis().unwrap();
    let fleet = Fleet::start(4, &server.url());
    let watch = Stopwatch::start();
    // Nine tenths go to the first.
    let all: Vec<Offered> = thread::scope(|scope| {
        let offers = fleet.nodes.iter().zip([54, 2, 2, 2]);
        let offers: Vec<_> = offers
            .map(|(node, at_once)| scope.spawn(move || offer(node, at_once, watch)))
            .collect();
        offers.into_iter().map(|offer| offer.join().unwrap()).collect()
    });
    let refused: usize = all.iter().map(|one| one.refused).sum();
    let passed: Vec<_> = all.into_iter().flat_map(|one| one.passed).collect();
    let total: u64 = passed.iter().map(|one| one.cost).sum();
    assert!(refused as u64 > 3 * total, "{total} passed and only {refused} were refused");
    // 500 a second, and two in a hundred more at most.
    check_window(&passed, Duration::from_secs(1), 510).unwrap();
    // Little is lost to slices; what a busy machine did not ask for in time is lost as well.
    assert!((2_000..=3_060).contains(&total), "{total} passed in five windows");
    // Few: near the limit slices shrink to nothing.
    let by_slice = r#"tollgate_store_decisions_total{by="slice"}"#;
    let spent: f64 = fleet.nodes.iter().map(|node| node.metric(by_slice)).sum();
    assert!(spent > 0.0, "nothing was spent ahead");
}
