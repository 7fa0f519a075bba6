//! `POST /v1/check/batch`.

use expect_test::expect;

use crate::service::service;

#[tokio::test(start_paused = true)]
async fn answers_come_in_the_order_of_the_checks() {
    service()
        .expect(
            "/v1/check/batch",
            r#"{"checks":[
                {"policy":"one","key":"b"},
                {"policy":"orders","key":"a","cost":3},
                {"policy":"one","key":"b"},
                {"policy":"orders","key":"a","cost":0}
            ]}"#,
            expect![[r#"{"results":[{"allowed":true,"policy":"one","limit":1,"remaining":0,"retry_after_ms":0,"reset_after_ms":100},{"allowed":true,"policy":"orders","limit":15,"remaining":12,"retry_after_ms":0,"reset_after_ms":300},{"allowed":false,"policy":"one","limit":1,"remaining":0,"retry_after_ms":100,"reset_after_ms":100,"limited_by":"one"},{"allowed":true,"policy":"orders","limit":15,"remaining":12,"retry_after_ms":0,"reset_after_ms":300}]}"#]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_batch_has_no_results() {
    service().expect("/v1/check/batch", r#"{"checks":[]}"#, expect![[r#"{"results":[]}"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_checks_are_answered_and_one_more_is_not() {
    let service = service();
    let batch = |count| {
        let checks = vec![r#"{"policy":"orders","key":"a"}"#; count].join(",");
        format!(r#"{{"checks":[{checks}]}}"#)
    };
    let detail = service.post("/v1/check/batch", batch(1_001)).await.problem(400);
    expect![
        "The body is wrong at line 1, column 30041: more than 1000 checks: send several batches."
    ]
    .assert_eq(&detail);
    assert_eq!(service.remaining("a").await, 15);

    let answer = service.post("/v1/check/batch", batch(1_000)).await.json();
    let results = answer["results"].as_array().unwrap();
    let allowed: Vec<_> = results.iter().map(|one| one["allowed"] == true).collect();
    assert_eq!(allowed.len(), 1_000);
    assert!(allowed[..15].iter().all(|allowed| *allowed));
    assert!(!allowed[15..].iter().any(|allowed| *allowed));
}

/// Whatever is wrong with one check, none is decided.
// covers: A12
#[tokio::test(start_paused = true)]
async fn a_mistake_in_one_check_leaves_all_undecided() {
    let service = service();
    for (wrong, expected) in [
        (
            r#"{"policy":"none","key":"a"}"#,
            expect![[r#"Nothing was decided. checks[1]: there is no policy "none"."#]],
        ),
        (
            r#"{"policy":"none","key":"a"},{"policy":"orders","key":"a"},{"policy":"nil","key":"a"}"#,
            expect![[
                r#"Nothing was decided. checks[1]: there is no policy "none"; checks[3]: there is no policy "nil"."#
            ]],
        ),
        (
            r#"{"policy":"orders","key":""}"#,
            expect![
                "The body is wrong at line 1, column 69: checks[1]: the key is empty: name whom to count."
            ],
        ),
        (
            r#"{"policy":"orders","key":"a","cost":-1}"#,
            expect![
                "The body is wrong at line 1, column 79: checks[1]: invalid value: integer `-1`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            r#"{"policy":"orders","key":"a","max_wait_ms":1}"#,
            expect![
                "The body is wrong at line 1, column 83: checks[1]: unknown field `max_wait_ms`, expected one of `policy`, `key`, `cost`."
            ],
        ),
        (
            "7",
            expect![
                "The body is wrong at line 1, column 42: checks[1]: invalid type: integer `7`, expected an object with `policy` and `key`."
            ],
        ),
    ] {
        let body = format!(r#"{{"checks":[{{"policy":"orders","key":"a"}},{wrong}]}}"#);
        expected.assert_eq(&service.post("/v1/check/batch", body).await.problem(400));
        assert_eq!(service.remaining("a").await, 15);
    }
}

#[tokio::test(start_paused = true)]
async fn each_check_of_a_batch_holds_its_own_lease() {
    let service = service();
    let body = r#"{"checks":[{"policy":"in-flight","key":"a"},{"policy":"in-flight","key":"a"},{"policy":"in-flight","key":"a"}]}"#;
    let answer = service.post("/v1/check/batch", body).await.json();
    let leases: Vec<_> = [0, 1, 2].map(|at| answer["results"][at]["lease"].clone()).into();
    assert!(leases[0].is_string() && leases[1].is_string() && leases[0] != leases[1]);
    assert!(leases[2].is_null());
}
