//! The whole program on a real Redis: what nodes share, what an operator sees, what survives.
//!
//! What happens when Redis fails, beyond a start without it, is in `faults.rs`; whether a fleet
//! under load keeps its limits, in `fleet.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{Tollgate, config_with, finish, write};
use tollgate_testkit::{
    http_client::{exchange, get, post_json},
    servers::{Redis, RedisOptions, redis},
    wait::{PATIENCE, wait_until},
};

/// Slow enough that nothing flows in while a test runs.
const HOURLY: &str = "{algorithm: token_bucket, rate: 4/h, burst: 4}";

fn on(redis: &Redis, limits: &str, policy: &str) -> String {
    config_with(limits, policy, &store(&redis.url()))
}

/// With more patience than the usual 50 ms: a busy machine is not a Redis that is away.
fn store(url: &str) -> String {
    format!("store: {{kind: redis, url: \"{url}\", timeout: 5s}}\n")
}

fn post(node: &Tollgate, path: &str, body: &str) -> Value {
    let answer = post_json(node.http, path, body).unwrap();
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()))
}

/// The fields of a hash, by name.
fn hash(redis: &Redis, key: &str) -> Vec<(String, String)> {
    let reply = redis.client().unwrap().command(&["HGETALL", key]).unwrap().fine();
    let words: Vec<_> =
        reply.parts().iter().map(tollgate_testkit::resp_client::Reply::text).collect();
    let mut fields: Vec<_> =
        words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    fields.sort();
    fields
}

/// The value of a series on the metrics page.
fn metric(node: &Tollgate, series: &str) -> f64 {
    let page = node.metrics();
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not on the page:\n{page}")).parse().unwrap()
}

// part of: B1, B9
#[test]
fn two_nodes_share_one_limit_through_gateway_and_api() {
    let redis = redis().unwrap();
    let (a, b) =
        (Tollgate::start(&on(&redis, HOURLY, "")), Tollgate::start(&on(&redis, HOURLY, "")));
    assert_eq!(a.get("/").header("x-ratelimit-remaining"), Some("3"));
    assert_eq!(b.get("/").header("x-ratelimit-remaining"), Some("2"));
    assert_eq!(b.check("127.0.0.1", 1)["remaining"], 1);
    assert_eq!(a.check("127.0.0.1", 1)["remaining"], 0);
    for node in [&a, &b] {
        let refused = node.get("/");
        assert_eq!(refused.status, 429, "{}", refused.text());
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() > 800);
        assert_eq!(node.check("127.0.0.1", 1)["allowed"], false);
    }
    assert_eq!(a.check("somebody else", 1)["remaining"], 3);
}

// covers: B3; part of: B4
#[test]
fn an_operator_reads_a_bucket_and_resets_it() {
    let redis = redis().unwrap();
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let text = on(&redis, HOURLY, "").replace("id: p\n", &format!("id: {id}\n"));
    let node = Tollgate::start(&text.replace("policies: [p]", &format!("policies: [{id}]")));
    let body = format!(r#"{{"policy":"{id}","key":"192.168.1.100","cost":3}}"#);
    assert_eq!(post(&node, "/v1/check", &body)["remaining"], 1);

    let key = format!("ratelimit:{id}:192.168.1.100");
    let fields = hash(&redis, &key);
    let [(last_refill, at), (limit, numbers), (tokens, left)] = &fields[..] else {
        panic!("{fields:?}")
    };
    assert_eq!([last_refill, limit, tokens], ["lastRefill", "limit", "tokens"]);
    assert_eq!(numbers, "4/h");
    let left: f64 = left.parse().unwrap();
    assert!((0.99..1.01).contains(&left), "{left}");
    let now_ms: f64 = redis.ask("TIME").split(' ').next().unwrap().parse::<f64>().unwrap() * 1e3;
    assert!((now_ms - at.parse::<f64>().unwrap()).abs() < 60e3, "{at}");
    // Three tokens at four an hour, and a second or two.
    let ttl = redis.client().unwrap().command(&["TTL", &key]).unwrap().integer();
    assert!((2_690..=2_702).contains(&ttl), "{ttl}");

    assert_eq!(redis.client().unwrap().command(&["DEL", &key]).unwrap().integer(), 1);
    assert_eq!(post(&node, "/v1/check", &body)["remaining"], 1, "the bucket was full again");
}

// part of: B4
#[test]
fn an_idle_key_is_kept_as_long_as_the_policy_says_and_no_shorter_than_a_second() {
    let redis = redis().unwrap();
    let fast = "{algorithm: token_bucket, rate: 1000/s, burst: 10}";
    let ttl = |policy: &str| {
        let node = Tollgate::start(&on(&redis, fast, policy));
        node.check("ann", 1);
        let ttl = redis.ask("PTTL ratelimit:p:ann").parse::<u64>();
        redis.ask("FLUSHALL");
        ttl.unwrap()
    };
    assert!((900..=2_000).contains(&ttl("")));
    assert!((119_000..=120_000).contains(&ttl("    ttl: 120s\n")));
}

// part of: B12
#[test]
fn levels_survive_a_restart_and_changed_numbers() {
    let redis = redis().unwrap();
    let text = |rate: u64| on(&redis, &format!("{{algorithm: token_bucket, rate: {rate}/h}}"), "");
    let node = Tollgate::start(&text(4));
    assert_eq!(node.check("ann", 3)["remaining"], 1);
    // While it runs: three of four used are six of eight.
    node.rewrite(&text(8));
    wait_until(PATIENCE, || node.check("new", 0)["limit"] == 8).unwrap();
    assert_eq!(node.check("ann", 0)["remaining"], 2);
    let (code, output, _) = node.stop();
    assert_eq!(code, Some(0), "{output}");
    // And over a restart: twelve of sixteen.
    let node = Tollgate::start(&text(16));
    assert_eq!(node.check("ann", 0)["remaining"], 4);
    assert_eq!(node.check("ann", 1)["remaining"], 3);
}

// part of: A7, A9, B2
#[test]
fn the_decision_api_does_on_redis_what_it_does_in_memory() {
    let redis = redis().unwrap();
    let limits = format!("{HOURLY}, {{algorithm: sliding_window, rate: 3/day}}");
    let node = Tollgate::start(&on(&redis, &limits, ""));
    let cost = |cost: u64| format!(r#"{{"policy":"p","key":"ann","cost":{cost}}}"#);

    assert_eq!(node.check("ann", 2)["remaining"], 1);
    let refused = node.check("ann", 2);
    assert_eq!((&refused["allowed"], &refused["limit_index"]), (&false.into(), &1.into()));
    assert_eq!(node.check("ann", 5)["never"], true);
    // All or nothing: the refusals took nothing from the bucket either.
    let state = |node: &Tollgate| -> Vec<Value> {
        let answer = get(node.http, "/v1/keys/p/ann").unwrap();
        let state: Value = serde_json::from_slice(&answer.body).unwrap();
        state["limits"].as_array().unwrap().iter().map(|limit| limit["remaining"].clone()).collect()
    };
    assert_eq!(state(&node), [2, 1]);
    assert_eq!(post(&node, "/v1/refund", &cost(1))["remaining"], 2);
    assert_eq!(state(&node), [3, 2]);
    let batch = format!(r#"{{"checks":[{},{},{}]}}"#, cost(1), cost(5), cost(1));
    let results = post(&node, "/v1/check/batch", &batch);
    let allowed: Vec<_> = (0..3).map(|at| results["results"][at]["allowed"].clone()).collect();
    assert_eq!(allowed, [true, false, true]);

    let delete = format!("DELETE /v1/keys/p/ann HTTP/1.1\r\nHost: {}\r\n\r\n", node.http);
    assert_eq!(exchange(node.http, delete).unwrap().status, 204);
    assert_eq!(redis.ask("KEYS ratelimit:p*"), "");
    assert_eq!(state(&node), [4, 3]);
}

// part of: A9, B5
#[test]
fn a_turn_can_be_waited_for_on_redis() {
    let redis = redis().unwrap();
    let node = Tollgate::start(&on(&redis, "{algorithm: token_bucket, rate: 10/s, burst: 1}", ""));
    let body = |wait: u64| format!(r#"{{"policy":"p","key":"ann","max_wait_ms":{wait}}}"#);
    assert_eq!(post(&node, "/v1/acquire", &body(0))["allowed"], true);
    let waited = post(&node, "/v1/acquire", &body(5_000));
    assert_eq!(waited["allowed"], true, "{waited}");
    assert!(waited["waited_ms"].as_u64().unwrap() > 0, "{waited}");
    let slow = Tollgate::start(
        &on(&redis, HOURLY, "").replace("id: p\n", "id: q\n").replace("[p]", "[q]"),
    );
    let body = r#"{"policy":"q","key":"ann","cost":4,"max_wait_ms":500}"#;
    assert_eq!(post(&slow, "/v1/acquire", body)["allowed"], true);
    assert_eq!(post(&slow, "/v1/acquire", body)["allowed"], false);
}

// part of: A6
#[test]
fn a_place_in_flight_is_given_back_at_another_node() {
    let redis = redis().unwrap();
    let limit = "{algorithm: concurrency, limit: 1, lease: 60s}";
    let (a, b) = (Tollgate::start(&on(&redis, limit, "")), Tollgate::start(&on(&redis, limit, "")));
    let lease = a.check("ann", 1)["lease"].clone();
    assert_eq!(b.check("ann", 1)["allowed"], false);
    // Callers stand behind a load balancer: they do not know which node they asked.
    let body = format!(r#"{{"policy":"p","key":"ann","lease":{lease}}}"#);
    assert_eq!(post(&b, "/v1/refund", &body)["remaining"], 1);
    assert_eq!(a.check("ann", 1)["allowed"], true);
}

// part of: C14
#[test]
fn a_dry_run_on_redis_refuses_nothing_and_counts() {
    let redis = redis().unwrap();
    let node = Tollgate::start(&on(&redis, HOURLY, "    enforce: false\n"));
    assert_eq!(node.statuses(6), [200; 6]);
    let counted = r#"ratelimit_requests_dry_run_limited_total{tier="p",endpoint="/"}"#;
    assert_eq!(metric(&node, counted), 2.0);
}

// part of: B5, B11, G1
#[test]
fn the_metrics_page_tells_what_a_decision_costs() {
    let redis = redis().unwrap();
    let node = Tollgate::start(&on(&redis, HOURLY, ""));
    assert_eq!(node.statuses(7), [200, 200, 200, 200, 429, 429, 429]);
    let by = |who: &str| metric(&node, &format!("tollgate_store_decisions_total{{by=\"{who}\"}}"));
    // The first refusal says how long it holds; the others cost no round trip.
    assert_eq!((by("store"), by("denial_cache")), (5.0, 2.0));
    assert_eq!((by("slice"), by("fallback")), (0.0, 0.0));
    assert!(metric(&node, "tollgate_store_round_trips_total") >= 5.0);
    assert!(metric(&node, "tollgate_store_batch_size_sum") >= 5.0);
    assert!(metric(&node, "tollgate_store_round_trip_duration_seconds_sum") > 0.0);
    assert_eq!(metric(&node, "tollgate_store_up"), 1.0);
    assert_eq!(metric(&node, "tollgate_store_fallback_active"), 0.0);
    assert_eq!(metric(&node, "tollgate_store_fallback_since_timestamp_seconds"), 0.0);
    assert_eq!(metric(&node, "tollgate_store_errors_total{kind=\"timeout\"}"), 0.0);
    // Redis reads the same clock as we do here.
    assert!(metric(&node, "tollgate_store_clock_offset_seconds").abs() < 1.0);
    let other = Tollgate::start(&on(&redis, HOURLY, ""));
    wait_until(PATIENCE, || metric(&node, "tollgate_store_fleet_nodes") == 2.0).unwrap();
    // Who stops says so, and is not waited for.
    assert_eq!(other.stop().0, Some(0));
    assert_eq!(redis.ask("ZCARD ratelimit:nodes"), "1");
}

// part of: B10
#[test]
fn a_leased_policy_asks_rarely_and_gives_back_at_the_end() {
    let redis = redis().unwrap();
    let limit = "{algorithm: token_bucket, rate: 100000/h, burst: 100000}";
    let node = Tollgate::start(&on(&redis, limit, "    mode: leased\n"));
    let many = (0..40).map(|_| r#"{"policy":"p","key":"ann"}"#).collect::<Vec<_>>().join(",");
    let batch = format!(r#"{{"checks":[{many}]}}"#);
    for _ in 0..25 {
        let results = post(&node, "/v1/check/batch", &batch);
        let results = results["results"].as_array().unwrap();
        assert!(results.iter().all(|result| result["allowed"] == true));
    }
    let slices = metric(&node, "tollgate_store_decisions_total{by=\"slice\"}");
    assert!(slices > 0.0, "{}", node.metrics());
    let (code, output, _) = node.stop();
    assert_eq!(code, Some(0), "{output}");
    let tokens: f64 = redis.ask("HGET ratelimit:p:ann tokens").parse().unwrap();
    // A thousand were spent; what flowed in meanwhile is some 28 a second.
    assert!((99_000.0..99_900.0).contains(&tokens), "{tokens}");
}

// part of: B6
#[test]
fn the_program_starts_without_redis_and_says_once_when_it_goes_and_comes() {
    let mut redis = redis().unwrap();
    redis.kill();
    let mut node = Tollgate::start(&on(&redis, HOURLY, ""));
    node.wait_for(
        "Distributed rate limiting disabled: Redis unavailable (connection refused); \
         limiting locally at 50 % of policy",
    );
    assert_eq!(get(node.http, "/readyz").unwrap().status, 200);
    // Half of four.
    assert_eq!(node.statuses(4), [200, 200, 429, 429]);
    // A look shows this node's share; one node alone cannot reset a key for all.
    assert_eq!(node.check("ann", 0)["remaining"], 2);
    let delete = format!("DELETE /v1/keys/p/ann HTTP/1.1\r\nHost: {}\r\n\r\n", node.http);
    assert_eq!(exchange(node.http, delete).unwrap().status, 503);
    assert_eq!(metric(&node, "tollgate_store_up"), 0.0);
    assert_eq!(metric(&node, "tollgate_store_fallback_active"), 1.0);
    assert!(metric(&node, "tollgate_store_fallback_since_timestamp_seconds") > 1.7e9);
    assert!(metric(&node, "tollgate_store_decisions_total{by=\"fallback\"}") >= 4.0);

    redis.restart().unwrap();
    node.wait_for("Distributed rate limiting restored");
    assert_eq!(node.statuses(5), [200, 200, 200, 200, 429]);
    assert_eq!(metric(&node, "tollgate_store_fallback_active"), 0.0);
    let output = node.process.output();
    let count = |text: &str| output.matches(text).count();
    assert_eq!(count("Distributed rate limiting disabled: Redis unavailable"), 1, "{output}");
    assert_eq!(count("Distributed rate limiting restored"), 1, "{output}");
}

// part of: B6
#[test]
fn without_redis_everything_passes_or_nothing_if_so_configured() {
    let mut redis = redis().unwrap();
    redis.kill();
    let on_failure = |mode: &str| {
        let store = store(&redis.url()).replace('}', &format!(", on_failure: {{mode: {mode}}}}}"));
        Tollgate::start(&config_with(HOURLY, "", &store))
    };
    let mut open = on_failure("allow");
    assert_eq!(open.statuses(6), [200; 6]);
    open.wait_for("Redis unavailable (connection refused); letting everything pass");
    let mut closed = on_failure("deny");
    closed.wait_for("Redis unavailable (connection refused); refusing everything");
    let refused = closed.get("/");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
}

// part of: B7
#[test]
fn without_redis_a_fleet_divides_the_policy() {
    let mut redis = redis().unwrap();
    let store = store(&redis.url()).replace('}', ", on_failure: {share: fleet}}");
    let text = config_with("{algorithm: token_bucket, rate: 8/h, burst: 8}", "", &store);
    let mut nodes = [(); 4].map(|()| Tollgate::start(&text));
    for node in &nodes {
        wait_until(PATIENCE, || metric(node, "tollgate_store_fleet_nodes") == 4.0).unwrap();
    }
    redis.kill();
    for node in &mut nodes {
        node.wait_for("limiting locally at 1/4 of policy");
        assert_eq!(node.statuses(3), [200, 200, 429]);
    }
}

// part of: B1
#[test]
fn users_passwords_databases_and_tls_are_taken_from_the_configuration() {
    let redis = RedisOptions::new()
        .user("limits", "s%40cret", "~rl:* +@all")
        .password("other")
        .tls()
        .start()
        .unwrap();
    let url = redis.tls_url().replace(":other@", "limits:s%2540cret@") + "/3";
    let ca = &redis.tls_files().ca;
    let store = format!(
        "store: {{kind: redis, url: \"{url}\", prefix: rl, timeout: 5s, tls: {{ca: {}}}}}\n",
        ca.display()
    );
    let node = Tollgate::start(&config_with(HOURLY, "", &store));
    assert_eq!(node.check("ann", 1)["remaining"], 3);
    let mut client = redis.client().unwrap();
    client.ask("SELECT 3").unwrap().fine();
    assert_eq!(client.ask("EXISTS rl:p:ann").unwrap().integer(), 1);
    assert_eq!(metric(&node, "tollgate_store_decisions_total{by=\"store\"}"), 1.0);
    let (_, output, _) = node.stop();
    assert!(!output.contains("cret"), "the password is not logged: {output}");
}

// part of: G6
#[test]
fn what_works_but_hardly_as_meant_is_told() {
    let text = config_with(HOURLY, "    mode: leased\n", &store("redis://127.0.0.1:1"));
    let folder = tempfile::tempdir().unwrap();
    let (code, out, told) = finish(&["check", "-c", &write(folder.path(), &text)]);
    assert_eq!(code, Some(0));
    assert!(out.contains("fine (1 policies"), "{out}");
    assert!(told.contains("hint: ") && told.contains("epsilon times 4 is less than 1"), "{told}");
    let mut node = Tollgate::start_in(folder, &text);
    node.wait_for("epsilon times 4 is less than 1");
}

// part of: B1
#[test]
fn a_user_with_the_rights_that_the_page_names_can_do_all() {
    let page = include_str!("../../../docs/operations.md");
    let line = page.lines().find(|line| line.starts_with("user limits on ")).unwrap();
    let redis = RedisOptions::new().line(&line.replace("PASSWORD", "secret")).start().unwrap();
    let url = format!("redis://limits:secret@{}", redis.addr());
    let limits = "{algorithm: token_bucket, rate: 9/day}, {algorithm: leaky_bucket, rate: 9/day}, \
                  {algorithm: token_bucket, rate: 1/100year, burst: 9007199254740992}, \
                  {algorithm: fixed_window, rate: 9/day}, {algorithm: sliding_counter, rate: 9/day}, \
                  {algorithm: sliding_window, rate: 9/day}, {algorithm: sliding_log, rate: 9/day}, \
                  {algorithm: concurrency, limit: 9}";
    let node = Tollgate::start(&config_with(limits, "", &store(&url)));
    for _ in 0..12 {
        node.check("ann", 1);
    }
    let cost = r#"{"policy":"p","key":"ann","cost":2}"#;
    post(&node, "/v1/refund", cost);
    let delete = format!("DELETE /v1/keys/p/ann HTTP/1.1\r\nHost: {}\r\n\r\n", node.http);
    assert_eq!(exchange(node.http, delete).unwrap().status, 204);
    assert_eq!(node.check("ann", 1)["remaining"], 8);
    let leased = "{algorithm: token_bucket, rate: 100000/h}";
    let leased =
        config_with(leased, "    mode: leased\n", &store(&url)).replace("id: p\n", "id: l\n");
    let other = Tollgate::start(&leased.replace("[p]", "[l]"));
    for _ in 0..200 {
        other.get("/");
    }
    for node in [&node, &other] {
        assert_eq!(metric(node, "tollgate_store_errors_total{kind=\"denied\"}"), 0.0);
        assert_eq!(metric(node, "tollgate_store_decisions_total{by=\"fallback\"}"), 0.0);
    }
    assert_eq!(other.stop().0, Some(0));
}

/// A node on this address says why it is on its own, counts it by kind, and limits at its share.
#[track_caller]
fn looks_like(url: &str, cause: &str, kind: &str) {
    let mut node = Tollgate::start(&config_with(HOURLY, "", &store(url)));
    node.wait_for(&format!("Redis unavailable ({cause}); limiting locally at 50 % of policy"));
    assert_eq!(node.statuses(3), [200, 200, 429]);
    let errors = metric(&node, &format!("tollgate_store_errors_total{{kind=\"{kind}\"}}"));
    assert!(errors > 0.0, "{}", node.metrics());
    let page = include_str!("../../../docs/operations.md");
    let row = page.lines().find(|line| line.contains(&format!("`{kind}`")) && line.contains(cause));
    assert!(row.is_some() || cause.starts_with("NOPERM"), "docs/operations.md lacks {cause}");
}

// part of: B6
#[test]
fn every_failure_is_told_in_words() {
    let locked = RedisOptions::new()
        .password("secret")
        .user("limits", "other", "~ratelimit:* +info")
        .start()
        .unwrap();
    let at = locked.addr();
    looks_like(&format!("redis://:wrong@{at}"), "wrong user name or password", "denied");
    looks_like(&format!("redis://{at}"), "a password is needed", "denied");
    let denied = "NOPERM this user has no permissions to run the 'eval' command";
    looks_like(&format!("redis://limits:other@{at}"), denied, "denied");

    let master = redis().unwrap();
    let replica = RedisOptions::new().replica_of(master.addr()).start().unwrap();
    replica.wait_until_in_sync();
    let read_only = "READONLY You can't write against a read only replica.";
    looks_like(&replica.url(), read_only, "read_only");

    let full = RedisOptions::new().memory_max(1).start().unwrap();
    looks_like(
        &full.url(),
        "OOM command not allowed when used memory > 'maxmemory'.",
        "out_of_memory",
    );
}

// part of: G6
#[test]
fn files_for_tls_are_read_before_anybody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("empty.pem");
    std::fs::write(&nothing, "").unwrap();
    for (ca, told_of) in [
        ("/no/such/ca.pem", "/no/such/ca.pem: "),
        (nothing.to_str().unwrap(), "in PEM is expected"),
    ] {
        let store =
            format!("store: {{kind: redis, url: rediss://127.0.0.1:1, tls: {{ca: {ca}}}}}\n");
        let path = write(folder.path(), &config_with(HOURLY, "", &store));
        let (code, _, told) = finish(&["check", "-c", &path]);
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains(told_of), "{told}");
        assert_eq!(finish(&["run", "-c", &path]).0, Some(64));
    }
}

// part of: B6, B8
#[test]
fn a_node_that_cannot_ask_answers_in_time() {
    // Nobody reads from this socket, and nobody closes it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let store = store(&url).replace("timeout: 5s", "timeout: 50ms");
    let mut node = Tollgate::start(&config_with(HOURLY, "", &store));
    let watch = tollgate_testkit::stopwatch::Stopwatch::start();
    assert_eq!(node.statuses(4), [200, 200, 429, 429]);
    assert!(watch.elapsed() < Duration::from_secs(2), "{:?}", watch.elapsed());
    node.wait_for("Distributed rate limiting disabled: Redis unavailable");
}
