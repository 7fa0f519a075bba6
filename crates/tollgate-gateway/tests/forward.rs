//! What reaches the upstream, and what comes back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use expect_test::{Expect, expect};
use support::{Upstream, gateway, get, route_to};

#[track_caller]
fn check(found: &str, expected: &Expect) {
    expected.assert_eq(&found.replace('\r', ""));
}

// covers: C1, C6
#[test]
fn a_request_reaches_the_upstream_and_its_answer_the_client() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let answer = gateway.ask(
        "GET /a/b?c=d HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nX-Correlation-ID: abc\r\n\r\n",
    );
    check(
        &(answer.head + &answer.body),
        &expect![[r#"
            HTTP/1.1 200 OK
            X-Correlation-ID: abc
            Date: Mon, 16 Nov 2026 00:00:00 GMT
            Content-Length: 5

            hello"#]],
    );
    check(
        &upstream.request(),
        &expect![[r#"
            GET /a/b?c=d HTTP/1.1
            Host: a.example
            Accept: */*
            X-Forwarded-For: 127.0.0.1
            X-Forwarded-Proto: http
            X-Forwarded-Host: a.example
            X-Correlation-ID: abc

        "#]],
    );
}

// covers: C6
#[test]
fn an_id_is_made_where_the_callers_is_missing_or_insane() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ""));
    for lines in ["", "X-Correlation-ID: a b\r\n", "X-Correlation-ID: \"\r\n"] {
        let answer = gateway.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
        let id = answer.header("x-correlation-id").unwrap().to_owned();
        assert_eq!(id.len(), 32, "{id}");
        let request = upstream.request();
        assert_eq!(support::value(&request, "x-correlation-id"), Some(&*id));
        assert_eq!(request.matches("orrelation").count(), 1, "{request}");
    }
}

#[test]
fn what_speaks_to_the_next_hop_ends_here() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Correlation-ID: theirs\r\nX-End: 2\r\n\
         Content-Length: 2\r\n\r\nok",
    );
    let gateway = gateway(&route_to(&[&upstream], ""));
    let answer = gateway.ask(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Secret, keep-alive, Upgrade\r\nX-Secret: 1\r\n\
         connection: x-other\r\nX-Other: 2\r\nKeep-Alive: 300\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic YQ==\r\nTE: gzip, trailers\r\nUpgrade: websocket\r\n\
         X-End: 3\r\nX-Correlation-ID: id\r\n\r\n",
    );
    check(
        &answer.head,
        &expect![[r#"
            HTTP/1.1 200 OK
            X-End: 2
            X-Correlation-ID: id
            Date: Mon, 16 Nov 2026 00:00:00 GMT
            Content-Length: 2

        "#]],
    );
    check(
        &upstream.request(),
        &expect![[r#"
            GET / HTTP/1.1
            Host: a
            X-End: 3
            X-Forwarded-For: 127.0.0.1
            X-Forwarded-Proto: http
            X-Forwarded-Host: a
            X-Correlation-ID: id
            TE: trailers
            Connection: TE

        "#]],
    );
}

// part of: C8
#[test]
fn only_a_trusted_proxy_can_speak_for_others() {
    let upstream = Upstream::saying("");
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n\
                   X-Forwarded-Host: b\r\nForwarded: for=2.2.2.2\r\nX-Forwarded-For: 3.3.3.3\r\n\
                   X-Correlation-ID: id\r\n\r\n";
    gateway(&route_to(&[&upstream], "")).ask(request);
    check(
        &upstream.request(),
        &expect![[r#"
            GET / HTTP/1.1
            Host: a
            X-Forwarded-For: 127.0.0.1
            X-Forwarded-Proto: http
            X-Forwarded-Host: a
            X-Correlation-ID: id

        "#]],
    );
    gateway(&route_to(&[&upstream], "trusted_proxies: [127.0.0.0/8]\n")).ask(request);
    check(
        &upstream.request(),
        &expect![[r#"
            GET / HTTP/1.1
            Host: a
            X-Forwarded-Proto: https
            X-Forwarded-Host: b
            Forwarded: for=2.2.2.2
            X-Forwarded-For: 1.1.1.1, 3.3.3.3, 127.0.0.1
            X-Correlation-ID: id

        "#]],
    );
}

/// Servers that make variables of headers cannot tell `_` from `-`.
#[test]
fn what_looks_like_a_header_of_ours_is_not_passed_on() {
    let upstream = Upstream::saying("");
    gateway(&route_to(&[&upstream], "trusted_proxies: [127.0.0.0/8]\n")).ask(
        "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 1.1.1.1\r\nx-forwarded_proto: https\r\n\
         Content_Length: 5\r\nTransfer_Encoding: chunked\r\nX_Correlation_ID: b\r\nX_User: c\r\n\
         Connection: X-Forwarded-For, Host, X-Correlation-ID, X-Forwarded-Proto\r\n\
         X-Correlation-ID: id\r\n\r\n",
    );
    check(
        &upstream.request(),
        &expect![[r#"
            GET / HTTP/1.1
            Host: a
            X_User: c
            X-Forwarded-For: 127.0.0.1
            X-Forwarded-Proto: http
            X-Forwarded-Host: a
            X-Correlation-ID: id

        "#]],
    );
}

// covers: C1
#[test]
fn an_upstream_resolves_no_path_otherwise_than_its_limits_were_found() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ""));
    for (sent, expected) in [
        ("/login/../public?a=/../b", "/public?a=/../b"),
        ("/login//..", "/"),
        ("//evil/login", "/evil/login"),
        ("http://a.example//evil/%2e/x", "/evil/x"),
        ("/a//b;c/%7E?", "/a//b;c/%7E?"),
    ] {
        assert_eq!(gateway.get(sent).status(), 200);
        let seen = upstream.request();
        assert_eq!(seen.lines().next(), Some(&*format!("GET {expected} HTTP/1.1")));
    }
}

#[test]
fn a_body_of_known_length_arrives_whole_whatever_the_packets() {
    let upstream = Upstream::with(|mut connection| {
        while let Some(request) = connection.request() {
            let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            connection.client.send(head + &body);
        }
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    for size in [0, 1, 100, 4096, 5_000, 16_384, 70_000, 1_000_000] {
        let body: String = ('a'..='w').cycle().take(size).collect();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
        for cut in [0, size / 2] {
            let mut client = gateway.connect();
            client.send(&head);
            client.send(&body[..cut]);
            if cut > 0 {
                // What was sent so far has left by now.
                assert!(client.is_silent());
            }
            let mut sender = support::Client::new(client.stream.try_clone().unwrap());
            let rest = body[cut..].to_owned();
            let sending = std::thread::spawn(move || sender.send(rest));
            let answer = client.answer();
            sending.join().unwrap();
            assert_eq!(answer.status(), 200);
            assert!(answer.body == body, "{size} bytes, cut at {cut}");
        }
    }
}

#[test]
fn a_chunked_body_is_put_together_anew() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ""));
    gateway.ask(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX-Correlation-ID: id\r\n\r\n\
         005;ext=1\r\nhello\r\n1\r\n_\r\n5 \r\nworld\r\n0\r\n\r\n",
    );
    check(
        &upstream.request(),
        &expect![[r#"
            POST / HTTP/1.1
            Host: a
            X-Forwarded-For: 127.0.0.1
            X-Forwarded-Proto: http
            X-Forwarded-Host: a
            X-Correlation-ID: id
            Transfer-Encoding: chunked

            5
            hello
            1
            _
            5
            world
            0

        "#]],
    );
}

#[test]
fn trailers_pass_in_both_directions() {
    let upstream = Upstream::with(|mut connection| {
        let head = connection.head().unwrap();
        let mut body = String::new();
        while !body.ends_with("\r\n\r\n") {
            body += &connection.client.exactly(1);
        }
        connection.record(head + &body);
        connection.client.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
             2\r\nok\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\n\r\n",
        );
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Check\r\n\r\n\
         1\r\na\r\n0\r\nX-Check: 5\r\nHost: evil\r\nTransfer-Encoding: x\r\n\r\n",
    );
    let head = client.head();
    assert_eq!(support::value(&head, "trailer"), Some("X-Sum"));
    assert_eq!(support::value(&head, "transfer-encoding"), Some("chunked"));
    assert_eq!(client.exactly(22), "2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n");
    let request = upstream.request();
    assert!(request.contains("Trailer: X-Check\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n1\r\na\r\n0\r\nX-Check: 5\r\n\r\n"), "{request}");
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    for (answer, method, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD", Some("9")),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", None),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "GET", Some("9")),
        ("HTTP/1.1 204 No Content\r\n\r\n", "GET", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "GET", Some("0")),
    ] {
        let upstream = Upstream::answering(answer);
        let gateway = gateway(&route_to(&[&upstream], ""));
        let mut client = gateway.connect();
        for _ in 0..2 {
            client.send(get("/").replace("GET", method));
            let found = client.answer_to(method);
            assert_eq!(found.head[..12], answer[..12]);
            assert_eq!(found.header("content-length"), expected, "{answer}");
            assert_eq!(found.header("transfer-encoding"), None, "{answer}");
        }
        assert!(client.is_silent(), "{answer}");
    }
}

#[test]
fn an_answer_that_ends_with_its_connection_is_given_chunks() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\n\r\nhello");
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send(get("/"));
        let answer = client.answer();
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        assert_eq!(answer.body.replace("5\r\nhello\r\n", "hello\r\n"), "hello\r\n0\r\n\r\n");
    }
}

#[test]
fn an_old_client_gets_no_chunks_and_no_interim_answers() {
    let chunked = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\
                   Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let upstream = Upstream::answering(chunked);
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(support::value(&head, "connection"), Some("close"));
    assert_eq!(support::value(&head, "transfer-encoding"), None);
    assert_eq!(client.rest(), "hello");
    // Without a host of its own it asks for the upstream's.
    let request = upstream.request();
    assert_eq!(support::value(&request, "host"), Some(&*upstream.addr.to_string()));
    assert!(request.starts_with("GET / HTTP/1.1\r\n"));
}

#[test]
fn an_old_client_can_keep_its_connection() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.header("connection"), &*answer.body), (Some("keep-alive"), "hello"));
    }
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn a_url_as_target_is_passed_on_as_a_path() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let answer = gateway.ask("GET http://A.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(answer.status(), 200);
    let request = upstream.request();
    assert!(request.starts_with("GET /x?y HTTP/1.1\r\nHost: A.example\r\n"), "{request}");
}

#[test]
fn interim_answers_are_not_taken_for_the_final_one() {
    let upstream = Upstream::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send(get("/"));
        let answer = client.answer();
        assert_eq!((answer.status(), &*answer.body), (200, "ok"));
        assert_eq!(answer.header("link"), None);
    }
}

#[test]
fn a_client_that_waits_for_a_word_gets_it_once_the_request_may_pass() {
    let upstream = Upstream::saying("done");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    assert_eq!(client.answer().body, "done");
    let request = upstream.request();
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    assert_eq!(support::value(&request, "expect"), None);
}

#[test]
fn a_client_that_did_not_wait_gets_no_word() {
    let upstream = Upstream::saying("done");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let head =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello";
    assert_eq!(gateway.ask(head).status(), 200);
}

#[test]
fn a_client_that_waits_for_a_word_and_may_not_pass_gets_the_refusal() {
    let gateway = gateway("routes: []\n");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status(), answer.header("connection")), (404, Some("close")));
    assert!(client.is_closed());
}

#[test]
fn an_answer_may_come_before_the_request_has_ended() {
    let upstream = Upstream::with(|mut connection| {
        connection.head();
        connection.client.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        // Goes on reading, as a well-behaved server does.
        while connection.client.exactly(1) != "!" {}
        connection.record("all read");
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status(), &*answer.body), (403, "no"));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn lines_are_passed_on_as_they_came() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 Fine By Me\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Odd:\tv \r\n\
         Content-Length: 0\r\n\r\n",
    );
    let gateway = gateway(&route_to(&[&upstream], ""));
    let answer = gateway.ask(
        "PURGE /%7euser/;v=1?q=a%20b&&x=%00 HTTP/1.1\r\nHost: a\r\nCookie: x=1\r\nCookie: y=2\r\n\
         X-Empty:\r\nx-UTF: \u{fc}\r\n\r\n",
    );
    let start = "HTTP/1.1 200 Fine By Me\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Odd:\tv \r\n";
    assert!(answer.head.starts_with(start), "{}", answer.head);
    let request = upstream.request();
    let start = "PURGE /%7euser/;v=1?q=a%20b&&x=%00 HTTP/1.1\r\nHost: a\r\nCookie: x=1\r\n\
                 Cookie: y=2\r\nX-Empty:\r\nx-UTF: \u{fc}\r\n";
    assert!(request.starts_with(start), "{request}");
}

#[test]
fn the_echo_tells_what_it_was_sent() {
    let gateway = gateway(
        "routes:\n  - id: 550e8400-e29b-41d4-a716-446655440000\n    path: /\n    \
         upstreams: [\"builtin:echo\"]\n",
    );
    let mut client = gateway.connect();
    for body in ["5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n"] {
        client.send(
            "POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-Correlation-ID: id\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_owned() + body,
        );
        let answer = client.answer();
        assert_eq!(answer.header("content-type"), Some("application/json"));
        if body.len() > 10 {
            check(
                &answer.body,
                &expect![[r#"
                    {
                      "body_bytes": 5,
                      "client": "127.0.0.1",
                      "correlation_id": "id",
                      "headers": {
                        "host": "h",
                        "transfer-encoding": "chunked",
                        "x-correlation-id": "id"
                      },
                      "method": "POST",
                      "path": "/a",
                      "query": "b=c"
                    }
                "#]],
            );
        }
    }
}
