//! What a client is told when something is too slow, too large, or not there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    net::{Shutdown, TcpListener},
    sync::Mutex,
};

use expect_test::expect;
use support::{Answer, Upstream, gateway, get, route_to};
use tollgate_testkit::wait::{PATIENCE, wait_until};

/// All time-outs short, so that none is waited for long.
const SHORT: &str = "gateway: {connect_timeout: 100ms, response_timeout: 100ms, \
                     header_timeout: 100ms, body_timeout: 100ms, idle_timeout: 100ms}\n";

#[track_caller]
fn check(answer: &Answer, status: u16, detail: &str) {
    assert_eq!(answer.status(), status, "{}", answer.head);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(told["detail"], detail);
    assert_eq!(told["status"], status);
    assert_eq!(told["correlationId"], *answer.header("x-correlation-id").unwrap());
}

// covers: C1
#[test]
fn an_unknown_route_is_not_found() {
    let upstream = Upstream::saying("");
    let config = route_to(&[&upstream], "    methods: [PUT, GET]\n").replace("path: /", "path: /a");
    let gateway = gateway(&config);
    let mut client = gateway.connect();
    client.send("GET /b HTTP/1.1\r\nHost: a\r\nX-Correlation-ID: id\r\n\r\n");
    let answer = client.answer();
    expect![[r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"No route matches this host and path.","correlationId":"id"}"#]].assert_eq(&answer.body);
    client.send(get("/ab"));
    check(&client.answer(), 404, "No route matches this host and path.");
    client.send(get("/a%2Fb"));
    check(&client.answer(), 400, "The path can be read in more than one way.");
    client.send(get("/a/../../b"));
    check(&client.answer(), 400, "The path can be read in more than one way.");

    client.send(get("/a").replace("GET", "DELETE"));
    let answer = client.answer();
    let detail = "The route does not allow this method; the Allow header lists those it does.";
    check(&answer, 405, detail);
    assert_eq!(answer.header("allow"), Some("GET, HEAD, PUT"));

    client.send(get("/b").replace("GET", "HEAD"));
    let answer = client.answer_to("HEAD");
    assert_eq!((answer.status(), &*answer.body), (404, ""));
    client.send(get("/a/b"));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_dead_upstream_is_a_bad_gateway_and_several_are_unavailable() {
    let (dead, also_dead) = (Upstream::dead(), Upstream::dead());
    let one = gateway(&route_to(&[&dead], ""));
    let mut client = one.connect();
    for _ in 0..2 {
        client.send(get("/"));
        check(&client.answer(), 502, "The upstream cannot be reached.");
    }
    let both = gateway(&route_to(&[&dead, &also_dead], ""));
    check(&both.get("/"), 503, "None of the upstreams can be reached.");
}

// part of: C10
#[test]
fn a_request_that_reached_nobody_goes_to_the_next_upstream() {
    let (dead, alive) = (Upstream::dead(), Upstream::saying("alive"));
    let gateway = gateway(&route_to(&[&dead, &alive], ""));
    for _ in 0..4 {
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
        assert_eq!(gateway.ask(post).body, "alive");
    }
}

#[test]
fn requests_take_turns_over_the_upstreams() {
    let upstreams = ["a", "b", "c"].map(Upstream::saying);
    let gateway = gateway(&route_to(&[&upstreams[0], &upstreams[1], &upstreams[2]], ""));
    let bodies: Vec<_> = (0..6).map(|_| gateway.get("/").body).collect();
    assert_eq!(bodies.concat(), "abcabc");
}

#[test]
fn an_upstream_that_does_not_take_connections_is_given_up() {
    // A listener whose backlog is full answers no handshake.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let addr = listener.local_addr().unwrap();
    let _waiting: Vec<_> = (0..3)
        .filter_map(|_| std::net::TcpStream::connect_timeout(&addr, support::A_WHILE).ok())
        .collect();
    let config = format!(
        "{SHORT}routes:\n  - id: 550e8400-e29b-41d4-a716-446655440000\n    path: /\n    \
         upstreams: [\"http://{addr}\"]\n"
    );
    check(&gateway(&config).get("/"), 502, "The upstream cannot be reached.");
}

#[test]
fn a_slow_upstream_is_a_gateway_time_out() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        // Half a head is no answer.
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Le");
        connection.request();
    });
    let gateway = gateway(&route_to(&[&upstream], SHORT));
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send(get("/"));
        check(&client.answer(), 504, "The upstream did not answer in time.");
    }
}

#[test]
fn an_upstream_that_hangs_up_is_a_bad_gateway() {
    let detail = "The upstream closed the connection without an answer.";
    for answer in ["", "HTTP/1.1 200 OK\r\nContent-Le"] {
        let upstream = Upstream::with(move |mut connection| {
            connection.request();
            connection.client.send(answer);
        });
        let gateway = gateway(&route_to(&[&upstream], ""));
        check(&gateway.get("/"), 502, detail);
        // On a new connection there is nothing to blame but the upstream: no second try.
        assert_eq!(upstream.requests().len(), 1);
    }
}

#[test]
fn a_head_without_end_is_not_read_to_it() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        let line = format!("X-Filler: {}\r\n", "x".repeat(1000));
        let _ = std::io::Write::write_all(&mut connection.client.stream, b"HTTP/1.1 200 OK\r\n");
        while std::io::Write::write_all(&mut connection.client.stream, line.as_bytes()).is_ok() {}
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    check(&gateway.get("/"), 502, "The upstream's answer is malformed.");
}

/// A body that was passed on before the upstream failed is not looked for again in what follows.
#[test]
fn a_failed_request_leaves_the_next_one_whole() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        // Closed without an answer.
    });
    for request in [
        "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let gateway = gateway(&route_to(&[&upstream], ""));
        let mut client = gateway.connect();
        client.send(request.to_owned() + &get("/2") + &get("/3"));
        for path in ["/1", "/2", "/3"] {
            let detail = "The upstream closed the connection without an answer.";
            check(&client.answer(), 502, detail);
            let seen = upstream.request();
            assert!(seen.lines().next().unwrap().contains(path), "{seen}");
        }
    }
}

/// Of a body that was passed on in part nobody knows where it ends.
#[test]
fn a_failure_in_the_middle_of_a_body_ends_the_connection() {
    let upstream = Upstream::with(|mut connection| {
        connection.head();
        connection.client.exactly(3);
        connection.client.send("nonsense\r\n\r\n");
        connection.client.rest();
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhel");
    let answer = client.answer();
    check(&answer, 502, "The upstream's answer is malformed.");
    assert_eq!(answer.header("connection"), Some("close"));
    client.send(get("/inside-the-body"));
    assert!(client.is_closed());
}

/// Answers the first request of its first connection, then serves like any other.
fn closing_after_one() -> Upstream {
    let first = Mutex::new(true);
    Upstream::with(move |mut connection| {
        while connection.request().is_some() {
            if connection.number == 0 && !std::mem::take(&mut *first.lock().unwrap()) {
                // Just as the next request comes.
                return;
            }
            connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    })
}

// part of: C10
#[test]
fn a_kept_connection_that_dies_under_a_request_is_replaced_once() {
    for (request, status) in [
        (get("/"), 200),
        (get("/").replace("GET", "DELETE"), 200),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab".to_owned(), 200),
        // Done twice it might be bought twice.
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab".to_owned(), 502),
    ] {
        let upstream = closing_after_one();
        let gateway = gateway(&route_to(&[&upstream], ""));
        assert_eq!(gateway.get("/").status(), 200);
        assert_eq!(gateway.ask(&request).status(), status, "{request}");
        let seen = upstream.requests().len();
        assert_eq!(seen, if status == 200 { 3 } else { 2 }, "{request}");
    }
}

#[test]
fn a_kept_connection_that_was_closed_meanwhile_is_not_used() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        // Without saying so in the answer.
        connection.client.stream.shutdown(Shutdown::Both).unwrap();
        connection.record("closed");
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
    for _ in 0..5 {
        for request in [&get("/"), post] {
            assert_eq!(gateway.ask(request).status(), 200);
            upstream.request();
            // From here on the gateway finds the connection closed when it looks.
            assert_eq!(upstream.request(), "closed");
        }
    }
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    for (answer, start) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel", "hel"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", "3\r\nhel\r\n"),
    ] {
        let upstream = Upstream::with(move |mut connection| {
            connection.request();
            connection.client.send(answer);
        });
        let gateway = gateway(&route_to(&[&upstream], ""));
        let mut client = gateway.connect();
        client.send(get("/"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert_eq!(client.rest(), start);
    }
}

#[test]
fn an_answer_that_breaks_off_does_not_look_complete_to_an_old_client() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n");
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    let end = std::io::Read::read_to_end(&mut client.stream, &mut Vec::new());
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn an_answer_that_falls_silent_is_cut() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel");
        connection.request();
    });
    let gateway = gateway(&route_to(&[&upstream], SHORT));
    let mut client = gateway.connect();
    client.send(get("/"));
    client.head();
    assert_eq!(client.exactly(3), "hel");
    assert!(client.is_closed());
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        let piece = "x".repeat(1 << 20);
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while std::io::Write::write_all(&mut connection.client.stream, piece.as_bytes()).is_ok() {}
        connection.record("cut");
    });
    let gateway = gateway(&route_to(&[&upstream], SHORT));
    let mut client = gateway.connect();
    client.send(get("/"));
    client.head();
    assert!(upstream.request().starts_with("GET"));
    // The upstream notices that nobody takes the rest.
    assert_eq!(upstream.request(), "cut");
    drop(client);
}

#[test]
fn a_slow_head_is_a_request_time_out() {
    let gateway = gateway(&format!("{SHORT}routes: []\n"));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost");
    check(&client.answer(), 408, "The request's head did not arrive in full in time.");
    assert!(client.is_closed());
}

#[test]
fn a_silent_body_is_a_request_time_out() {
    let upstream = Upstream::with(|mut connection| {
        connection.head();
        connection.client.rest();
    });
    let gateway = gateway(&route_to(&[&upstream], SHORT));
    for body in ["Content-Length: 5\r\n\r\nhel", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{body}"));
        check(&client.answer(), 408, "The request's body did not arrive in time.");
        assert!(client.is_closed());
    }
}

#[test]
fn a_slow_body_that_is_not_silent_passes() {
    let upstream = Upstream::saying("done");
    let gateway =
        gateway(&route_to(&[&upstream], &SHORT.replace("body_timeout: 100ms", "body_timeout: 1s")));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n");
    for _ in 0..8 {
        // Together longer than any time-out.
        assert!(client.is_silent());
        client.send("x");
    }
    assert_eq!(client.answer().body, "done");
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], SHORT));
    assert!(gateway.connect().is_closed());
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.answer().body, "hello");
    assert!(client.is_closed());
    wait_until(PATIENCE, || gateway.open_connections() == 0).unwrap();
}

#[test]
fn heads_have_a_largest_size_and_a_largest_number_of_lines() {
    let upstream = Upstream::saying("");
    let gateway = gateway(&route_to(&[&upstream], "gateway: {max_header_bytes: 8KiB}\n"));
    let ask = |lines: &str| gateway.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
    assert_eq!(ask(&format!("X: {}\r\n", "x".repeat(8_000))).status(), 200);
    let large = ask(&format!("X: {}\r\n", "x".repeat(9_000)));
    check(&large, 431, "The request's head is larger than allowed.");
    assert_eq!(ask(&"X: y\r\n".repeat(99)).status(), 200);
    check(&ask(&"X: y\r\n".repeat(100)), 431, "The request has more than 100 header lines.");
    let long = gateway.get(&format!("/{}", "x".repeat(9_000)));
    check(&long, 414, "The request's URI is longer than allowed.");
    // However much more the client would have sent.
    let mut client = gateway.connect();
    client.send(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(100_000)));
    assert_eq!(client.answer().status(), 431);
}

#[test]
fn a_body_has_a_largest_size() {
    let upstream = Upstream::with(|mut connection| {
        while connection.request().is_some() {
            connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let gateway = gateway(&route_to(&[&upstream], "gateway: {max_body_bytes: 5}\n"));
    let detail = "The request's body is larger than allowed.";
    let ask = |rest: &str| gateway.ask(&format!("POST / HTTP/1.1\r\nHost: a\r\n{rest}"));
    assert_eq!(ask("Content-Length: 5\r\n\r\nhello").status(), 200);
    check(&ask("Content-Length: 6\r\n\r\nhello!"), 413, detail);
    check(&ask("Content-Length: 999999999999\r\n\r\n"), 413, detail);
    assert_eq!(ask("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").status(), 200);
    check(&ask("Transfer-Encoding: chunked\r\n\r\n6\r\nhello!\r\n0\r\n\r\n"), 413, detail);
    check(&ask("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n"), 413, detail);
}

#[test]
fn an_answer_that_refuses_a_large_body_is_not_lost() {
    let upstream = Upstream::with(|mut connection| {
        connection.head();
        connection
            .client
            .send("HTTP/1.1 413 Too Much\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
        // Closed with unread bytes: the rest of the upload meets a reset.
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n");
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 16];
        while std::io::Write::write_all(&mut sender, &piece).is_ok() {}
    });
    let answer = client.answer();
    assert_eq!((answer.status(), &*answer.body), (413, "no"));
    drop(client);
    sending.join().unwrap();
}

#[test]
fn a_client_that_closes_its_side_still_gets_its_answer() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(get("/"));
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert!(client.rest().ends_with("\r\n\r\nhello"));
}
