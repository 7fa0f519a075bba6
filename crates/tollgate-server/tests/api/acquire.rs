//! `POST /v1/acquire`.

use std::{pin::pin, time::Duration};

use expect_test::expect;
use tokio::time::timeout;
use tollgate_server::ApiSettings;

use crate::service::{POLICIES, pass, service, service_with};

const ONE: &str = r#"{"policy":"one","key":"a","max_wait_ms":1000}"#;

// covers: A9
#[tokio::test(start_paused = true)]
async fn a_caller_waits_for_its_turn() {
    let service = service();
    service
        .expect(
            "/v1/acquire",
            ONE,
            expect![[r#"{"allowed":true,"policy":"one","limit":1,"remaining":0,"retry_after_ms":0,"reset_after_ms":100,"waited_ms":0}"#]],
        )
        .await;
    service
        .expect(
            "/v1/acquire",
            ONE,
            expect![[r#"{"allowed":true,"policy":"one","limit":1,"remaining":0,"retry_after_ms":0,"reset_after_ms":200,"waited_ms":100}"#]],
        )
        .await;
}

// covers: A9
#[tokio::test(start_paused = true)]
async fn who_would_wait_too_long_is_refused_at_once() {
    let service = service();
    service.post("/v1/check", r#"{"policy":"one","key":"a"}"#).await;
    let impatient = r#"{"policy":"one","key":"a","max_wait_ms":99}"#;
    service
        .expect(
            "/v1/acquire",
            impatient,
            expect![[r#"{"allowed":false,"policy":"one","limit":1,"remaining":0,"retry_after_ms":100,"reset_after_ms":100,"limited_by":"one","waited_ms":0}"#]],
        )
        .await;
    service
        .expect(
            "/v1/acquire",
            r#"{"policy":"one","key":"a","cost":2}"#,
            expect![[r#"{"allowed":false,"policy":"one","limit":1,"remaining":0,"retry_after_ms":null,"reset_after_ms":100,"never":true,"limited_by":"one","waited_ms":0}"#]],
        )
        .await;
}

// covers: A9
#[tokio::test(start_paused = true)]
async fn hanging_up_gives_the_place_back() {
    let service = service();
    service.post("/v1/acquire", ONE).await;
    {
        let mut leaving = pin!(service.post("/v1/acquire", ONE));
        assert!(timeout(Duration::from_millis(50), &mut leaving).await.is_err());
    }
    let next = service.post("/v1/acquire", ONE).await.json();
    assert_eq!(next["waited_ms"], 50, "the place of who left is not free");
}

#[tokio::test(start_paused = true)]
async fn a_place_in_flight_that_is_given_back_goes_to_who_waits() {
    let service = service();
    let take = r#"{"policy":"in-flight","key":"a"}"#;
    let held = service.post("/v1/check", take).await.json();
    service.post("/v1/check", take).await;
    let mut waiting = pin!(
        service.post("/v1/acquire", r#"{"policy":"in-flight","key":"a","max_wait_ms":60000}"#)
    );
    assert!(timeout(Duration::from_millis(70), &mut waiting).await.is_err());
    let lease = held["lease"].as_str().unwrap();
    let release = format!(r#"{{"policy":"in-flight","key":"a","lease":"{lease}"}}"#);
    service.post("/v1/refund", release).await;
    let taken = waiting.await.json();
    assert_eq!(taken["allowed"], true);
    assert_eq!(taken["waited_ms"], 70);
    assert!(taken["lease"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_policy_in_dry_run_makes_nobody_wait() {
    let service = service();
    let body = r#"{"policy":"rehearsed","key":"a","max_wait_ms":600000}"#;
    service.post("/v1/acquire", body).await;
    service
        .expect(
            "/v1/acquire",
            body,
            expect![[r#"{"allowed":true,"policy":"rehearsed","limit":1,"remaining":0,"retry_after_ms":60000,"reset_after_ms":60000,"dry_run":true,"would_allow":false,"waited_ms":0}"#]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait_at_once() {
    let service = service_with(POLICIES, &ApiSettings { waiters_max: 1 });
    service.post("/v1/acquire", ONE).await;
    let mut waiting = pin!(service.post("/v1/acquire", ONE));
    assert!(timeout(Duration::from_millis(10), &mut waiting).await.is_err());
    let turned_away = service.post("/v1/acquire", ONE).await;
    assert_eq!(turned_away.problem(503), "Too many callers are waiting for their turn already.");
    assert_eq!(turned_away.headers["retry-after"], "1");
    assert_eq!(waiting.await.json()["allowed"], true);

    pass(1_000).await;
    assert_eq!(service.post("/v1/acquire", ONE).await.json()["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_say_how_long_waits_two_seconds() {
    let service = service();
    let plain = r#"{"policy":"one","key":"a"}"#;
    for waited in [0, 100] {
        assert_eq!(service.post("/v1/acquire", plain).await.json()["waited_ms"], waited);
    }
    let long = r#"{"policy":"one","key":"b","max_wait_ms":600000}"#;
    let queue: Vec<_> = (0..21).map(|_| service.post("/v1/acquire", long)).collect();
    let mut waiting = pin!(all(queue));
    assert!(timeout(Duration::from_millis(1), &mut waiting).await.is_err());
    let refused = service.post("/v1/acquire", r#"{"policy":"one","key":"b"}"#).await.json();
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["retry_after_ms"], 2_099);
}

/// Starts all at once, in order, and waits for them.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => {
                done.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}
