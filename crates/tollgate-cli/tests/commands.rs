//! What is printed, and the exit codes.

mod support;

use expect_test::expect;
use support::{config, finish, write};

// covers: G6
#[test]
fn a_good_configuration_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &config("{algorithm: token_bucket, rate: 10/s, burst: 15}"));
    let (code, out, _) = finish(&["check", "-c", &path]);
    assert_eq!(code, Some(0));
    assert!(out.ends_with("tollgate.yaml: fine (1 policies, 1 published routes)\n"), "{out}");
}

// covers: G6
#[test]
fn all_mistakes_are_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "listen: {gatewy: 127.0.0.1:0}\npolicies:\n  - id: p\n    limits: [{algorithm: token_bukket, rate: 10/parsec}]\n",
    );
    let (code, out, told) = finish(&["check", "-c", &path]);
    assert_eq!((code, out.as_str()), (Some(64), ""));
    assert_eq!(
        finish(&["run", "-c", &path]),
        (code, out, told.clone()),
        "run says what check says"
    );
    let told = told.replace(folder.path().to_str().unwrap(), "");
    expect![[r#"
        /tollgate.yaml:1:10: listen.gatewy: no such setting: did you mean gateway?
            listen: {gatewy: 127.0.0.1:0}
                     ^
        /tollgate.yaml:4:26: policies[0].limits[0].algorithm: found "token_bukket", expected token_bucket, leaky_bucket, fixed_window, sliding_log, sliding_counter, sliding_window or concurrency; did you mean token_bucket?
            limits: [{algorithm: token_bukket, rate: 10/parsec}]
                                 ^
        /tollgate.yaml:4:46: policies[0].limits[0].rate: "parsec" is not a unit of time: write one of s, min, h, day, week, month, year
            limits: [{algorithm: token_bukket, rate: 10/parsec}]
                                                     ^
    "#]].assert_eq(&told);
}

#[test]
fn bad_usage_exits_with_64() {
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["check"],
        &["run", "--log", "xml"],
        &["run", "-c", "/no/such/file"],
    ] {
        let (code, _, told) = finish(arguments);
        assert_eq!(code, Some(64), "{arguments:?}");
        assert!(!told.is_empty());
    }
    for arguments in [["--help"], ["--version"]] {
        let (code, out, _) = finish(&arguments);
        assert_eq!(code, Some(0));
        assert!(!out.is_empty());
    }
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("listen: {{http: {}}}\n", taken.local_addr().unwrap());
    let (code, _, told) = finish(&["run", "-c", &write(folder.path(), &text)]);
    assert_eq!(code, Some(70));
    assert!(told.contains(&format!("cannot listen on {}", taken.local_addr().unwrap())), "{told}");
}

// covers: G6
#[test]
fn a_configuration_that_opens_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["", "policies: []\n"] {
        let path = write(folder.path(), text);
        let (code, _, told) = finish(&["check", "-c", &path]);
        assert_eq!(code, Some(64));
        assert!(told.contains("opens no listener"), "{told}");
        assert_eq!(finish(&["run", "-c", &path]).0, Some(64));
    }
}

#[test]
fn the_schema_is_json() {
    let (code, out, _) = finish(&["schema"]);
    assert_eq!(code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(schema["properties"]["policies"].is_object());
}
