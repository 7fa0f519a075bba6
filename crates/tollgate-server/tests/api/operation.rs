//! What operators ask for, and what every answer has.

use expect_test::expect;
use http::{Method, Request};
use http_body_util::Full;

use crate::service::service;

// part of: G5
#[tokio::test(start_paused = true)]
async fn alive_is_not_ready() {
    let service = service();
    assert_eq!(service.get("/healthz").await.body, "alive\n");
    assert_eq!(service.get("/readyz").await.problem(503), "The service is still starting.");

    service.readiness.ready();
    let ready = service.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), &*ready.body), (200, "ready\n"));

    service.readiness.draining();
    assert_eq!(
        service.get("/readyz").await.problem(503),
        "The service is draining and takes no new work."
    );
    assert_eq!(service.get("/healthz").await.body, "alive\n");
    assert_eq!(service.remaining("a").await, 15, "who drains still answers");
}

// part of: G1
#[tokio::test(start_paused = true)]
async fn decisions_are_counted_by_policy_and_endpoint() {
    let service = service();
    for _ in 0..3 {
        service.post("/v1/check", r#"{"policy":"one","key":"a"}"#).await;
        service.post("/v1/check", r#"{"policy":"one","key":"a","cost":0}"#).await;
        service.post("/v1/check", r#"{"policy":"rehearsed","key":"a"}"#).await;
    }
    let batch = r#"{"checks":[{"policy":"orders","key":"a"},{"policy":"one","key":"a"}]}"#;
    service.post("/v1/check/batch", batch).await;
    service.post("/v1/acquire", r#"{"policy":"closed","key":"a"}"#).await;
    service.post("/v1/check", r#"{"policy":"none","key":"a"}"#).await.problem(404);

    let page = service.get("/metrics").await;
    assert_eq!(page.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let counted: Vec<_> = page
        .body
        .lines()
        .filter(|line| line.starts_with("ratelimit_requests") && !line.ends_with(" 0"))
        .collect();
    expect![[r#"
        ratelimit_requests_total{tier="closed",endpoint="/v1/acquire"} 1
        ratelimit_requests_total{tier="one",endpoint="/v1/check"} 3
        ratelimit_requests_total{tier="one",endpoint="/v1/check/batch"} 1
        ratelimit_requests_total{tier="orders",endpoint="/v1/check/batch"} 1
        ratelimit_requests_total{tier="rehearsed",endpoint="/v1/check"} 3
        ratelimit_requests_limited_total{tier="closed",endpoint="/v1/acquire"} 1
        ratelimit_requests_limited_total{tier="one",endpoint="/v1/check"} 2
        ratelimit_requests_limited_total{tier="one",endpoint="/v1/check/batch"} 1
        ratelimit_requests_dry_run_limited_total{tier="rehearsed",endpoint="/v1/check"} 2
    "#]]
    .assert_eq(&(counted.join("\n") + "\n"));
    // A batch is decided in one step.
    assert!(page.body.contains("ratelimit_decision_duration_seconds_count 10\n"), "{}", page.body);
}

// part of: G1
#[tokio::test(start_paused = true)]
async fn policies_are_on_the_page_before_anybody_asks() {
    let service = service();
    let page = service.get("/metrics").await.body;
    assert!(page.contains("ratelimit_requests_total{tier=\"orders\",endpoint=\"/v1/check\"} 0\n"));
    service.engine.replace(crate::service::rules("policies: [{id: new, limits: []}]"));
    let page = service.get("/metrics").await.body;
    assert!(page.contains("ratelimit_requests_total{tier=\"new\",endpoint=\"/v1/check\"} 0\n"));
}

#[tokio::test(start_paused = true)]
async fn a_scraper_that_asks_for_openmetrics_gets_it() {
    let request = Request::get("/metrics").header("accept", "application/openmetrics-text");
    let answer = service().send(request.body(Full::default()).unwrap()).await;
    assert!(answer.body.ends_with("# EOF\n"));
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_sees_what_is_here() {
    let answer = service().get("/").await;
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    for path in ["/v1/check", "/v1/acquire", "/openapi.json", "/metrics", "/readyz"] {
        assert!(answer.body.contains(path), "{path}");
    }
}

// covers: C6
#[tokio::test(start_paused = true)]
async fn an_answer_is_found_again_by_its_correlation_id() {
    let service = service();
    for (path, body) in
        [("/v1/check", r#"{"policy":"orders","key":"a"}"#), ("/v1/check", "?"), ("/none", "")]
    {
        for (sent, kept) in [("order-17", true), ("two words", false)] {
            let request = Request::post(path).header("x-correlation-id", sent);
            let answer = service.send(request.body(Full::from(body)).unwrap()).await;
            let id = answer.headers["x-correlation-id"].to_str().unwrap();
            assert_eq!(id == sent, kept);
            if answer.status != 200 {
                assert_eq!(answer.json()["correlationId"], id);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_method_is_told_the_right_ones() {
    let service = service();
    for (method, path, allow) in [
        (Method::GET, "/v1/check", "POST"),
        (Method::HEAD, "/v1/check", "POST"),
        (Method::PUT, "/v1/check/batch", "POST"),
        (Method::DELETE, "/v1/acquire", "POST"),
        (Method::OPTIONS, "/v1/refund", "POST"),
        (Method::POST, "/v1/keys/orders/a", "GET, HEAD, DELETE"),
        (Method::POST, "/metrics", "GET, HEAD"),
        (Method::DELETE, "/", "GET, HEAD"),
    ] {
        let answer = service.ask(method, path, r#"{"policy":"orders","key":"a"}"#).await;
        assert_eq!(answer.problem(405), format!("This path is served with {allow}."));
        assert_eq!(answer.headers["allow"], allow);
    }
    assert_eq!(service.remaining("a").await, 15);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_path_is_not_found() {
    let service = service();
    for path in ["/v1/checks", "/v1/check/", "/v1/keys/orders", "/favicon.ico", "/v1/CHECK"] {
        assert_eq!(
            service.post(path, r#"{"policy":"orders","key":"a"}"#).await.problem(404),
            "Nothing is served at this path; GET / lists what is."
        );
    }
}
