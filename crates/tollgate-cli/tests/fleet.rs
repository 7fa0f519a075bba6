//! Nodes that share one Redis: never one too many, and what holds without it.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

#[path = "support/fleet.rs"]
mod fleet;
mod support;

use fleet::{Fleet, RETURN, is_allowed};
use tollgate_testkit::{
    http_client::get,
    servers::{RedisOptions, redis},
    wait::{PATIENCE, wait_until},
};

#[test]
fn nodes_start_without_redis_and_pick_it_up_later() {
    let mut server = redis().unwrap();
    server.kill();
    let fleet = Fleet::start_alone(2, &format!("url: \"{}\"", server.url()));
    fleet.wait_until_disabled(1);
    // Each on its own, at half of 120.
    let given =
        |node: &fleet::Node| (0..70).filter(|_| is_allowed(&node.check("purse", "ann", 1))).count();
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

#[test]
fn without_redis_everything_passes_if_that_was_asked_for() {
    let mut server = redis().unwrap();
    let settings = format!("url: \"{}\", on_failure: {{mode: allow}}", server.url());
    let fleet = Fleet::start_alone(2, &settings);
    wait_until(PATIENCE, || fleet.is_shared()).unwrap();
    server.kill();
    fleet.wait_until_said("letting everything pass", 1);
    assert_eq!(fleet.take_all("purse", "ann", 150), 150);
}

#[test]
fn without_redis_everything_is_refused_if_that_was_asked_for() {
    let mut server = redis().unwrap();
    let settings = format!("url: \"{}\", on_failure: {{mode: deny}}", server.url());
    let fleet = Fleet::start_alone(2, &settings);
    wait_until(PATIENCE, || fleet.is_shared()).unwrap();
    server.kill();
    fleet.wait_until_said("refusing everything", 1);
    assert_eq!(fleet.take_all("purse", "ann", 10), 0);
    server.restart().unwrap();
    fleet.wait_until_restored(1);
    assert_eq!(fleet.take_all("purse", "ann", 10), 10);
}

#[test]
fn a_redis_that_evicts_keys_is_warned_of() {
    let server = RedisOptions::new().line("maxmemory-policy allkeys-lru").start().unwrap();
    let fleet = Fleet::start(1, &server.url());
    fleet.wait_until_said("allkeys-lru", 1);
    fleet.assert_never_disabled();
}

#[test]
fn tls_users_and_passwords_are_taken_from_the_configuration() {
    let options = RedisOptions::new().tls_with_client_certificates().user(
        "limiter",
        "word",
        "~shop:* +@all -@dangerous",
    );
    let server = options.start().unwrap();
    let files = server.tls_files();
    let settings = format!(
        "url: \"rediss://limiter:word@{}\", prefix: shop, tls: {{ca: {}, cert: {}, key: {}}}",
        server.addrs[1],
        files.ca.display(),
        files.client_cert.display(),
        files.client_key.display()
    );
    let fleet = Fleet::start_alone(2, &settings);
    wait_until(PATIENCE, || fleet.is_shared()).unwrap();
    fleet.assert_never_disabled();
    assert_eq!(fleet.take_all("purse", "ann", 130), 120);
    assert!(server.ask("TTL shop:purse:ann").parse::<i64>().unwrap() > 0);
    assert!(!fleet.output().contains("word"), "no password in the log");
}
