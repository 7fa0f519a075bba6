//! What reaches the upstream, and what comes back.

mod support;

use expect_test::expect;
use support::{Upstream, gateway, route_to};

// covers: C1, C6
#[test]
fn a_request_reaches_the_upstream_and_its_answer_the_client() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let answer = gateway.ask(
        "GET /a/b?c=d HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nX-Correlation-ID: abc\r\n\r\n",
    );
    expect![[r#"
        HTTP/1.1 200 OK
        x-correlation-id: abc
        date: Mon, 16 Nov 2026 00:00:00 GMT
        content-length: 5

        hello"#]]
    .assert_eq(&(answer.head + &answer.body).replace('\r', ""));
    expect![[r#"
        GET /a/b?c=d HTTP/1.1
        host: a.example
        Accept: */*
        x-forwarded-for: 127.0.0.1
        x-forwarded-proto: http
        x-forwarded-host: a.example
        x-correlation-id: abc

    "#]]
    .assert_eq(&upstream.request().replace('\r', ""));
}
