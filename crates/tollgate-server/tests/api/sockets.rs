//! The service behind real sockets, as it is served in production.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tollgate_core::Clock;
use tollgate_engine::Engine;
use tollgate_listen::{HttpServer, HttpSettings, Sockets, Workers};
use tollgate_server::{Api, ApiSettings, Readiness};
use tollgate_store::{MemoryConfig, MemoryStore, SystemClock};
use tollgate_telemetry::Metrics;
use tollgate_testkit::{
    http_client::{Connection, exchange, get, json_request, post_json},
    wait::{PATIENCE, wait_until},
};

use crate::service::rules;

const POLICIES: &str = "
policies:
  - {id: day, limits: [{algorithm: token_bucket, rate: 1/day, burst: 5}]}
  - {id: minute, limits: [{algorithm: token_bucket, rate: 1/min, burst: 1}]}
";

struct Served {
    addr: SocketAddr,
    _workers: Workers,
}

fn served() -> Served {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), clock));
    let engine = Arc::new(Engine::new(store, rules(POLICIES)));
    let metrics = Arc::new(Metrics::new());
    let api = Api::new(engine, metrics, Readiness::default(), &ApiSettings::default());
    let sockets = Sockets::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let addr = sockets.local_addr();
    let workers = Workers::start(2, "http", move |worker| {
        let service = api.service();
        let server = HttpServer::new(HttpSettings::default(), move |_peer| service.clone());
        worker.listen(&sockets, server);
    });
    Served { addr, _workers: workers.unwrap() }
}

impl Served {
    fn remaining(&self, policy: &str) -> u64 {
        let state = get(self.addr, &format!("/v1/keys/{policy}/a")).unwrap().text();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        state["limits"][0]["remaining"].as_u64().unwrap()
    }

    /// How long a look says the next one would have to wait.
    fn retry_after(&self, policy: &str) -> Duration {
        let state = get(self.addr, &format!("/v1/keys/{policy}/a")).unwrap().text();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        Duration::from_millis(state["limits"][0]["retry_after_ms"].as_u64().unwrap())
    }
}

#[test]
fn all_connections_count_together() {
    let served = served();
    let check = json_request(served.addr, "/v1/check", r#"{"policy":"day","key":"a"}"#);
    let mut kept = Connection::open(served.addr).unwrap();
    let mut allowed = 0;
    for _ in 0..10 {
        for response in [kept.exchange(&check).unwrap(), exchange(served.addr, &check).unwrap()] {
            assert_eq!(response.status, 200);
            allowed += usize::from(response.text().contains("\"allowed\":true"));
        }
    }
    assert_eq!(allowed, 5);
}

#[test]
fn pipelined_checks_are_answered_in_order() {
    let served = served();
    let check = json_request(served.addr, "/v1/check", r#"{"policy":"day","key":"a"}"#);
    let mut connection = Connection::open(served.addr).unwrap();
    connection.send(check.repeat(5)).unwrap();
    for remaining in (0..5).rev() {
        let text = connection.receive().unwrap().text();
        assert!(text.contains(&format!("\"remaining\":{remaining},")), "{text}");
    }
}

#[test]
fn a_body_may_come_in_chunks_and_late() {
    let served = served();
    let mut connection = Connection::open(served.addr).unwrap();
    connection
        .send("POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    for piece in [r#"{"policy":"day","#, r#""key":"a"}"#] {
        // The service has nothing to wait for but the next piece.
        connection.send(format!("{:x}\r\n{piece}\r\n", piece.len())).unwrap();
    }
    let response = connection.exchange("0\r\n\r\n").unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let served = served();
    let body = r#"{"policy":"day","key":"a"}"#;
    let mut connection = Connection::open(served.addr).unwrap();
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    assert_eq!(connection.exchange(head).unwrap().status, 100);
    assert_eq!(connection.exchange(body).unwrap().status, 200);
}

#[test]
fn a_body_that_is_cut_short_changes_nothing() {
    let served = served();
    let mut connection = Connection::open(served.addr).unwrap();
    connection
        .send("POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{\"policy\":\"day\",\"key\":\"a\"}")
        .unwrap();
    connection.finish_sending().unwrap();
    let rest = String::from_utf8(connection.receive_rest().unwrap()).unwrap();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400"), "{rest}");
    assert_eq!(served.remaining("day"), 5);
}

#[test]
fn a_body_that_is_announced_too_large_is_refused_unread() {
    let served = served();
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n";
    let response = exchange(served.addr, head).unwrap();
    assert_eq!(response.status, 413);
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_head_request_has_no_body() {
    let served = served();
    let mut connection = Connection::open(served.addr).unwrap();
    connection.send("HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let response = connection.receive_to_head().unwrap();
    assert_eq!((response.status, response.body.len()), (200, 0));
    assert_eq!(
        connection.exchange("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().status,
        200
    );
}

// covers: A9
#[test]
fn a_client_that_hangs_up_gives_its_place_back() {
    let served = served();
    let body = r#"{"policy":"minute","key":"a","max_wait_ms":600000}"#;
    assert!(post_json(served.addr, "/v1/acquire", body).unwrap().text().contains("true"));
    let minute = Duration::from_secs(60);

    let mut waiting = Connection::open(served.addr).unwrap();
    waiting.send(json_request(served.addr, "/v1/acquire", body)).unwrap();
    wait_until(PATIENCE, || served.retry_after("minute") > minute).unwrap();
    drop(waiting);
    wait_until(PATIENCE, || served.retry_after("minute") <= minute).unwrap();
}
