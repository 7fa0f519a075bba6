//! `POST /v1/check`.

use expect_test::expect;

use crate::service::{pass, service};

const ORDERS: &str = r#"{"policy":"orders","key":"192.168.1.100","cost":1}"#;

// covers: A8
#[tokio::test(start_paused = true)]
async fn a_decision_says_what_is_left_and_when_to_come_back() {
    let service = service();
    service
        .expect(
            "/v1/check",
            ORDERS,
            expect![[r#"{"allowed":true,"policy":"orders","limit":15,"remaining":14,"retry_after_ms":0,"reset_after_ms":100}"#]],
        )
        .await;
    service
        .expect(
            "/v1/check",
            r#"{"policy":"orders","key":"192.168.1.100","cost":14}"#,
            expect![[r#"{"allowed":true,"policy":"orders","limit":15,"remaining":0,"retry_after_ms":0,"reset_after_ms":1500}"#]],
        )
        .await;
    service
        .expect(
            "/v1/check",
            ORDERS,
            expect![[r#"{"allowed":false,"policy":"orders","limit":15,"remaining":0,"retry_after_ms":100,"reset_after_ms":1500,"limited_by":"orders"}"#]],
        )
        .await;
    pass(100).await;
    service
        .expect(
            "/v1/check",
            ORDERS,
            expect![[r#"{"allowed":true,"policy":"orders","limit":15,"remaining":0,"retry_after_ms":0,"reset_after_ms":1500}"#]],
        )
        .await;
}

// covers: A9
#[tokio::test(start_paused = true)]
async fn a_cost_of_0_looks_and_takes_nothing() {
    let service = service();
    let look = r#"{"policy":"one","key":"a","cost":0}"#;
    for _ in 0..3 {
        service
            .expect(
                "/v1/check",
                look,
                expect![[r#"{"allowed":true,"policy":"one","limit":1,"remaining":1,"retry_after_ms":0,"reset_after_ms":0}"#]],
            )
            .await;
    }
    service.post("/v1/check", r#"{"policy":"one","key":"a"}"#).await;
    service
        .expect(
            "/v1/check",
            look,
            expect![[r#"{"allowed":false,"policy":"one","limit":1,"remaining":0,"retry_after_ms":100,"reset_after_ms":100,"limited_by":"one"}"#]],
        )
        .await;
}

// covers: A9
#[tokio::test(start_paused = true)]
async fn a_cost_above_the_capacity_never_passes() {
    let service = service();
    service
        .expect(
            "/v1/check",
            r#"{"policy":"orders","key":"a","cost":16}"#,
            expect![[r#"{"allowed":false,"policy":"orders","limit":15,"remaining":15,"retry_after_ms":null,"reset_after_ms":0,"never":true,"limited_by":"orders"}"#]],
        )
        .await;
    service
        .expect(
            "/v1/check",
            r#"{"policy":"orders","key":"a","cost":9007199254740992}"#,
            expect![[r#"{"allowed":false,"policy":"orders","limit":15,"remaining":15,"retry_after_ms":null,"reset_after_ms":0,"never":true,"limited_by":"orders"}"#]],
        )
        .await;
}

// covers: A12
#[tokio::test(start_paused = true)]
async fn a_limit_of_0_refuses_everything_and_no_limit_nothing() {
    let service = service();
    service
        .expect(
            "/v1/check",
            r#"{"policy":"closed","key":"a"}"#,
            expect![[r#"{"allowed":false,"policy":"closed","limit":0,"remaining":0,"retry_after_ms":null,"reset_after_ms":0,"never":true,"limited_by":"closed"}"#]],
        )
        .await;
    service
        .expect(
            "/v1/check",
            r#"{"policy":"free","key":"a","cost":1000000}"#,
            expect![[r#"{"allowed":true,"policy":"free","limit":null,"remaining":null,"retry_after_ms":0,"reset_after_ms":0}"#]],
        )
        .await;
}

// covers: A12
#[tokio::test(start_paused = true)]
async fn a_refusal_takes_nothing_and_names_which_of_several_limits_it_was() {
    let service = service();
    let body = r#"{"policy":"several","key":"a"}"#;
    for remaining in [1, 0] {
        assert_eq!(service.post("/v1/check", body).await.json()["remaining"], remaining);
    }
    for _ in 0..10 {
        service
            .expect(
                "/v1/check",
                body,
                expect![[r#"{"allowed":false,"policy":"several","limit":2,"remaining":0,"retry_after_ms":100,"reset_after_ms":200,"limited_by":"several","limit_index":0,"algorithm":"token_bucket"}"#]],
            )
            .await;
    }
    let state = service.get("/v1/keys/several/a").await.json();
    assert_eq!(state["limits"][1]["remaining"], 98, "the day was charged for refusals");

    for _ in 0..98 {
        pass(100).await;
        assert_eq!(service.post("/v1/check", body).await.json()["allowed"], true);
    }
    pass(100).await;
    let refused = service.post("/v1/check", body).await.json();
    assert_eq!(refused["limit_index"], 1);
    assert_eq!(refused["algorithm"], "fixed_window");
}

#[tokio::test(start_paused = true)]
async fn a_policy_in_dry_run_refuses_nothing_and_says_what_it_would_have_done() {
    let service = service();
    let body = r#"{"policy":"rehearsed","key":"a"}"#;
    service
        .expect(
            "/v1/check",
            body,
            expect![[r#"{"allowed":true,"policy":"rehearsed","limit":1,"remaining":0,"retry_after_ms":0,"reset_after_ms":60000,"dry_run":true,"would_allow":true}"#]],
        )
        .await;
    service
        .expect(
            "/v1/check",
            body,
            expect![[r#"{"allowed":true,"policy":"rehearsed","limit":1,"remaining":0,"retry_after_ms":60000,"reset_after_ms":60000,"dry_run":true,"would_allow":false}"#]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn milliseconds_are_rounded_up() {
    let service = service();
    let body = r#"{"policy":"third","key":"a"}"#;
    service.post("/v1/check", body).await;
    let refused = service.post("/v1/check", body).await.json();
    assert_eq!(refused["retry_after_ms"], 334);
    pass(334).await;
    assert_eq!(service.post("/v1/check", body).await.json()["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn places_in_flight_are_held_under_a_lease() {
    let service = service();
    let body = r#"{"policy":"in-flight","key":"a"}"#;
    let first = service.post("/v1/check", body).await.json();
    let second = service.post("/v1/check", body).await.json();
    assert_ne!(first["lease"].as_str().unwrap(), second["lease"].as_str().unwrap());
    let refused = service.post("/v1/check", body).await.json();
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["retry_after_ms"], 30_000);
    assert_eq!(refused.get("lease"), None);

    pass(30_000).await;
    assert_eq!(service.post("/v1/check", body).await.json()["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn escapes_in_names_mean_what_they_stand_for() {
    let service = service();
    let escaped = r#" { "\u006bey" : "192.168.1.1\u00300", "policy":"ord\u0065rs" } "#;
    service.post("/v1/check", escaped).await;
    assert_eq!(service.remaining("192.168.1.100").await, 14);
}

#[tokio::test(start_paused = true)]
async fn new_rules_hold_from_the_next_question_on() {
    let service = service();
    let body = r#"{"policy":"new","key":"a"}"#;
    assert_eq!(service.post("/v1/check", body).await.problem(404), "There is no policy \"new\".");
    service.engine.replace(crate::service::rules(
        "policies: [{id: new, limits: [{algorithm: fixed_window, rate: 3/s}]}]",
    ));
    assert_eq!(service.post("/v1/check", body).await.json()["limit"], 3);
    let gone = r#"{"policy":"orders","key":"a"}"#;
    service.post("/v1/check", gone).await.problem(404);
}
