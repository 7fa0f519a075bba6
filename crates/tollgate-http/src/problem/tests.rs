use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tollgate_core::{Rate, Time, Unit};

use super::*;

fn refused(retry_after: Wait) -> Decision {
    Decision {
        allowed: false,
        limit: 15,
        remaining: 0,
        retry_after,
        reset_after: Duration::from_secs(2),
        wait: Duration::ZERO,
        at: Time::from_secs(1_700_000_000),
        shown: 0,
    }
}

fn bucket() -> Limit {
    Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap()
}

/// Shown with a line per member; the document itself has no line breaks.
#[track_caller]
fn check(body: &[u8], expected: Expect) {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert!(value.is_object());
    let text = std::str::from_utf8(body).unwrap();
    expected.assert_eq(&text.replace(",\"", ",\n\""));
}

// covers: C5
#[test]
fn a_refusal_says_why_and_when_to_come_back() {
    let wait = Wait::For(Duration::from_micros(2_100_001));
    check(
        &QuotaExceeded::new("orders", &bucket()).body(&refused(wait), "abc"),
        expect![[r#"
            {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title":"Too Many Requests",
            "status":429,
            "detail":"Rate limit exceeded. Try again in 3 seconds.",
            "correlationId":"abc",
            "policy":"orders",
            "violated-policies":["orders"],
            "algorithm":"token_bucket",
            "rate":"10/s",
            "limit":15,
            "remaining":0,
            "retryAfter":3,
            "retryAfterMs":2101}"#]],
    );
}

// covers: C5
#[test]
fn one_second_is_not_seconds() {
    let limit = Limit::concurrency(8, Duration::from_secs(30)).unwrap();
    check(
        &QuotaExceeded::new("in-flight", &limit).body(&refused(Wait::ZERO), "abc"),
        expect![[r#"
            {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title":"Too Many Requests",
            "status":429,
            "detail":"Rate limit exceeded. Try again in 1 second.",
            "correlationId":"abc",
            "policy":"in-flight",
            "violated-policies":["in-flight"],
            "algorithm":"concurrency",
            "limit":8,
            "remaining":0,
            "retryAfter":1,
            "retryAfterMs":0}"#]],
    );
}

// covers: A9, C5
#[test]
fn what_can_never_pass_is_told_so() {
    check(
        &QuotaExceeded::new("orders", &bucket()).body(&refused(Wait::Never), "abc"),
        expect![[r#"
            {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title":"Too Many Requests",
            "status":429,
            "detail":"Rate limit exceeded. This request can never pass: its cost is above the limit's capacity.",
            "correlationId":"abc",
            "policy":"orders",
            "violated-policies":["orders"],
            "algorithm":"token_bucket",
            "rate":"10/s",
            "limit":15,
            "remaining":0}"#]],
    );
}

#[test]
fn other_problems_say_what_happened() {
    check(
        &Problem::of(StatusCode::GATEWAY_TIMEOUT).body("abc"),
        expect![[r#"
            {"type":"about:blank",
            "title":"Gateway Timeout",
            "status":504,
            "detail":"The upstream did not answer in time.",
            "correlationId":"abc"}"#]],
    );
    check(
        &Problem::new(StatusCode::NOT_FOUND, format!("No policy {:?}.", "a\nb")).body("abc"),
        expect![[r#"
            {"type":"about:blank",
            "title":"Not Found",
            "status":404,
            "detail":"No policy \"a\\nb\".",
            "correlationId":"abc"}"#]],
    );
}

#[test]
fn every_status_we_send_has_words_of_its_own() {
    let general = Problem::of(StatusCode::IM_A_TEAPOT).detail;
    for status in [400, 404, 405, 408, 413, 414, 417, 429, 431, 500, 502, 503, 504] {
        let problem = Problem::of(StatusCode::from_u16(status).unwrap());
        assert_ne!(problem.detail, general, "{status}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_out_of_the_document(
        policy in any::<String>(),
        detail in any::<String>(),
        correlation_id in any::<String>(),
        retry_after in prop_oneof![
            Just(Wait::Never),
            any::<Duration>().prop_map(Wait::For),
        ],
    ) {
        let body = QuotaExceeded::new(&policy, &bucket())
            .body(&refused(retry_after), &correlation_id);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(&value["policy"], &policy);
        prop_assert_eq!(&value["violated-policies"][0], &policy);
        prop_assert_eq!(&value["correlationId"], &correlation_id);
        prop_assert_eq!(value.get("retryAfter").is_none(), retry_after == Wait::Never);

        let body = Problem::new(StatusCode::BAD_REQUEST, &*detail).body(&correlation_id);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(&value["detail"], &detail);
        prop_assert_eq!(&value["correlationId"], &correlation_id);
        prop_assert_eq!(value.as_object().unwrap().len(), 5);
    }
}
