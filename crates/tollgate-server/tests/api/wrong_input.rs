//! Bodies that make no sense: each gets an error that names the mistake, and changes nothing.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::service::{Service, service};

async fn check(service: &Service, body: impl Into<Vec<u8>>, expected: Expect) {
    let body = body.into();
    for path in ["/v1/check", "/v1/acquire", "/v1/refund"] {
        let detail = service.post(path, body.clone()).await.problem(400);
        if path == "/v1/check" {
            expected.assert_eq(&detail);
        }
        assert_eq!(service.remaining("a").await, 10, "{detail}");
    }
}

/// A service where five of `orders` were taken: a mistaken refund would show too.
async fn used() -> Service {
    let service = service();
    service.post("/v1/check", r#"{"policy":"orders","key":"a","cost":5}"#).await;
    service
}

fn with(fields: &str) -> String {
    format!(r#"{{"policy":"orders","key":"a",{fields}}}"#)
}

// covers: A12
#[tokio::test(start_paused = true)]
async fn a_wrong_cost_is_refused() {
    let service = used().await;
    for (cost, expected) in [
        (
            "-1",
            expect![
                "The body is wrong at line 1, column 38: invalid value: integer `-1`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            "1.5",
            expect![
                "The body is wrong at line 1, column 39: invalid type: floating point `1.5`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        ("1e400", expect!["The body is wrong at line 1, column 41: number out of range."]),
        (
            "1e2",
            expect![
                "The body is wrong at line 1, column 39: invalid type: floating point `100.0`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            "9007199254740993",
            expect![
                "The body is wrong at line 1, column 52: invalid value: integer `9007199254740993`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            "18446744073709551616",
            expect![
                "The body is wrong at line 1, column 56: invalid type: floating point `1.8446744073709552e+19`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            "null",
            expect![
                "The body is wrong at line 1, column 40: invalid type: null, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            r#""1""#,
            expect![[
                r#"The body is wrong at line 1, column 39: invalid type: string "1", expected `cost` to be a whole number from 0 to 9007199254740992."#
            ]],
        ),
        (
            "[1]",
            expect![
                "The body is wrong at line 1, column 36: invalid type: sequence, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            "true",
            expect![
                "The body is wrong at line 1, column 40: invalid type: boolean `true`, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        ("01", expect!["The body is wrong at line 1, column 38: invalid number."]),
        ("NaN", expect!["The body is wrong at line 1, column 37: expected value."]),
    ] {
        check(&service, with(&format!(r#""cost":{cost}"#)), expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_or_policy_is_refused() {
    let service = used().await;
    let long = format!(r#"{{"policy":"orders","key":"{}"}}"#, "x".repeat(10 << 10));
    for (body, expected) in [
        (
            r#"{"policy":"orders","key":""}"#,
            expect![
                "The body is wrong at line 1, column 28: the key is empty: name whom to count."
            ],
        ),
        (
            &long,
            expect![
                "The body is wrong at line 1, column 10268: the key has 10240 bytes: at most 4096."
            ],
        ),
        (
            r#"{"policy":"orders","key":7}"#,
            expect![
                "The body is wrong at line 1, column 26: invalid type: integer `7`, expected `key` to be a string."
            ],
        ),
        (
            r#"{"policy":"orders","key":null}"#,
            expect![
                "The body is wrong at line 1, column 29: invalid type: null, expected `key` to be a string."
            ],
        ),
        (
            r#"{"policy":["orders"],"key":"a"}"#,
            expect![
                "The body is wrong at line 1, column 10: invalid type: sequence, expected `policy` to be a string."
            ],
        ),
        (
            r#"{"policy":{},"key":"a"}"#,
            expect![
                "The body is wrong at line 1, column 10: invalid type: map, expected `policy` to be a string."
            ],
        ),
        (
            r#"{"policy":"orders"}"#,
            expect!["The body is wrong at line 1, column 19: missing field `key`."],
        ),
        (
            r#"{"key":"a"}"#,
            expect!["The body is wrong at line 1, column 11: missing field `policy`."],
        ),
        ("{}", expect!["The body is wrong at line 1, column 2: missing field `policy`."]),
    ] {
        check(&service, body, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_of_4096_bytes_is_still_one() {
    let body = format!(r#"{{"policy":"orders","key":"{}"}}"#, "ü".repeat(2_048));
    assert_eq!(service().post("/v1/check", body).await.json()["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_unknown_or_twice_there_is_refused() {
    let service = used().await;
    let long = with(&format!(r#""{}":1"#, "x".repeat(20_000)));
    for (body, expected) in [
        (
            with(r#""costs":1"#),
            expect![
                "The body is wrong at line 1, column 36: unknown field `costs`, expected one of `policy`, `key`, `cost`."
            ],
        ),
        (
            with(r#""Cost":1"#),
            expect![
                "The body is wrong at line 1, column 35: unknown field `Cost`, expected one of `policy`, `key`, `cost`."
            ],
        ),
        (
            with(r#""cost":1,"cost":1"#),
            expect!["The body is wrong at line 1, column 47: duplicate field `cost`."],
        ),
        (
            with(r#""key":"b""#),
            expect!["The body is wrong at line 1, column 39: duplicate field `key`."],
        ),
        (
            with(r#""policy":"one""#),
            expect!["The body is wrong at line 1, column 44: duplicate field `policy`."],
        ),
        (
            long,
            expect![
                "The body is wrong at line 1, column 20031: unknown field `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, expected one of `policy`, `key`, `cost`."
            ],
        ),
    ] {
        check(&service, body, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_json_object_is_refused() {
    let service = used().await;
    let deep = "[".repeat(60_000);
    let deep_value = with(&format!(r#""cost":{}"#, "{\"a\":".repeat(10_000)));
    let deep_unknown = with(&format!(r#""x":{}"#, "[".repeat(10_000)));
    for (body, expected) in [
        ("", expect!["The body is wrong at line 1, column 0: EOF while parsing a value."]),
        ("?", expect!["The body is wrong at line 1, column 1: expected value."]),
        (
            "null",
            expect![
                "The body is wrong at line 1, column 4: invalid type: null, expected an object with `policy` and `key`."
            ],
        ),
        (
            r#"["orders","a",1]"#,
            expect![
                "The body is wrong at line 1, column 0: invalid type: sequence, expected an object with `policy` and `key`."
            ],
        ),
        (
            r#""orders""#,
            expect![[
                r#"The body is wrong at line 1, column 8: invalid type: string "orders", expected an object with `policy` and `key`."#
            ]],
        ),
        (
            r#"{"policy":"orders","key":"a""#,
            expect!["The body is wrong at line 1, column 28: EOF while parsing an object."],
        ),
        (
            r#"{"policy":"orders","key":"a"#,
            expect!["The body is wrong at line 1, column 27: EOF while parsing a string."],
        ),
        (
            r#"{"policy":"orders","key":"a",}"#,
            expect!["The body is wrong at line 1, column 30: trailing comma."],
        ),
        (
            r#"{"policy":"orders","key":"a"}{"#,
            expect!["The body is wrong at line 1, column 30: trailing characters."],
        ),
        (
            "{'policy':'orders','key':'a'}",
            expect!["The body is wrong at line 1, column 2: key must be a string."],
        ),
        ("policy=orders&key=a", expect!["The body is wrong at line 1, column 1: expected value."]),
        (
            "\u{feff}{\"policy\":\"orders\",\"key\":\"a\"}",
            expect!["The body is wrong at line 1, column 1: expected value."],
        ),
        (
            &deep,
            expect![
                "The body is wrong at line 1, column 0: invalid type: sequence, expected an object with `policy` and `key`."
            ],
        ),
        (
            &deep_value,
            expect![
                "The body is wrong at line 1, column 36: invalid type: map, expected `cost` to be a whole number from 0 to 9007199254740992."
            ],
        ),
        (
            &deep_unknown,
            expect![
                "The body is wrong at line 1, column 32: unknown field `x`, expected one of `policy`, `key`, `cost`."
            ],
        ),
        (
            r#"{"policy":"orders","key":"a\ud800"}"#,
            expect!["The body is wrong at line 1, column 34: unexpected end of hex escape."],
        ),
        (
            "{\"policy\":\"orders\",\"key\":\"a\nb\"}",
            expect![
                "The body is wrong at line 2, column 0: control character (\\u0000-\\u001F) found while parsing a string."
            ],
        ),
    ] {
        check(&service, body, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_utf_8_is_refused() {
    let service = used().await;
    for (body, expected) in [
        (
            &b"{\"policy\":\"orders\",\"key\":\"\xff\"}"[..],
            expect!["The body is wrong at line 1, column 27: invalid unicode code point."],
        ),
        (
            b"{\"policy\":\"orders\",\"key\":\"a\",\"\xc3\":1}",
            expect!["The body is wrong at line 1, column 31: invalid unicode code point."],
        ),
        (b"\xff\xfe", expect!["The body is wrong at line 1, column 1: expected value."]),
    ] {
        check(&service, body, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused() {
    let service = used().await;
    for (path, bytes_max) in [
        ("/v1/check", 64 << 10),
        ("/v1/acquire", 64 << 10),
        ("/v1/refund", 64 << 10),
        ("/v1/check/batch", 1 << 20),
    ] {
        let body = |bytes| {
            let mut body = br#"{"policy":"orders","key":"a","cost":0}"#.to_vec();
            body.resize(bytes, b' ');
            body
        };
        let detail = service.post(path, body(bytes_max + 1)).await.problem(413);
        assert_eq!(detail, format!("The body is too large: at most {bytes_max} bytes."));
        assert_ne!(service.post(path, body(bytes_max)).await.status, 413);
    }
    service.post("/v1/check", vec![b'x'; 70 << 10]).await.problem(413);
    assert_eq!(service.remaining("a").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_wait_is_refused() {
    let service = used().await;
    for (wait, expected) in [
        (
            "600001",
            expect![
                "The body is wrong at line 1, column 49: invalid value: integer `600001`, expected `max_wait_ms` to be a whole number from 0 to 600000."
            ],
        ),
        (
            "-1",
            expect![
                "The body is wrong at line 1, column 45: invalid value: integer `-1`, expected `max_wait_ms` to be a whole number from 0 to 600000."
            ],
        ),
        (
            "0.5",
            expect![
                "The body is wrong at line 1, column 46: invalid type: floating point `0.5`, expected `max_wait_ms` to be a whole number from 0 to 600000."
            ],
        ),
    ] {
        let body = with(&format!(r#""max_wait_ms":{wait}"#));
        expected.assert_eq(&service.post("/v1/acquire", body).await.problem(400));
    }
    assert_eq!(service.remaining("a").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_not_there_is_named() {
    let service = service();
    let long = "x".repeat(5_000);
    for (policy, shown) in [
        ("none", r#""none""#.to_owned()),
        ("", r#""""#.to_owned()),
        (r#"a\"\n"#, r#""a\"\n""#.to_owned()),
        (&long, format!("\"{}…\"", "x".repeat(80))),
    ] {
        let body = format!(r#"{{"policy":"{policy}","key":"a"}}"#);
        for path in ["/v1/check", "/v1/acquire", "/v1/refund"] {
            let detail = service.post(path, body.clone()).await.problem(404);
            assert_eq!(detail, format!("There is no policy {shown}."));
        }
    }
}

/// Something like a body: whole ones, cut or changed ones, and noise.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just(r#""policy":"orders""#.to_owned()),
        Just(r#""key":"b""#.to_owned()),
        Just(r#""checks":[{"policy":"orders","key":"b"}]"#.to_owned()),
        "\"(policy|key|cost|max_wait_ms|lease|checks|x)\":(-?[0-9]{1,20}|\"[a-z\"]{0,3}|null|\\[|\\{)",
    ];
    let object = prop::collection::vec(field, 0..5)
        .prop_map(|fields| format!("{{{}}}", fields.join(",")).into_bytes());
    let changed = (object.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut body, at, byte)| {
            let at = at.index(body.len());
            body[at] = byte;
            body
        },
    );
    let cut = (object.clone(), any::<prop::sample::Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len()));
        body
    });
    prop_oneof![object, changed, cut, prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #[test]
    fn no_body_is_answered_with_anything_but_a_decision_or_a_problem(
        body in bodies(),
        path in prop::sample::select(vec![
            "/v1/check", "/v1/check/batch", "/v1/acquire", "/v1/refund",
        ]),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let service = used().await;
            let answer = service.post(path, body).await;
            if answer.status != 200 {
                answer.problem(answer.status.as_u16());
                assert_eq!(service.remaining("b").await, 15);
            }
            assert!([200, 400, 404].contains(&answer.status.as_u16()), "{}", answer.body);
            assert_eq!(service.remaining("a").await, 10);
        });
    }
}
