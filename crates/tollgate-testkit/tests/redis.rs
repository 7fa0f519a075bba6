//! The Redis servers that tests stand on do what they were told to.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::{io, process::Command};

use tollgate_testkit::{
    resp_client::{Reply, RespClient},
    servers::{Redis, RedisCluster, RedisOptions, RedisSentinel, redis, slot_of},
    wait::{PATIENCE, wait_until},
};

/// What the server says to a command on a fresh connection without a password.
fn said_by(server: &Redis, command: &str) -> String {
    RespClient::open(server.addr()).unwrap().ask(command).unwrap().text()
}

#[test]
fn a_server_is_killed_and_comes_back_empty_on_its_port() {
    let mut server = redis().unwrap();
    let addr = server.addr();
    assert_eq!(server.ask("SET a 1"), "OK");
    server.kill();
    let refused = RespClient::open(addr).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    server.restart().unwrap();
    assert_eq!((server.addr(), server.ask("DBSIZE")), (addr, "0".into()));
}

#[test]
fn a_frozen_server_answers_once_it_is_thawed() {
    let server = redis().unwrap();
    let mut client = server.client().unwrap();
    assert_eq!(client.ask("PING").unwrap().text(), "PONG");
    server.freeze();
    let stopped = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id()));
        status.unwrap().contains("T (stopped)")
    };
    wait_until(PATIENCE, stopped).unwrap();
    client.send(&["PING"]).unwrap();
    server.thaw();
    assert_eq!(client.receive().unwrap(), Reply::Simple("PONG".into()));
}

#[test]
fn a_password_and_users_are_asked_for() {
    let options = RedisOptions::new().password("secret").user("limiter", "word", "~rl:* +@all");
    let server = options.start().unwrap();
    assert!(said_by(&server, "PING").starts_with("NOAUTH"));
    assert_eq!(server.ask("PING"), "PONG");
    assert_eq!(server.url(), format!("redis://:secret@{}", server.addr()));
    let mut limited = RespClient::open(server.addr()).unwrap();
    assert_eq!(limited.ask("AUTH limiter word").unwrap().text(), "OK");
    assert_eq!(limited.ask("SET rl:a 1").unwrap().text(), "OK");
    assert!(limited.ask("SET other 1").unwrap().text().starts_with("NOPERM"));
}

#[test]
fn tls_is_spoken_on_the_second_address() {
    let server = RedisOptions::new().tls_with_client_certificates().start().unwrap();
    assert_eq!(server.ask("PING"), "PONG");
    let files = server.tls_files();
    let port = server.addrs[1].port().to_string();
    let mut with_certificate = Command::new("redis-cli");
    with_certificate.args(["-p", &port, "--tls", "--cacert"]).arg(&files.ca);
    with_certificate.arg("--cert").arg(&files.client_cert).arg("--key").arg(&files.client_key);
    let output = with_certificate.arg("PING").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "PONG\n", "{output:?}");
    let mut without = Command::new("redis-cli");
    without.args(["-p", &port, "--tls", "--cacert"]).arg(&files.ca).arg("PING");
    assert!(!String::from_utf8_lossy(&without.output().unwrap().stdout).contains("PONG"));
}

#[test]
fn a_full_server_refuses_to_write() {
    let server = RedisOptions::new().memory_max(1).start().unwrap();
    assert!(said_by(&server, "SET a 1").starts_with("OOM"));
}

#[test]
fn a_replica_follows_and_refuses_to_be_written() {
    let master = redis().unwrap();
    let replica = RedisOptions::new().replica_of(master.addr()).start().unwrap();
    replica.wait_until_in_sync();
    master.ask("SET a 1");
    wait_until(PATIENCE, || replica.ask("GET a") == "1").unwrap();
    assert!(said_by(&replica, "SET a 2").starts_with("READONLY"));
}

#[test]
fn an_old_redis_and_valkey_can_be_had() {
    let old = RedisOptions::oldest().start().unwrap();
    assert_eq!(old.info("redis_version").unwrap(), "6.2.14");
    let valkey = RedisOptions::valkey().start().unwrap();
    assert!(valkey.info("valkey_version").unwrap().starts_with("9."));
}

#[test]
fn the_debug_command_can_be_had() {
    let server = RedisOptions::new().debug_commands().start().unwrap();
    assert_eq!(server.ask("DEBUG SLEEP 0"), "OK");
}

#[test]
fn sentinels_replace_a_master_on_command_and_by_themselves() {
    let mut set = RedisSentinel::start().unwrap();
    assert_eq!(set.master(), 0);
    let second = set.failover();
    assert_ne!(second, 0);
    set.servers[second].ask("SET a 1");
    set.servers[second].kill();
    let third = set.wait_for_other_master(second);
    assert_eq!(set.servers[third].ask("SET a 2"), "OK");
}

#[test]
fn a_cluster_moves_slots_and_replaces_masters() {
    let mut cluster = RedisCluster::start().unwrap();
    for key in ["a", "ratelimit:p:{ann}", "{}x", "}a{b", ""] {
        let words = ["CLUSTER", "KEYSLOT", key];
        let slot = cluster.nodes[0].client().unwrap().command(&words).unwrap();
        assert_eq!(slot.integer(), i64::from(slot_of(key.as_bytes())), "{key}");
    }
    let slot = slot_of(b"a");
    let owner = cluster.owner_of(slot);
    let other = (owner + 1) % 3;
    cluster.nodes[owner].ask("SET a 1");
    assert!(said_by(&cluster.nodes[other], "GET a").starts_with("MOVED"));

    let moving = cluster.begin_move(slot, other);
    assert_eq!(said_by(&cluster.nodes[owner], "GET a"), "1");
    moving.take_key(b"a");
    assert!(said_by(&cluster.nodes[owner], "GET a").starts_with("ASK"));
    assert_eq!(moving.take_all_keys(), 0);
    moving.finish();
    assert_eq!(cluster.owner_of(slot), other);
    assert!(said_by(&cluster.nodes[owner], "GET a").starts_with("MOVED"));
    assert_eq!(said_by(&cluster.nodes[other], "GET a"), "1");

    let promoted = cluster.failover(slot);
    assert_eq!(cluster.nodes[promoted].ask("GET a"), "1");
    cluster.wait_until_whole();
    cluster.nodes[promoted].kill();
    assert_eq!(cluster.wait_for_other_owner(slot, promoted), other);
}

#[test]
fn client_pause_holds_writes_back() {
    let server = redis().unwrap();
    let mut client = server.client().unwrap();
    server.ask("CLIENT PAUSE 100000 WRITE");
    client.send(&["SET", "a", "1"]).unwrap();
    // Nothing comes while it is paused; reading does not wait.
    assert_eq!(server.ask("GET a"), "");
    server.ask("CLIENT UNPAUSE");
    assert_eq!(client.receive().unwrap().text(), "OK");
}
