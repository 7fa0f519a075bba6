//! Requests that two servers could read differently are refused, and nothing of them passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Upstream, gateway, get, route_to};

/// Sends bytes, and after them an ordinary request that must not be answered.
#[track_caller]
fn check(request: &str, status: u16) {
    let upstream = Upstream::saying("passed");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(request.to_owned() + &get("/smuggled"));
    let answer = client.answer();
    assert_eq!(answer.status(), status, "{request:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let id = answer.header("x-correlation-id").unwrap();
    assert!(answer.body.contains(id), "{}", answer.body);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.is_closed(), "{request:?}");
    assert_eq!(upstream.requests(), Vec::<String>::new(), "{request:?}");
    let counted = format!("gateway_request_total{{status=\"{status}\",route_path=\"none\"}} 1");
    assert_eq!(gateway.counted("gateway_request_total"), [counted]);
}

/// A request with these header lines and this body.
#[track_caller]
fn check_lines(lines: &str, body: &str, status: u16) {
    check(&format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n{body}"), status);
}

#[test]
fn both_length_and_chunks() {
    let body = "0\r\n\r\nGET /admin HTTP/1.1\r\nX: ";
    check_lines("Content-Length: 30\r\nTransfer-Encoding: chunked\r\n", body, 400);
    check_lines("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", body, 400);
    check_lines("Content-Length: 4\r\nTransfer-encoding: identity\r\n", body, 400);
}

#[test]
fn several_lengths() {
    check_lines("Content-Length: 1\r\nContent-Length: 2\r\n", "ab", 400);
    check_lines("Content-Length: 2\r\nContent-Length: 2\r\n", "ab", 400);
    check_lines("Content-Length: 2, 2\r\n", "ab", 400);
    check_lines("Content-Length: +2\r\n", "ab", 400);
    check_lines("Content-Length: -2\r\n", "ab", 400);
    check_lines("Content-Length: 0x2\r\n", "ab", 400);
    check_lines("Content-Length: 2\x0b\r\n", "ab", 400);
    check_lines("Content-Length:\r\n", "ab", 400);
}

#[test]
fn odd_transfer_encodings() {
    for encoding in ["xchunked", "chunked, identity", "\x0bchunked", "chunked\x0c", "chunked, "] {
        check_lines(
            &format!("Transfer-Encoding: {encoding}\r\n"),
            "0\r\n\r\n",
            match encoding {
                // Nothing but a comma after it: not what anybody honest sends.
                "chunked, " => 501,
                _ => 400,
            },
        );
    }
    check_lines("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 501);
    check_lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", "0\r\n\r\n", 400);
    check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
}

#[test]
fn lines_that_servers_split_differently() {
    check_lines("X: a\r\n Transfer-Encoding: chunked\r\n", "", 400);
    check_lines("X: a\r\n\tb\r\n", "", 400);
    check_lines("Transfer-Encoding : chunked\r\n", "0\r\n\r\n", 400);
    check_lines("Content-Length\t: 5\r\n", "hello", 400);
    check_lines("X: a\nContent-Length: 5\r\n", "hello", 400);
    check_lines("X: a\rContent-Length: 5\r\n", "hello", 400);
    check_lines("X: a\0b\r\n", "", 400);
    check_lines("X\r\n", "", 400);
    check_lines(": x\r\n", "", 400);
    check_lines("Content-Length\u{a0}: 5\r\n", "hello", 400);
    check("GET / HTTP/1.1\nHost: a\n\n", 400);
    check("GET / HTTP/1.1\r\nHost: a\n\r\n", 400);
    check(" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn hosts_that_servers_choose_differently() {
    check("GET / HTTP/1.1\r\n\r\n", 400);
    check_lines("Host: b\r\n", "", 400);
    check("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400);
    check("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400);
    check("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400);
    check("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n", 400);
}

#[test]
fn request_lines_that_are_none() {
    check("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 501);
    check("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    check("GET / HTTP/1.3\r\nHost: a\r\n\r\n", 505);
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
    check("GET /\r\n\r\n", 400);
    check("\x16\x03\x01\x02\0\x01\0\x01\n", 400);
}

/// A body that goes wrong after the head has been passed on.
#[track_caller]
fn check_chunks(body: &str) {
    let upstream = Upstream::with(|mut connection| {
        connection.head();
        connection.record(connection.client.stream.take_all());
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_owned()
            + body
            + &get("/smuggled"),
    );
    let answer = client.answer();
    assert_eq!((answer.status(), answer.header("connection")), (400, Some("close")), "{body:?}");
    assert!(client.is_closed(), "{body:?}");
    for seen in upstream.requests() {
        assert!(!seen.contains("smuggled") && !seen.ends_with("0\r\n\r\n"), "{body:?}: {seen:?}");
    }
}

trait TakeAll {
    fn take_all(&self) -> String;
}

impl TakeAll for std::net::TcpStream {
    fn take_all(&self) -> String {
        let mut all = Vec::new();
        // A reset is as good an end as any.
        let _ = std::io::Read::read_to_end(&mut &*self, &mut all);
        String::from_utf8_lossy(&all).into_owned()
    }
}

#[test]
fn chunks_that_servers_read_differently() {
    for body in [
        "x\r\n",
        "-1\r\n",
        "0x1\r\na\r\n",
        "1\na\r\n",
        "1\r\nab\r\n",
        "1;a\nb\r\n",
        "fffffffffffffffff\r\n",
        "\r\n",
        "0\r\nX : a\r\n\r\n",
        "0\r\nX: a\n\r\n",
        "0\r\n X: a\r\n\r\n",
    ] {
        check_chunks(body);
    }
}

#[test]
fn what_follows_a_body_is_the_next_request_and_nothing_else() {
    let upstream = Upstream::saying("passed");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(
        "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nGET /x\
         POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         6\r\nGET /y\r\n0\r\n\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    for _ in 0..3 {
        assert_eq!(client.answer().body, "passed");
    }
    let lines: Vec<_> =
        (0..3).map(|_| upstream.request().lines().next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["POST /1 HTTP/1.1", "POST /2 HTTP/1.1", "GET /3 HTTP/1.1"]);
}

/// Answers that clients could read differently.
#[test]
fn answers_that_clients_read_differently_are_replaced() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nX: a\0\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nx",
        "HTTP/3 200 OK\r\n\r\n",
        "hello\r\n\r\n",
    ] {
        let upstream = Upstream::answering(answer);
        let gateway = gateway(&route_to(&[&upstream], ""));
        let mut client = gateway.connect();
        client.send(get("/"));
        let found = client.answer();
        assert_eq!(found.status(), 502, "{answer:?}");
        assert!(found.body.contains("The upstream's answer is malformed."), "{}", found.body);
        // It is the upstream that is wrong: the client may go on.
        client.send(get("/"));
        assert_eq!(client.answer().status(), 502);
    }
}

/// Bytes after an answer must not become the answer to somebody else.
#[test]
fn an_upstream_that_says_too_much_is_not_used_again() {
    let upstream = Upstream::with(|mut connection| {
        while connection.request().is_some() {
            let body = if connection.number == 0 { "first" } else { "other" };
            let extra = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
            connection
                .client
                .send(format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}{extra}"));
        }
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    assert_eq!(gateway.get("/").body, "first");
    assert_eq!(gateway.get("/").body, "other");
}
