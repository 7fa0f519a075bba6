//! A service in the test's hand: its policies, its time, and how to ask it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use expect_test::Expect;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;
use tollgate_core::{Clock, Time};
use tollgate_engine::{Engine, Rules};
use tollgate_rules::read;
use tollgate_server::{Api, ApiSettings, Readiness};
use tollgate_store::{MemoryConfig, MemoryStore};
use tollgate_telemetry::Metrics;

pub(crate) const POLICIES: &str = r#"
policies:
  - {id: orders, limits: [{algorithm: token_bucket, rate: 10/s, burst: 15}]}
  - id: several
    limits:
      - {algorithm: token_bucket, rate: 10/s, burst: 2}
      - {algorithm: fixed_window, rate: 100/day}
  - {id: in-flight, limits: [{algorithm: concurrency, limit: 2, lease: 30s}]}
  - {id: rehearsed, enforce: false, limits: [{algorithm: fixed_window, rate: 1/min}]}
  - {id: closed, limits: [{algorithm: token_bucket, rate: 0/s, burst: 0}]}
  - {id: free, limits: []}
  - {id: one, limits: [{algorithm: token_bucket, rate: 10/s, burst: 1}]}
  - {id: third, limits: [{algorithm: token_bucket, rate: 3/s, burst: 1}]}
"#;

pub(crate) struct Service {
    pub(crate) api: Arc<Api>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) readiness: Readiness,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// The runtime's time from a midnight on: a test that runs with paused time moves both at once.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Time {
        Time::from_secs(1_794_787_200).after(self.0.elapsed())
    }
}

pub(crate) fn rules(text: &str) -> Rules {
    let config = read("test.yaml", text, &|_| None);
    Rules::new(config.unwrap_or_else(|mistakes| panic!("{mistakes}")).rules, 64)
}

pub(crate) fn service() -> Service {
    service_of(POLICIES)
}

pub(crate) fn service_of(policies: &str) -> Service {
    service_with(policies, &ApiSettings::default())
}

pub(crate) fn service_with(policies: &str, settings: &ApiSettings) -> Service {
    let clock = Arc::new(RuntimeClock(Instant::now()));
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), clock));
    let engine = Arc::new(Engine::new(store, rules(policies)));
    let readiness = Readiness::default();
    let metrics = Arc::new(Metrics::new());
    let api = Api::new(engine.clone(), metrics, readiness.clone(), settings);
    Service { api, engine, readiness }
}

impl Service {
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let (head, body) = self.api.answer(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.into()).unwrap();
        assert_eq!(head.headers["x-content-type-options"], "nosniff");
        assert!(head.headers.contains_key("x-correlation-id"));
        Answer { status: head.status, headers: head.headers, body }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(Full::new(body.into())).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.ask(Method::POST, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "").await
    }

    /// Posts and expects this body with status 200.
    pub(crate) async fn expect(&self, path: &str, body: &str, expected: Expect) {
        let answer = self.post(path, body.to_owned()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert!(answer.json().is_object());
        expected.assert_eq(&answer.body);
    }

    /// What is left of `orders` for this key.
    pub(crate) async fn remaining(&self, key: &str) -> u64 {
        let look = format!(r#"{{"policy":"orders","key":"{key}","cost":0}}"#);
        self.post("/v1/check", look).await.json()["remaining"].as_u64().unwrap()
    }
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The detail of a problem document with this status.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let document = self.json();
        assert_eq!(document["status"], status);
        assert_eq!(document["type"], "about:blank");
        assert_eq!(document["title"], self.status.canonical_reason().unwrap());
        assert_eq!(document["correlationId"], self.headers["x-correlation-id"].to_str().unwrap());
        document["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn pass(milliseconds: u64) {
    tokio::time::advance(Duration::from_millis(milliseconds)).await;
}
