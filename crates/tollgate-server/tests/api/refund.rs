//! `POST /v1/refund`.

use expect_test::expect;

use crate::service::service;

// covers: A9
#[tokio::test(start_paused = true)]
async fn what_was_taken_can_be_given_back_and_no_more() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"orders","key":"a","cost":5}"#).await;
    service
        .expect(
            "/v1/refund",
            r#"{"policy":"orders","key":"a"}"#,
            expect![[r#"{"allowed":true,"policy":"orders","limit":15,"remaining":11,"retry_after_ms":0,"reset_after_ms":400}"#]],
        )
        .await;
    service
        .expect(
            "/v1/refund",
            r#"{"policy":"orders","key":"a","cost":1000}"#,
            expect![[r#"{"allowed":true,"policy":"orders","limit":15,"remaining":15,"retry_after_ms":0,"reset_after_ms":0}"#]],
        )
        .await;
    service
        .expect(
            "/v1/refund",
            r#"{"policy":"free","key":"a"}"#,
            expect![[r#"{"allowed":true,"policy":"free","limit":null,"remaining":null,"retry_after_ms":0,"reset_after_ms":0}"#]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_once() {
    let service = service();
    let take = r#"{"policy":"in-flight","key":"a"}"#;
    let lease = service.post("/v1/check", take).await.json()["lease"].clone();
    service.post("/v1/check", take).await;
    let release = format!(r#"{{"policy":"in-flight","key":"a","lease":{lease}}}"#);
    for _ in 0..3 {
        service
            .expect(
                "/v1/refund",
                &release,
                expect![[r#"{"allowed":true,"policy":"in-flight","limit":2,"remaining":1,"retry_after_ms":0,"reset_after_ms":30000}"#]],
            )
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_goes_back_whole() {
    let service = service();
    let both = r#"{"policy":"in-flight","key":"a","lease":"1","cost":1}"#;
    assert_eq!(
        service.post("/v1/refund", both).await.problem(400),
        "The body has both `cost` and `lease`: a lease is given back whole."
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_the_text_that_was_given() {
    let service = service();
    for wrong in [r#""""#, r#""+1""#, r#""x""#, r#""-1""#, r#""99999999999999999999""#, "1", "null"]
    {
        let body = format!(r#"{{"policy":"in-flight","key":"a","lease":{wrong}}}"#);
        let detail = service.post("/v1/refund", body).await.problem(400);
        let expected = "expected `lease` to be the string that came with the decision.";
        assert!(detail.ends_with(expected), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_to_a_policy_in_dry_run_refuses_nothing_either() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"rehearsed","key":"a"}"#).await;
    let body = r#"{"policy":"rehearsed","key":"a","cost":0}"#;
    service
        .expect(
            "/v1/refund",
            body,
            expect![[r#"{"allowed":true,"policy":"rehearsed","limit":1,"remaining":0,"retry_after_ms":60000,"reset_after_ms":60000,"dry_run":true,"would_allow":false}"#]],
        )
        .await;
}
