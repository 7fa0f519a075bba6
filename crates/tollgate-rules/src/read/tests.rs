use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tollgate_core::{Algorithm, Rate, Unit};

use super::read;
use crate::{
    AccessLog, AccessLogFormat, AtBound, ClientConfig, Config, ForwardHeader, GatewayConfig,
    HeaderConfig, MemoryConfig, Mode, OnFailure, RedisConfig, ResetForm, Share, StoreConfig, Take,
    TlsFiles, UpstreamKind,
};

const EVERYTHING: &str = include_str!("../schema/everything.yaml");

fn env(name: &str) -> Option<String> {
    (name == "BURST").then(|| "15".to_owned())
}

#[track_caller]
fn good(text: &str) -> Config {
    read("tollgate.yaml", text, &env).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    match read("tollgate.yaml", text, &env) {
        Ok(_) => expected.assert_eq("fine"),
        Err(mistakes) => expected.assert_eq(&mistakes.to_string()),
    }
}

/// A policy with one limit.
#[track_caller]
fn check_limit(limit: &str, expected: Expect) {
    check(&format!("policies:\n- id: a\n  limits:\n  - {limit}\n"), expected);
}

/// A route with one line more.
#[track_caller]
fn check_route(line: &str, expected: Expect) {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let rest = [("path", "/"), ("upstreams", "[builtin:echo]")];
    let rest: String = rest
        .iter()
        .filter(|(key, _)| !line.starts_with(key))
        .map(|(key, value)| format!("  {key}: {value}\n"))
        .collect();
    check(&format!("policies: [id: orders]\nroutes:\n- id: {id}\n{rest}  {line}\n"), expected);
}

// covers: G6
#[test]
fn every_setting_reaches_the_configuration() {
    let config = good(EVERYTHING);
    assert_eq!(config.listen.gateway.unwrap().to_string(), "127.0.0.1:8080");
    assert_eq!(config.listen.http.unwrap().to_string(), "[::1]:8082");
    let memory = MemoryConfig {
        max_keys: Some(10_000_000),
        max_bytes: Some(512 << 20),
        at_bound: AtBound::Refuse,
        save: Some("./levels.bin".into()),
    };
    assert_eq!(config.store, StoreConfig::Memory(memory));
    let gateway = GatewayConfig {
        connect_timeout: Duration::from_secs(1),
        response_timeout: Duration::from_secs(60),
        header_timeout: Duration::from_secs(5),
        body_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(120),
        max_header_bytes: 64 << 10,
        max_body_bytes: Some(10 << 20),
        max_connections: 500,
        path_case_sensitive: false,
    };
    assert_eq!(config.gateway, gateway);
    let client = ClientConfig {
        trusted: ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8"].map(|net| net.parse().unwrap()).into(),
        header: ForwardHeader::Forwarded,
        take: Take::Leftmost,
        ipv6_prefix: 56,
    };
    assert_eq!(config.client, client);
    let headers = HeaderConfig { reset: ResetForm::Delta, ietf: true, retry_after: true };
    assert_eq!(config.headers, headers);
    let log = AccessLog { format: AccessLogFormat::Text, path: Some("access.log".into()) };
    assert_eq!(config.access_log, Some(log));
    assert_eq!((config.workers, config.drain), (Some(2), Duration::from_secs(5)));
}

// covers: C1, C2, C14, A12
#[test]
fn policies_and_routes_reach_the_rule_set() {
    let rules = good(EVERYTHING).rules;
    let [orders, deals, tenants, unlimited] = rules.policies() else { panic!("{rules:?}") };
    assert_eq!(orders.limits[0].capacity(), 15);
    assert_eq!(orders.limits[1].rate(), Some(Rate::per(1_000, Unit::Day)));
    assert!(orders.enforce && !orders.count_refused);
    assert!(!deals.enforce && deals.count_refused);
    let algorithms: Vec<_> = deals.limits.iter().map(tollgate_core::Limit::algorithm).collect();
    let without_these = [Algorithm::TokenBucket, Algorithm::SlidingWindow];
    let expected = Algorithm::ALL.into_iter().filter(|one| !without_these.contains(one));
    assert_eq!(algorithms, expected.collect::<Vec<_>>());
    assert_eq!((orders.mode, orders.ttl), (Mode::Exact, None));
    let ttl = Duration::from_secs(120);
    assert_eq!(
        (tenants.mode, tenants.ttl),
        (Mode::Leased { epsilon_millionths: 50_000 }, Some(ttl))
    );
    assert!(unlimited.limits.is_empty());
    assert_eq!(rules.policy("unlimited").map(|policy| policy.index), Some(3));
    assert!(rules.policy("none").is_none());

    let [route] = rules.routes() else { panic!("a draft does not serve: {rules:?}") };
    assert_eq!(&*route.path, "/api/orders");
    assert_eq!(route.methods, [http::Method::GET, http::Method::POST]);
    assert_eq!(route.policies, [0, 1]);
    assert_eq!(&*route.upstreams[1].authority, "localhost:9001");
    assert_eq!(route.upstreams[0].kind, UpstreamKind::Http);
}

#[test]
fn an_empty_text_is_all_defaults() {
    for text in
        ["", "# nothing\n", "{}", "listen: {}\nstore: {}\ngateway: {}\nclient: {}\nheaders: {}"]
    {
        let config = good(text);
        assert_eq!(config.listen, crate::Listen::default());
        assert_eq!(config.store, StoreConfig::default());
        assert_eq!(config.gateway, GatewayConfig::default());
        assert_eq!(config.client, ClientConfig::default());
        assert_eq!(config.headers, HeaderConfig::default());
        assert_eq!((config.access_log, config.workers), (None, None));
        assert!(config.rules.routes().is_empty());
    }
}

#[track_caller]
fn redis(text: &str) -> RedisConfig {
    match good(text).store {
        StoreConfig::Redis(redis) => redis,
        StoreConfig::Memory(memory) => panic!("{memory:?}"),
    }
}

// part of: B1
#[test]
fn a_redis_store_has_a_default_for_all_but_its_address() {
    let redis = redis("store: {kind: redis, url: \"redis://127.0.0.1:6379\"}");
    assert_eq!(redis.url.reveal(), "redis://127.0.0.1:6379");
    assert_eq!((&*redis.prefix, redis.timeout), ("ratelimit", Duration::from_millis(50)));
    assert_eq!(redis.on_failure, OnFailure::Local(Share::Part { millionths: 500_000 }));
    assert_eq!(redis.tls, TlsFiles::default());
    assert_eq!(redis.fallback, MemoryConfig::default());
}

// part of: B1, B6, B7
#[test]
fn every_setting_of_a_redis_store_reaches_the_configuration() {
    let redis = redis(
        "store: {kind: redis, url: \"rediss://me:${BURST}@h:1/2\", prefix: rl, timeout: 2s, \
         on_failure: {mode: local, share: fleet}, tls: {ca: a.pem, cert: b.pem, key: c.pem}, \
         max_keys: 1000}",
    );
    assert_eq!(redis.url.reveal(), "rediss://me:15@h:1/2");
    assert!(!format!("{redis:?}").contains("15"), "the password stays secret: {redis:?}");
    assert_eq!((&*redis.prefix, redis.timeout), ("rl", Duration::from_secs(2)));
    assert_eq!(redis.on_failure, OnFailure::Local(Share::Fleet));
    let [ca, cert, key] = ["a.pem", "b.pem", "c.pem"].map(|name| Some(name.into()));
    assert_eq!(redis.tls, TlsFiles { ca, cert, key });
    let fallback = MemoryConfig {
        max_keys: Some(1_000),
        max_bytes: None,
        at_bound: AtBound::Evict,
        save: None,
    };
    assert_eq!(redis.fallback, fallback);
}

// part of: B6
#[test]
fn what_holds_without_the_store_is_a_choice() {
    let on_failure = |text: &str| {
        redis(&format!("store: {{kind: redis, url: redis://h, on_failure: {text}}}")).on_failure
    };
    assert_eq!(on_failure("{}"), OnFailure::default());
    assert_eq!(on_failure("{mode: allow}"), OnFailure::Allow);
    assert_eq!(on_failure("{mode: deny}"), OnFailure::Deny);
    let part = |millionths| OnFailure::Local(Share::Part { millionths });
    assert_eq!(on_failure("{share: 0.25}"), part(250_000));
    assert_eq!(on_failure("{mode: local, share: 1}"), part(1_000_000));
}

#[test]
fn a_bound_on_keys_replaces_the_one_on_bytes() {
    let bounds = |text: &str| match good(text).store {
        StoreConfig::Memory(memory) => (memory.max_keys, memory.max_bytes),
        StoreConfig::Redis(redis) => (redis.fallback.max_keys, redis.fallback.max_bytes),
    };
    let redis = |rest| format!("store: {{kind: redis, url: redis://h, {rest}}}");
    assert_eq!(bounds(&redis("max_keys: 5")), (Some(5), None));
    assert_eq!(bounds(&redis("prefix: x")), (None, Some(512 << 20)));
    assert_eq!(bounds("store: {max_keys: 5}"), (Some(5), None));
    assert_eq!(bounds("store: {max_bytes: 1MiB}"), (None, Some(1 << 20)));
    assert_eq!(bounds("store: {max_keys: 5, max_bytes: 1MiB}"), (Some(5), Some(1 << 20)));
}

#[test]
fn a_bucket_without_a_burst_holds_the_count_of_its_rate() {
    let rules = good("policies: [{id: a, limits: [{algorithm: token_bucket, rate: 0/s}, {algorithm: leaky_bucket, rate: 20/min}]}]").rules;
    assert_eq!(
        rules.policies()[0].limits.iter().map(|limit| limit.capacity()).collect::<Vec<_>>(),
        [0, 20]
    );
}

// covers: G6
#[test]
fn all_mistakes_are_told_at_once_by_line() {
    check(
        "routes:\n- id: 1\n  path: api\n  upstreams: [\"https://a\"]\n  policies: [order]\npolicies:\n- id: orders\n  limits:\n  - {algorithm: token_bucket, rate: 10/sec}\n  key: {ip}\nlisten: {gateway: \":8080\"}\n",
        expect![[r#"
            tollgate.yaml:2:7: routes[0].id: found "1", expected a UUID like 550e8400-e29b-41d4-a716-446655440000
                - id: 1
                      ^
            tollgate.yaml:3:9: routes[0].path: found "api": a path begins with /
                path: api
                      ^
            tollgate.yaml:4:15: routes[0].upstreams[0]: https to upstreams is not available yet in this version: write http://HOST:PORT
                upstreams: ["https://a"]
                            ^
            tollgate.yaml:5:14: routes[0].policies[0]: there is no policy "order": did you mean orders? defined are orders
                policies: [order]
                           ^
            tollgate.yaml:9:37: policies[0].limits[0].rate: "sec" is not a unit of time: did you mean s? write one of s, min, h, day, week, month, year
                - {algorithm: token_bucket, rate: 10/sec}
                                                  ^
            tollgate.yaml:10:8: policies[0].key: braces without quotes are YAML's own: write "{ip}"
                key: {ip}
                     ^
            tollgate.yaml:11:19: listen.gateway: found ":8080": write 127.0.0.1:8080 for this machine only, or 0.0.0.0:8080 for all
                listen: {gateway: ":8080"}
                                  ^"#]],
    );
}

#[test]
fn unknown_settings_are_refused_with_the_one_that_was_meant() {
    check(
        "polices: []\n",
        expect![[r#"
        tollgate.yaml:1:1: polices: no such setting: did you mean policies?
            polices: []
            ^"#]],
    );
    check(
        "gateway: {conect_timeout: 1s, colour: red}\n",
        expect![[r#"
        tollgate.yaml:1:11: gateway.conect_timeout: no such setting: did you mean connect_timeout?
            gateway: {conect_timeout: 1s, colour: red}
                      ^
        tollgate.yaml:1:31: gateway.colour: no such setting: here stand connect_timeout, response_timeout, header_timeout, body_timeout, idle_timeout, max_header_bytes, max_body_bytes, max_connections, path_case
            gateway: {conect_timeout: 1s, colour: red}
                                          ^"#]],
    );
}

#[test]
fn a_missing_environment_variable_is_told_once() {
    check(
        "workers: ${CORES}\nlisten:\n  http: 127.0.0.1:${PORT}\n",
        expect![[r#"
        tollgate.yaml:1:10: workers: the environment variable CORES is not set
            workers: ${CORES}
                     ^
        tollgate.yaml:3:9: listen.http: the environment variable PORT is not set
            http: 127.0.0.1:${PORT}
                  ^"#]],
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_told_what_is_expected() {
    check(
        "policies: {id: a}\nlisten: [1]\nheaders: {ietf: yes}\nworkers: 0\ndrain: 2h\n",
        expect![[r#"
        tollgate.yaml:1:11: policies: found keys and values, expected a list of policies
            policies: {id: a}
                      ^
        tollgate.yaml:2:9: listen: found a list, expected keys and values (gateway, grpc, http, resp)
            listen: [1]
                    ^
        tollgate.yaml:3:17: headers.ietf: found "yes", expected true or false
            headers: {ietf: yes}
                            ^
        tollgate.yaml:4:10: workers: found "0", expected a whole number from 1 to 1024
            workers: 0
                     ^
        tollgate.yaml:5:8: drain: found 2h, expected a duration from 0s to 1h
            drain: 2h
                   ^"#]],
    );
    check(
        "policies:\nroutes: ~\ngateway: {max_header_bytes: 1KiB, max_connections: many}\n",
        expect![[r#"
        tollgate.yaml:1:9: policies: has no value: leave the key out, or write a list of policies
            policies:
                    ^
        tollgate.yaml:2:9: routes: has no value: leave the key out, or write a list of routes
            routes: ~
                    ^
        tollgate.yaml:3:29: gateway.max_header_bytes: found 1KiB, expected a size from 8KiB to 1MiB
            gateway: {max_header_bytes: 1KiB, max_connections: many}
                                        ^
        tollgate.yaml:3:52: gateway.max_connections: found "many", expected a whole number from 1 to 10000000
            gateway: {max_header_bytes: 1KiB, max_connections: many}
                                                               ^"#]],
    );
    check(
        "just text\n",
        expect![[r#"
        tollgate.yaml:1:1: found "just text", expected keys and values (listen, store, policies, routes, trusted_proxies, envoy, gateway, client, headers, access_log, workers, drain)
            just text
            ^"#]],
    );
}

#[test]
fn numbers_that_make_no_limit_are_told_why() {
    check_limit(
        "{algorithm: token_bucket, burst: 5}",
        expect![[r#"
        tollgate.yaml:4:5: policies[0].limits[0]: rate is missing: write rate: 10/s
            - {algorithm: token_bucket, burst: 5}
              ^"#]],
    );
    check_limit(
        "{algorithm: tokenbucket, rate: 5/s}",
        expect![[r#"
        tollgate.yaml:4:17: policies[0].limits[0].algorithm: found "tokenbucket", expected token_bucket, leaky_bucket, fixed_window, sliding_log, sliding_counter, sliding_window or concurrency; did you mean token_bucket?
            - {algorithm: tokenbucket, rate: 5/s}
                          ^"#]],
    );
    check_limit(
        "{rate: 5/s}",
        expect![[r#"
        tollgate.yaml:4:5: policies[0].limits[0]: algorithm is missing: write algorithm: token_bucket, or another
            - {rate: 5/s}
              ^"#]],
    );
    check_limit(
        "{algorithm: sliding_window, rate: 5/s, burst: 10}",
        expect![[r#"
        tollgate.yaml:4:51: policies[0].limits[0].burst: sliding_window has no burst: it takes a rate
            - {algorithm: sliding_window, rate: 5/s, burst: 10}
                                                            ^"#]],
    );
    check_limit(
        "{algorithm: concurrency, rate: 5/s}",
        expect![[r#"
        tollgate.yaml:4:5: policies[0].limits[0]: limit is missing: write limit: 10
            - {algorithm: concurrency, rate: 5/s}
              ^
        tollgate.yaml:4:36: policies[0].limits[0].rate: concurrency has no rate: it takes limit and lease
            - {algorithm: concurrency, rate: 5/s}
                                             ^"#]],
    );
    check_limit(
        "{algorithm: concurrency, limit: 5, lease: 2d}",
        expect![[r#"
        tollgate.yaml:4:47: policies[0].limits[0].lease: found 2d, expected a duration from 1ms to 1d
            - {algorithm: concurrency, limit: 5, lease: 2d}
                                                        ^"#]],
    );
    check_limit(
        "{algorithm: token_bucket, rate: 2000000000/s}",
        expect![[r#"
        tollgate.yaml:4:37: policies[0].limits[0].rate: 2000000000/s is too fast: at most 1000000000 per second
            - {algorithm: token_bucket, rate: 2000000000/s}
                                              ^"#]],
    );
    check_limit(
        "{algorithm: token_bucket, rate: 1/s, burst: 9007199254740993}",
        expect![[r#"
        tollgate.yaml:4:49: policies[0].limits[0].burst: found "9007199254740993", expected a whole number from 0 to 9007199254740992
            - {algorithm: token_bucket, rate: 1/s, burst: 9007199254740993}
                                                          ^"#]],
    );
    check_limit(
        "{algorithm: sliding_log, rate: 1000000/day}",
        expect![[r#"
        tollgate.yaml:4:36: policies[0].limits[0].rate: sliding_log keeps an entry per request, so at most 100000, not 1000000; `sliding_window` has no such bound
            - {algorithm: sliding_log, rate: 1000000/day}
                                             ^"#]],
    );
    check_limit(
        "{algorithm: fixed_window, rate: 1/200year}",
        expect![[r#"
        tollgate.yaml:4:37: policies[0].limits[0].rate: 1/200year has too long a period: at most 100 years
            - {algorithm: fixed_window, rate: 1/200year}
                                              ^"#]],
    );
}

#[test]
fn mistakes_in_a_policy_are_shown() {
    check(
        "policies:\n- {id: a}\n- {id: a}\n- {id: \"b c\"}\n- {key: x}\n",
        expect![[r#"
            tollgate.yaml:3:8: policies[1].id: the policy a stands already in line 2
                - {id: a}
                       ^
            tollgate.yaml:4:8: policies[2].id: found "b c", expected a name of up to 128 letters, digits and . _ - :
                - {id: "b c"}
                       ^
            tollgate.yaml:5:3: policies[3]: id is missing: write id: orders
                - {key: x}
                  ^"#]],
    );
    check(
        "policies:\n- id: a\n  key: \"{usr}\"\n  mode: exact\n  epsilon: 2\n  on_exceed: queue\n",
        expect![[r#"
            tollgate.yaml:3:8: policies[0].key: "{usr}" is an unknown part: the parts are {ip} {header.NAME} {cookie.NAME} {query.NAME} {path.N} {host} {method}
                key: "{usr}"
                     ^
            tollgate.yaml:5:12: policies[0].epsilon: belongs to mode leased and means nothing here: leave it out
                epsilon: 2
                         ^
            tollgate.yaml:6:14: policies[0].on_exceed: found "queue", expected reject, or {queue: {max_wait: 2s, max_depth: 100}}
                on_exceed: queue
                           ^"#]],
    );
    check(
        "policies:\n- id: a\n  on_exceed: {queue: {max_wait: 2s, max_depth: 100}}\n",
        expect![[r#"
        tollgate.yaml:3:15: policies[0].on_exceed.queue: queueing requests is not available yet in this version
            on_exceed: {queue: {max_wait: 2s, max_depth: 100}}
                        ^"#]],
    );
}

#[test]
fn mistakes_in_a_route_are_shown() {
    check_route(
        "path: /api/*",
        expect![[r#"
        tollgate.yaml:5:9: routes[0].path: found "/api/*": a path has no wildcards, it serves all below it
            path: /api/*
                  ^"#]],
    );
    check_route(
        "path: /api?x=1",
        expect![[r#"
        tollgate.yaml:5:9: routes[0].path: found "/api?x=1": a path has neither ?, # nor ; in it
            path: /api?x=1
                  ^"#]],
    );
    check_route(
        "path: /api%2Forders",
        expect![[r#"
        tollgate.yaml:5:9: routes[0].path: found "/api%2Forders": no client's path could ever be this
            path: /api%2Forders
                  ^"#]],
    );
    check_route(
        "host: api.example.com:8080",
        expect![[r#"
        tollgate.yaml:6:9: routes[0].host: found "api.example.com:8080", expected a host without a port, like api.example.com
            host: api.example.com:8080
                  ^"#]],
    );
    check_route(
        "host: \"*.example.com\"",
        expect![[r#"
        tollgate.yaml:6:9: routes[0].host: found "*.example.com": a host has no wildcards: write one route per host
            host: "*.example.com"
                  ^"#]],
    );
    check_route(
        "methods: [get, POST, POST]",
        expect![[r#"
        tollgate.yaml:6:13: routes[0].methods[0]: found "get": methods are written in capitals, GET
            methods: [get, POST, POST]
                      ^
        tollgate.yaml:6:24: routes[0].methods[2]: POST stands here twice
            methods: [get, POST, POST]
                                 ^"#]],
    );
    check_route(
        "upstreams: []",
        expect![[r#"
        tollgate.yaml:5:14: routes[0].upstreams: has no upstream: write upstreams: ["http://127.0.0.1:9000"]
            upstreams: []
                       ^"#]],
    );
    check_route(
        "upstreams: [\"http://127.0.0.1:9000/v2\"]",
        expect![[r#"
        tollgate.yaml:5:15: routes[0].upstreams[0]: "http://127.0.0.1:9000/v2" carries a path or a query: a request keeps its own, so write http://127.0.0.1:9000
            upstreams: ["http://127.0.0.1:9000/v2"]
                        ^"#]],
    );
    check_route(
        "status: publish",
        expect![[r#"
        tollgate.yaml:6:11: routes[0].status: found "publish", expected published or draft; did you mean published?
            status: publish
                    ^"#]],
    );
    check_route(
        "policies: [order, orders, orders]",
        expect![[r#"
        tollgate.yaml:6:14: routes[0].policies[0]: there is no policy "order": did you mean orders? defined are orders
            policies: [order, orders, orders]
                       ^
        tollgate.yaml:6:29: routes[0].policies[2]: the policy orders stands here twice
            policies: [order, orders, orders]
                                      ^"#]],
    );
}

#[test]
fn two_routes_for_one_request_are_refused_with_both_lines() {
    check(
        "routes:
- {id: 550e8400-e29b-41d4-a716-446655440000, path: /api, upstreams: [builtin:echo], methods: [GET]}
- {id: 550e8400-e29b-41d4-a716-446655440000, path: /api/, upstreams: [builtin:echo], methods: [PUT]}
- {id: 550e8400-e29b-41d4-a716-446655440002, path: /x/../api, upstreams: [builtin:echo]}
- {id: 550e8400-e29b-41d4-a716-446655440003, path: /api, upstreams: [builtin:echo], host: a.example}
- {id: 550e8400-e29b-41d4-a716-446655440004, path: /api, upstreams: [builtin:echo], host: A.example}
- {id: 550e8400-e29b-41d4-a716-446655440005, path: /api, upstreams: [builtin:echo], status: draft}
",
        expect![[r#"
            tollgate.yaml:3:8: routes[1].id: the route 550e8400-e29b-41d4-a716-446655440000 stands already in line 2
                - {id: 550e8400-e29b-41d4-a716-446655440000, path: /api/, upstreams: [builtin:echo], methods: [PUT]}
                       ^
            tollgate.yaml:4:52: routes[2].path: lines 2 and 4 both serve /api with the same methods: keep one
                - {id: 550e8400-e29b-41d4-a716-446655440002, path: /x/../api, upstreams: [builtin:echo]}
                                                                   ^
            tollgate.yaml:6:52: routes[4].path: lines 5 and 6 both serve a.example/api with the same methods: keep one
                - {id: 550e8400-e29b-41d4-a716-446655440004, path: /api, upstreams: [builtin:echo], host: A.example}
                                                                   ^"#]],
    );
}

#[test]
fn mistakes_about_store_and_listeners_are_shown() {
    check(
        "store: {kind: memory, url: redis://x, timeout: 1s}\n",
        expect![[r#"
        tollgate.yaml:1:28: store.url: belongs to a redis or remote store and means nothing here: leave it out
            store: {kind: memory, url: redis://x, timeout: 1s}
                                       ^
        tollgate.yaml:1:48: store.timeout: belongs to a redis or remote store and means nothing here: leave it out
            store: {kind: memory, url: redis://x, timeout: 1s}
                                                           ^"#]],
    );
    check(
        "store: {kind: disk, at_bound: drop, max_bytes: 1KiB}\n",
        expect![[r#"
        tollgate.yaml:1:15: store.kind: found "disk", expected memory, redis or remote
            store: {kind: disk, at_bound: drop, max_bytes: 1KiB}
                          ^
        tollgate.yaml:1:31: store.at_bound: found "drop", expected evict or refuse
            store: {kind: disk, at_bound: drop, max_bytes: 1KiB}
                                          ^
        tollgate.yaml:1:48: store.max_bytes: found 1KiB, expected a size from 64KiB to 1024TiB
            store: {kind: disk, at_bound: drop, max_bytes: 1KiB}
                                                           ^"#]],
    );
    check(
        "listen: {gateway: 127.0.0.1:80, http: 127.0.0.1:80, grpc: localhost:8081, resp: 127.0.0.1:6380}\n",
        expect![[r#"
        tollgate.yaml:1:39: listen.http: 127.0.0.1:80 is already taken by listen.gateway
            listen: {gateway: 127.0.0.1:80, http: 127.0.0.1:80, grpc: localhost:8081, resp: 127.0.0.1:6380}
                                                  ^
        tollgate.yaml:1:59: listen.grpc: found "localhost:8081": write 127.0.0.1:8081
            listen: {gateway: 127.0.0.1:80, http: 127.0.0.1:80, grpc: localhost:8081, resp: 127.0.0.1:6380}
                                                                      ^
        tollgate.yaml:1:75: listen.resp: the Redis protocol is not available yet in this version
            listen: {gateway: 127.0.0.1:80, http: 127.0.0.1:80, grpc: localhost:8081, resp: 127.0.0.1:6380}
                                                                                      ^"#]],
    );
    check(
        "trusted_proxies: [10.0.0.0/33, proxy]\nclient: {ipv6_prefix: 129, take: right}\n",
        expect![[r#"
        tollgate.yaml:1:19: trusted_proxies[0]: found "10.0.0.0/33", expected a network like 10.0.0.0/8
            trusted_proxies: [10.0.0.0/33, proxy]
                              ^
        tollgate.yaml:1:32: trusted_proxies[1]: found "proxy", expected a network like 10.0.0.0/8
            trusted_proxies: [10.0.0.0/33, proxy]
                                           ^
        tollgate.yaml:2:23: client.ipv6_prefix: found "129", expected a whole number from 1 to 128
            client: {ipv6_prefix: 129, take: right}
                                  ^
        tollgate.yaml:2:34: client.take: found "right", expected rightmost or leftmost
            client: {ipv6_prefix: 129, take: right}
                                             ^"#]],
    );
    check(
        "envoy: {rules: ./rules}\n",
        expect![[r#"
        tollgate.yaml:1:1: envoy: reading Envoy's rules is not available yet in this version
            envoy: {rules: ./rules}
            ^"#]],
    );
}

#[test]
fn mistakes_about_a_redis_store_are_shown_without_its_password() {
    check(
        "store: {kind: redis, url: postgres://user:secret@x, save: y, on_failure: {mode: allow, share: 2}}\n",
        expect![[r#"
            tollgate.yaml:1:27: store.url: not the address of a Redis: write redis://HOST:6379, rediss://HOST:6379, redis+sentinel://H1,H2/MASTER or redis+cluster://H1,H2
                store: {kind: redis, url: postgres://user:******@x, save: y, on_failure: {mode: allow, share: 2}}
                                          ^
            tollgate.yaml:1:59: store.save: belongs to the memory store and means nothing here: leave it out
                store: {kind: redis, url: postgres://user:******@x, save: y, on_failure: {mode: allow, share: 2}}
                                                                          ^
            tollgate.yaml:1:95: store.on_failure.share: belongs to mode local and means nothing here: leave it out
                store: {kind: redis, url: postgres://user:******@x, save: y, on_failure: {mode: allow, share: 2}}
                                                                                                              ^"#]],
    );
    check(
        "store:\n  kind: redis\n  url: \"redis+sentinel://:secret@a,b\"\n  prefix: a b\n  timeout: 2min\n  tls: {key: k}\n",
        expect![[r#"
            tollgate.yaml:3:8: store.url: the master's name is missing: write redis+sentinel://H1,H2/MASTER
                url: "redis+sentinel://:******@a,b"
                     ^
            tollgate.yaml:4:11: store.prefix: found "a b", expected a word of letters, digits and . _ - : like ratelimit
                prefix: a b
                        ^
            tollgate.yaml:5:12: store.timeout: found 2min, expected a duration from 1ms to 1min
                timeout: 2min
                         ^
            tollgate.yaml:6:14: store.tls.key: key is of no use without cert: name both
                tls: {key: k}
                           ^"#]],
    );
    check(
        "store: {kind: redis, url: redis://h, tls: {ca: a}, on_failure: {mode: local, share: half}}\n",
        expect![[r#"
            tollgate.yaml:1:43: store.tls: without TLS these files mean nothing: write rediss:// in url
                store: {kind: redis, url: redis://h, tls: {ca: a}, on_failure: {mode: local, share: half}}
                                                          ^
            tollgate.yaml:1:85: store.on_failure.share: found "half", expected a number from 0.000001 to 1, like 0.5
                store: {kind: redis, url: redis://h, tls: {ca: a}, on_failure: {mode: local, share: half}}
                                                                                                    ^"#]],
    );
    check(
        "store: {kind: redis}\n",
        expect![[r#"
        tollgate.yaml:1:8: store: url is missing: write url: redis://127.0.0.1:6379
            store: {kind: redis}
                   ^"#]],
    );
    check(
        "store: {kind: remote, url: \"redis://h\", prefix: x, max_keys: 5}\n",
        expect![[r#"
        tollgate.yaml:1:9: store.kind: the remote store is not available yet in this version
            store: {kind: remote, url: "redis://h", prefix: x, max_keys: 5}
                    ^
        tollgate.yaml:1:28: store.url: not the address of such a store: write http://HOST:8082
            store: {kind: remote, url: "redis://h", prefix: x, max_keys: 5}
                                       ^
        tollgate.yaml:1:49: store.prefix: belongs to a redis store and means nothing here: leave it out
            store: {kind: remote, url: "redis://h", prefix: x, max_keys: 5}
                                                            ^
        tollgate.yaml:1:62: store.max_keys: belongs to a memory or redis store and means nothing here: leave it out
            store: {kind: remote, url: "redis://h", prefix: x, max_keys: 5}
                                                                         ^"#]],
    );
}

// part of: B3
#[test]
fn two_policies_whose_keys_would_be_one_in_redis_are_refused() {
    let policies = "policies:\n- {id: a:b:c}\n- {id: b}\n- {id: a:b}\n- {id: a-b}\n- {id: a}\n";
    check(policies, expect!["fine"]);
    check(
        &format!("store: {{kind: redis, url: redis://h}}\n{policies}"),
        expect![[r#"
        tollgate.yaml:3:8: policies[0].id: keys in Redis like ratelimit:a:b:c:KEY could be those of the policy a in line 7, too: rename one so that no : follows a
            - {id: a:b:c}
                   ^
        tollgate.yaml:5:8: policies[2].id: keys in Redis like ratelimit:a:b:KEY could be those of the policy a in line 7, too: rename one so that no : follows a
            - {id: a:b}
                   ^"#]],
    );
}

// part of: B10
#[test]
fn what_cannot_be_leased_is_refused_with_the_reason() {
    check(
        "policies:\n- id: a\n  mode: leased\n  count_refused: true\n  epsilon: 2\n  ttl: 0s\n  limits: [{algorithm: concurrency, limit: 5}]\n",
        expect![[r#"
            tollgate.yaml:3:9: policies[0].mode: leased takes ahead what will be spent, and a place in flight is given back instead: write mode: exact for a policy with a concurrency limit
                mode: leased
                      ^
            tollgate.yaml:3:9: policies[0].mode: leased refuses only what the store refused, and count_refused charges the store for every refusal: write mode: exact, or leave out count_refused
                mode: leased
                      ^
            tollgate.yaml:5:12: policies[0].epsilon: found "2", expected a number from 0.000001 to 1, like 0.5
                epsilon: 2
                         ^
            tollgate.yaml:6:8: policies[0].ttl: found 0s, expected a duration from 1s to 366d
                ttl: 0s
                     ^"#]],
    );
}

// part of: B10
#[test]
fn who_asks_for_leases_and_gets_none_is_told() {
    let hints = |store: &str, rest: &str| {
        let text = format!("{store}\npolicies:\n- id: a\n  mode: leased\n  {rest}\n");
        good(&text).hints.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let shared = "store: {kind: redis, url: redis://h}";
    let small = "limits: [{algorithm: token_bucket, rate: 10/s, burst: 99}]";
    expect![[r#"
        tollgate.yaml:4:9: policies[0].mode: epsilon times 99 is less than 1, so nothing can be taken ahead and every decision is made in the store, as in mode exact
            mode: leased
                  ^"#]].assert_eq(&hints(shared, small));
    expect![[r#"
        tollgate.yaml:4:9: policies[0].mode: several limits are decided at once in the store, so nothing is taken ahead, as in mode exact
            mode: leased
                  ^"#]].assert_eq(&hints(
        shared,
        "limits: [{algorithm: token_bucket, rate: 1000/s}, {algorithm: sliding_window, rate: 1000/day}]",
    ));
    assert_eq!(hints("", small), "", "in memory every mode is exact");
    assert_eq!(hints(shared, "limits: [{algorithm: token_bucket, rate: 100/s}]"), "");
    assert_eq!(hints(shared, &format!("epsilon: 0.02\n  {small}")), "");
}

fn texts() -> impl Strategy<Value = String> {
    // Lines of the good text in any order and torn anywhere: deeper than noise ever gets.
    let line = prop_oneof![
        3 => proptest::sample::select(EVERYTHING.lines().collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => "[ ]{0,4}[a-z_]{1,8}: ?(\\PC{0,10}|\\[[a-z,]{0,6}\\]|\\{[a-z:, ]{0,8}\\})",
    ];
    let lines = proptest::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"));
    let torn = (lines, any::<proptest::sample::Index>()).prop_map(|(mut text, at)| {
        let at = at.index(text.len() + 1);
        if text.is_char_boundary(at) {
            text.truncate(at);
        }
        text
    });
    prop_oneof![torn, "\\PC{0,200}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // covers: G6
    #[test]
    fn no_text_makes_it_panic(text in texts()) {
        if let Err(mistakes) = read("a.yaml", &text, &env) {
            prop_assert!(mistakes.count() > 0);
            prop_assert!(mistakes.to_string().starts_with("a.yaml:"));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read("a.yaml", &String::from_utf8_lossy(&bytes), &env);
    }
}
