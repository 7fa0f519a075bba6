//! `GET` and `DELETE /v1/keys/{policy}/{key}`.

use expect_test::expect;
use http::Method;

use crate::service::service;

// covers: A8
#[tokio::test(start_paused = true)]
async fn a_key_is_shown_without_changing_it() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"several","key":"a","cost":2}"#).await;
    for _ in 0..3 {
        let answer = service.get("/v1/keys/several/a").await;
        assert_eq!(answer.headers["content-type"], "application/json");
        expect![[r#"{"policy":"several","key":"a","limits":[{"algorithm":"token_bucket","limit":2,"remaining":0,"retry_after_ms":100,"reset_after_ms":200},{"algorithm":"fixed_window","limit":100,"remaining":98,"retry_after_ms":0,"reset_after_ms":86400000}]}"#]]
            .assert_eq(&answer.body);
    }
    expect![[r#"{"policy":"free","key":"a","limits":[]}"#]]
        .assert_eq(&service.get("/v1/keys/free/a").await.body);
    expect![[r#"{"policy":"closed","key":"a","limits":[{"algorithm":"token_bucket","limit":0,"remaining":0,"retry_after_ms":null,"reset_after_ms":0,"never":true}]}"#]]
        .assert_eq(&service.get("/v1/keys/closed/a").await.body);
}

// covers: A9
#[tokio::test(start_paused = true)]
async fn a_key_that_is_forgotten_is_as_new() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"orders","key":"a","cost":15}"#).await;
    service.post("/v1/check", r#"{"policy":"orders","key":"b","cost":15}"#).await;
    let answer = service.ask(Method::DELETE, "/v1/keys/orders/a", "").await;
    assert_eq!((answer.status.as_u16(), &*answer.body), (204, ""));
    assert_eq!(answer.headers.get("content-type"), None);
    assert_eq!(service.remaining("a").await, 15);
    assert_eq!(service.remaining("b").await, 0);
    let unknown = service.ask(Method::DELETE, "/v1/keys/orders/never-seen", "").await;
    assert_eq!(unknown.status, 204);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_a_path_is_percent_decoded() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"orders","key":"a/\"ü\" +?"}"#).await;
    let answer = service.get("/v1/keys/%6Frders/a%2F%22%C3%BC%22%20+%3F?ignored").await;
    let state = answer.json();
    assert_eq!(state["key"], "a/\"ü\" +?");
    assert_eq!(state["limits"][0]["remaining"], 14);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_path_is_named() {
    let service = service();
    let long = format!("/v1/keys/orders/{}", "x".repeat(4_097));
    for (path, status, expected) in [
        ("/v1/keys/none/a", 404, "There is no policy \"none\"."),
        ("/v1/keys/orders/", 400, "The key is empty: name whom to count."),
        (&long, 400, "The key has 4097 bytes: at most 4096."),
        ("/v1/keys/orders/%FF", 400, "The key in the path is not UTF-8."),
        (
            "/v1/keys/orders/a%2",
            400,
            "The key in the path has a % that no two hexadecimal digits follow.",
        ),
        ("/v1/keys/%C3/a", 400, "The policy in the path is not UTF-8."),
        (
            "/v1/keys/orders/a/b",
            404,
            "Nothing is served at this path. A slash in a key is written as %2F.",
        ),
    ] {
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(service.ask(method, path, "").await.problem(status), expected);
        }
    }
}
