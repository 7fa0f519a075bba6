use std::borrow::Cow;

use super::*;

#[test]
fn texts_without_escapes_are_borrowed() {
    let read = ask(Form::Check, br#"{"policy":"a","key":"b"}"#).unwrap();
    assert!(matches!((&read.policy, &read.key), (Cow::Borrowed("a"), Cow::Borrowed("b"))));
    assert_eq!(read.cost(), 1);

    let read = ask(Form::Check, br#"{"policy":"\u0061","key":"b"}"#).unwrap();
    assert!(matches!(read.policy, Cow::Owned(_)));
    assert_eq!(read.policy, "a");
}

#[test]
fn each_form_has_fields_of_its_own() {
    let with = |field: &str| format!(r#"{{"policy":"a","key":"b",{field}}}"#);
    let (wait, lease) = (with(r#""max_wait_ms":5"#), with(r#""lease":"7""#));
    assert_eq!(ask(Form::Acquire, wait.as_bytes()).unwrap().max_wait_ms, Some(5));
    assert_eq!(ask(Form::Refund, lease.as_bytes()).unwrap().lease, Some(7));
    for (form, body) in [
        (Form::Check, &wait),
        (Form::Refund, &wait),
        (Form::Check, &lease),
        (Form::Acquire, &lease),
    ] {
        let error = ask(form, body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn a_batch_has_only_checks() {
    assert!(batch(br#"{"checks":[]}"#).unwrap().is_empty());
    for (body, expected) in [
        ("{}", "The body is wrong at line 1, column 2: missing field `checks`."),
        (
            "[]",
            "The body is wrong at line 1, column 0: invalid type: sequence, expected an object with `checks`.",
        ),
        (
            r#"{"checks":{}}"#,
            "The body is wrong at line 1, column 10: invalid type: map, expected `checks` to be a list.",
        ),
        (
            r#"{"checks":[],"checks":[]}"#,
            "The body is wrong at line 1, column 25: duplicate field `checks`.",
        ),
        (
            r#"{"check":[]}"#,
            "The body is wrong at line 1, column 8: unknown field `check`, expected `checks`.",
        ),
    ] {
        assert_eq!(batch(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
    }
}

#[test]
fn a_mistake_is_told_briefly() {
    let body = format!(r#"{{"policy":"a","key":"b","cost":"{}"}}"#, "ü".repeat(5_000));
    let error = ask(Form::Check, body.as_bytes()).unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
    let expected = "expected `cost` to be a whole number from 0 to 9007199254740992.";
    assert!(error.contains("invalid type: string \"ü") && error.ends_with(expected), "{error}");
}
