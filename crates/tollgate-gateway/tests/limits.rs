//! What a limit does to a request, and what the client is told of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use expect_test::expect;
use support::{Upstream, gateway, get, route_to};
use tollgate_core::{Decision, Time};
use tollgate_store::{Answer, Charge, Store, StoreError, Take};
use tollgate_telemetry::{AccessLog, access_log::Format, metrics::Counter};
use tollgate_testkit::{
    ManualClock,
    wait::{PATIENCE, wait_until},
};

/// Ten a second with bursts of fifteen, by client address.
const ORDERS: &str = "    policies: [orders]\npolicies:\n  - id: orders\n    key: \"{ip}\"\n    \
                      limits: [{algorithm: token_bucket, rate: 10/s, burst: 15}]\n";

/// One an hour, by client address.
const ONE: &str = "    policies: [one]\npolicies:\n  - id: one\n    key: \"{ip}\"\n    \
                   limits: [{algorithm: fixed_window, rate: 1/h}]\n";

// covers: C3, C4
#[test]
fn a_burst_passes_and_the_rest_waits_for_the_rate() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ORDERS));
    let mut client = gateway.connect();
    let mut statuses = [0; 20].map(|_| {
        client.send(get("/"));
        client.answer().status()
    });
    statuses.sort_unstable();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 15);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 5);
    assert_eq!(upstream.requests().len(), 15);

    gateway.clock.advance(Duration::from_secs(1));
    for expected in [200; 10].into_iter().chain([429]) {
        client.send(get("/"));
        assert_eq!(client.answer().status(), expected);
    }
}

// covers: C4
#[test]
fn a_request_that_passes_is_told_its_limit() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nX-RateLimit-Remaining: 77\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n",
    );
    let gateway = gateway(&route_to(&[&upstream], ORDERS));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Correlation-ID: id\r\n\r\n");
    expect![[r#"
        HTTP/1.1 200 OK
        Retry-After: 5
        X-RateLimit-Limit: 10
        X-RateLimit-Remaining: 14
        X-RateLimit-Reset: 1794787201
        X-Correlation-ID: id
        Date: Mon, 16 Nov 2026 00:00:00 GMT
        Content-Length: 0

    "#]]
    .assert_eq(&client.answer().head.replace('\r', ""));
}

// covers: C4, C5, C6
#[test]
fn a_refusal_tells_why_and_until_when() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ONE));
    gateway.get("/");
    let answer = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Correlation-ID: id\r\n\r\n");
    expect![[r#"
        HTTP/1.1 429 Too Many Requests
        Content-Type: application/problem+json
        X-RateLimit-Limit: 1
        X-RateLimit-Remaining: 0
        X-RateLimit-Reset: 1794790800
        Cache-Control: no-store
        Retry-After: 3600
        Access-Control-Expose-Headers: x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, x-correlation-id
        X-Correlation-ID: id
        Content-Length: 342
        Date: Mon, 16 Nov 2026 00:00:00 GMT

    "#]].assert_eq(&answer.head.replace('\r', ""));
    expect![[r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Rate limit exceeded. Try again in 3600 seconds.","correlationId":"id","policy":"one","violated-policies":["one"],"algorithm":"fixed_window","rate":"1/h","limit":1,"remaining":0,"retryAfter":3600,"retryAfterMs":3600000}"#]]
        .assert_eq(&answer.body);
    assert_eq!(upstream.requests().len(), 1);
}

// covers: C4
#[test]
fn headers_follow_the_settings() {
    let upstream = Upstream::saying("hello");
    let more = format!("{ONE}headers: {{reset: delta, ietf: true, x_retry_after: true}}\n");
    let gateway = gateway(&route_to(&[&upstream], &more));
    let passed = gateway.get("/");
    assert_eq!(passed.header("x-ratelimit-reset"), Some("3600"));
    assert_eq!(passed.header("ratelimit-policy"), Some("\"one\";q=1;w=3600"));
    assert_eq!(passed.header("ratelimit"), Some("\"one\";r=0;t=3600"));
    assert_eq!(gateway.get("/").header("x-ratelimit-retry-after"), Some("3600"));
}

// covers: C2
#[test]
fn a_route_without_a_policy_has_no_limit_and_no_headers() {
    let upstream =
        Upstream::answering("HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 3\r\nContent-Length: 0\r\n\r\n");
    let gateway = gateway(&route_to(&[&upstream], ""));
    for _ in 0..50 {
        let answer = gateway.get("/");
        assert_eq!(answer.status(), 200);
        // The upstream's own are nobody's business here.
        assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
        assert_eq!(answer.header("x-ratelimit-remaining"), None);
    }
}

// covers: C14
#[test]
fn a_dry_run_counts_and_refuses_nothing() {
    let upstream = Upstream::saying("hello");
    let more = ONE.replace("limits:", "enforce: false\n    limits:");
    let gateway = gateway(&route_to(&[&upstream], &more));
    for _ in 0..3 {
        let answer = gateway.get("/");
        assert_eq!((answer.status(), answer.header("x-ratelimit-limit")), (200, None));
    }
    let labels = "{tier=\"one\",endpoint=\"/\"}";
    assert_eq!(
        gateway.counted("ratelimit_requests"),
        [
            format!("ratelimit_requests_total{labels} 3"),
            format!("ratelimit_requests_limited_total{labels} 0"),
            format!("ratelimit_requests_dry_run_limited_total{labels} 2"),
        ]
    );
}

// part of: G1
#[test]
fn requests_are_counted_by_names_from_the_configuration() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ONE).replace("path: /", "path: /api"));
    for path in ["/api/1", "/api/2", "/api/3", "/none/4"] {
        gateway.get(path);
    }
    assert_eq!(
        gateway.counted("gateway_request_total"),
        [
            "gateway_request_total{status=\"200\",route_path=\"/api\"} 1",
            "gateway_request_total{status=\"429\",route_path=\"/api\"} 2",
            "gateway_request_total{status=\"404\",route_path=\"none\"} 1",
        ]
    );
    let labels = "{tier=\"one\",endpoint=\"/api\"}";
    assert_eq!(
        gateway.counted("ratelimit_requests")[..2],
        [
            format!("ratelimit_requests_total{labels} 3"),
            format!("ratelimit_requests_limited_total{labels} 2"),
        ]
    );
}

// covers: C4
#[test]
fn a_browsers_question_is_passed_on_and_not_counted() {
    let upstream = Upstream::saying("");
    let more = format!("    methods: [PUT]\n{ONE}");
    let gateway = gateway(&route_to(&[&upstream], &more));
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\
                     Access-Control-Request-Method: PUT\r\n\r\n";
    for _ in 0..3 {
        let answer = gateway.ask(preflight);
        assert_eq!((answer.status(), answer.header("x-ratelimit-limit")), (200, None));
        assert!(upstream.request().starts_with("OPTIONS / "));
    }
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\r\n";
    assert_eq!(gateway.ask(put).status(), 200);
    let refused = gateway.ask(put);
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://b"));
    assert!(refused.header("access-control-expose-headers").unwrap().contains("retry-after"));
}

#[test]
fn a_question_with_a_body_is_no_browsers() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ONE));
    let question = "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\
                    Access-Control-Request-Method: PUT\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(gateway.ask(question).status(), 200);
    assert_eq!(gateway.ask(question).status(), 429);
}

// covers: C4
#[test]
fn a_script_may_read_the_limit_where_it_may_read_the_answer() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://b\r\n\
         Access-Control-Expose-Headers: X-Mine\r\nContent-Length: 0\r\n\r\n",
    );
    let gateway = gateway(&route_to(&[&upstream], ORDERS));
    let head = gateway.get("/").head;
    assert_eq!(head.matches("llow-Origin").count(), 1, "{head}");
    assert!(head.contains("Access-Control-Expose-Headers: X-Mine\r\n"), "{head}");
    assert!(head.contains("Access-Control-Expose-Headers: x-ratelimit-limit, "), "{head}");
}

// covers: C4
#[test]
fn a_grpc_call_is_refused_in_its_own_terms() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ONE));
    let call = "POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc+proto\r\n\
                Content-Length: 3\r\nX-Correlation-ID: id\r\n\r\nabc";
    gateway.ask(call);
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send(call);
        let answer = client.answer();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.header("content-type"), Some("application/grpc"));
        assert_eq!(answer.header("grpc-status"), Some("8"));
        assert_eq!(answer.header("grpc-message"), Some("Rate limit exceeded."));
        assert_eq!(answer.header("grpc-retry-pushback-ms"), Some("3600000"));
        assert_eq!(answer.body, "");
    }
}

// part of: C8
#[test]
fn a_forged_address_changes_nothing_and_a_trusted_one_does() {
    let upstream = Upstream::saying("");
    let ask = |gateway: &support::Running, forwarded: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {forwarded}\r\n\r\n");
        gateway.ask(&request).status()
    };
    let open = gateway(&route_to(&[&upstream], ONE));
    assert_eq!([ask(&open, "1.1.1.1"), ask(&open, "2.2.2.2")], [200, 429]);

    let more = format!("{ONE}trusted_proxies: [127.0.0.1/32]\n");
    let trusting = gateway(&route_to(&[&upstream], &more));
    assert_eq!([ask(&trusting, "1.1.1.1"), ask(&trusting, "2.2.2.2")], [200, 200]);
    // All left of the last address is the caller's invention.
    assert_eq!(ask(&trusting, "3.3.3.3, 2.2.2.2"), 429);
}

#[test]
fn keys_come_from_every_part_of_a_request() {
    for (key, same, other) in [
        ("{header.x-user}", "X-User: 1", "x-user: 2"),
        ("{cookie.sid}", "Cookie: a=b; sid=1", "Cookie: sid=2"),
        ("{host}", "X: 1", "X: 1"),
    ] {
        let upstream = Upstream::saying("");
        let gateway = gateway(&route_to(&[&upstream], &ONE.replace("{ip}", key)));
        let ask = |host: &str, line: &str| {
            gateway.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n{line}\r\n\r\n")).status()
        };
        assert_eq!(ask("a", same), 200, "{key}");
        assert_eq!(ask("a", same), 429, "{key}");
        let host = if key == "{host}" { "b" } else { "a" };
        assert_eq!(ask(host, other), 200, "{key}");
    }
}

/// One of two would be the one we count by and the other the one the upstream believes.
// part of: C7
#[test]
fn whoever_names_itself_twice_is_counted_by_address() {
    for (key, line) in [
        ("{header.x-user}", "X-User: N\r\nX-User: me"),
        ("{cookie.sid}", "Cookie: sid=N\r\nCookie: sid=me"),
        ("{cookie.sid}", "Cookie: sid=N; sid=me"),
        ("{header.x-user}", "X-User:"),
        ("{header.x-user}", "X-User: \t "),
        ("{header.x-user}", "X-Nobody: N"),
    ] {
        let upstream = Upstream::saying("");
        let gateway = gateway(&route_to(&[&upstream], &ONE.replace("{ip}", key)));
        let ask = |number: &str| {
            let line = line.replace('N', number);
            gateway.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n")).status()
        };
        assert_eq!((ask("1"), ask("2")), (200, 429), "{key} {line}");
    }
}

// covers: A12
#[test]
fn a_refused_body_does_not_cost_the_connection_if_it_is_here() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ONE));
    let mut client = gateway.connect();
    for body in ["", "hello"] {
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let answer = client.answer();
        assert_eq!(answer.header("connection"), None, "{}", answer.head);
    }
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
    assert_eq!(client.answer().header("connection"), Some("close"));
    client.send("lo");
    assert!(client.is_closed());
}

/// One request at a time, for everybody together.
const SINGLE: &str = "    policies: [single]\npolicies:\n  - id: single\n    key: \"all\"\n    \
                      limits: [{algorithm: concurrency, limit: 1, lease: 1h}]\n";

// covers: A6
#[test]
fn a_place_is_held_until_the_answer_has_ended() {
    let (finish, finished) = mpsc::channel::<()>();
    let finished = std::sync::Mutex::new(finished);
    let upstream = Upstream::with(move |mut connection| {
        while connection.request().is_some() {
            connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
            finished.lock().unwrap().recv().unwrap();
            connection.client.send("lo");
        }
    });
    let gateway = gateway(&route_to(&[&upstream], SINGLE));
    let mut first = gateway.connect();
    first.send(get("/"));
    let head = first.head();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(gateway.get("/").status(), 429);
    finish.send(()).unwrap();
    assert_eq!(first.exactly(5), "hello");
    finish.send(()).unwrap();
    // The place is free as soon as the last byte has left.
    wait_until(PATIENCE, || gateway.get("/").status() == 200).unwrap();
}

// covers: A6
#[test]
fn a_place_is_given_back_by_a_client_that_hangs_up() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        // Never answers.
        connection.request();
    });
    let gateway = gateway(&route_to(&[&upstream], SINGLE));
    let mut first = gateway.connect();
    first.send(get("/"));
    upstream.request();
    assert_eq!(gateway.get("/").status(), 429);
    drop(first);
    wait_until(PATIENCE, || {
        let mut client = gateway.connect();
        client.send(get("/"));
        // A request that passes waits for ever; a refusal comes at once.
        client.is_silent()
    })
    .unwrap();
}

/// A store that nobody can reach.
struct Unreachable;

impl Unreachable {
    fn answer<'a, T>() -> Answer<'a, T> {
        Answer::Ready(Some(Err(StoreError::Unavailable("gone".to_owned()))))
    }
}

impl Store for Unreachable {
    fn take<'a>(&'a self, _: Take<'a>) -> Answer<'a, Decision> {
        Self::answer()
    }

    fn take_each<'a>(&'a self, _: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        Self::answer()
    }

    fn refund<'a>(&'a self, _: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        Self::answer()
    }

    fn release<'a>(&'a self, _: &'a [Charge<'a>], _: u64) -> Answer<'a, ()> {
        Self::answer()
    }

    fn reset<'a>(&'a self, _: &'a [Charge<'a>]) -> Answer<'a, ()> {
        Self::answer()
    }

    fn now(&self) -> Time {
        Time::ZERO
    }
}

#[test]
fn requests_pass_while_nothing_can_be_decided() {
    let upstream = Upstream::saying("hello");
    let config = support::config(&route_to(&[&upstream], ONE));
    let clock = ManualClock::default();
    let gateway = support::start_on(Arc::new(Unreachable), clock, config, 1, None);
    for _ in 0..3 {
        let answer = gateway.get("/");
        assert_eq!((answer.status(), answer.header("x-ratelimit-limit")), (200, None));
    }
}

// covers: C15
#[test]
fn every_request_leaves_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLog::start(Format::Json, Some(path.clone()), Counter::default()).unwrap();
    let log = Arc::new(log);
    let upstream = Upstream::saying("hello");
    let config = support::config(&route_to(&[&upstream], ONE).replace("path: /", "path: /api"));
    let gateway = support::start(config, 1, Some(log.clone()));
    let id = "X-Correlation-ID: id\r\n\r\n";
    gateway.ask(&format!("GET /api/x?secret=1 HTTP/1.1\r\nHost: a\r\n{id}"));
    gateway.ask(&format!("GET /api/y HTTP/1.1\r\nHost: a\r\n{id}"));
    gateway.ask(&format!("GET /none HTTP/1.1\r\nHost: a\r\n{id}"));
    gateway.ask("nonsense\r\n\r\n");
    assert!(gateway.stop(support::SOON).aborted == 0);
    assert!(log.flush(support::SOON));
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            let tell = |name: &str| line.get(name).map_or("-".to_owned(), ToString::to_string);
            let names = ["method", "path", "status", "bytes", "route", "policy", "limited"];
            names.map(tell).join(" ").replace('"', "")
        })
        .collect();
    expect![[r#"
        GET /api/x 200 5 /api one false
        GET /api/y 429 342 /api one true
        GET /none 404 124 null null false
          400 169 null null false"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(lines[0]["upstream"], upstream.addr.to_string());
    assert_eq!(lines[0]["correlation_id"], "id");
}
