use super::*;

fn read(head: &str) -> Result<Request, Refusal> {
    let mut request = Request::new();
    request.read(head.as_bytes().to_vec())?;
    Ok(request)
}

/// Reads a request with these header lines.
fn with(lines: &str) -> Result<Request, Refusal> {
    read(&format!("POST /a HTTP/1.1\r\nHost: h\r\n{lines}\r\n"))
}

#[track_caller]
fn check_refused(head: &str, expected: &str) {
    let found = read(head).map_or_else(
        |refusal| format!("{} {}", refusal.status.as_u16(), refusal.detail),
        |_| "accepted".to_owned(),
    );
    assert_eq!(found, expected);
}

#[track_caller]
fn check_line(line: &str, expected: &str) {
    check_refused(&format!("{line}\r\nHost: h\r\n\r\n"), expected);
}

#[track_caller]
fn check_lines(lines: &str, expected: &str) {
    check_refused(&format!("POST /a HTTP/1.1\r\nHost: h\r\n{lines}\r\n"), expected);
}

#[test]
fn path_and_query_are_told_apart() {
    let check = |target: &str, path: &str, query: Option<&str>| {
        let request = read(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).unwrap();
        assert_eq!((request.path(), request.query()), (path, query));
        assert!(target.as_bytes().ends_with(request.target()));
    };
    check("/", "/", None);
    check("/a/b", "/a/b", None);
    check("/a?b=c", "/a", Some("b=c"));
    check("/a?", "/a", Some(""));
    check("/a?b?c", "/a", Some("b?c"));
    check("http://h/a?b", "/a", Some("b"));
}

#[test]
fn a_request_line_has_three_parts() {
    const BAD: &str = "400 The request line is not `METHOD TARGET HTTP/1.1`.";
    check_line("GET / HTTP/1.1", "accepted");
    check_line("GET  / HTTP/1.1", "400 The request target has a character it must not have.");
    check_line("GET / a HTTP/1.1", "400 The request target has a character it must not have.");
    check_line("GET /\tHTTP/1.1", BAD);
    check_line("GET /", BAD);
    check_line("GET", BAD);
    check_line(" GET / HTTP/1.1", BAD);
    check_line("G(T / HTTP/1.1", BAD);
    check_line(&format!("{} / HTTP/1.1", "X".repeat(33)), BAD);
    check_line("GET / http/1.1", BAD);
    check_line("GET / HTTP/1.1 ", BAD);
    check_line("GET  HTTP/1.1", "400 The request target has a character it must not have.");
}

#[test]
fn other_versions_are_not_spoken() {
    const BAD: &str = "505 Only HTTP/1.1 and HTTP/1.0 are spoken here.";
    for version in ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/1.10", "HTTP/11"] {
        check_line(&format!("GET / {version}"), BAD);
    }
}

#[test]
fn a_target_is_a_path_or_a_url_of_the_named_host() {
    const BAD: &str = "400 The request target is neither a path nor a URL.";
    check_line("GET http://h/a HTTP/1.1", "accepted");
    check_line("GET HTTPS://H/a HTTP/1.1", "accepted");
    check_line("OPTIONS * HTTP/1.1", "accepted");
    check_line("GET * HTTP/1.1", BAD);
    check_line("GET a HTTP/1.1", BAD);
    check_line("GET h:80 HTTP/1.1", BAD);
    check_line("GET ftp://h/a HTTP/1.1", BAD);
    check_line("GET http://h HTTP/1.1", BAD);
    check_line("GET http://h?a/b HTTP/1.1", BAD);
    check_line("GET http:///a HTTP/1.1", "400 The Host is not the host of the request target.");
    check_line("GET http://x/a HTTP/1.1", "400 The Host is not the host of the request target.");
    check_line("GET http://u@h/a HTTP/1.1", "400 The Host is not the host of the request target.");
    check_line("GET /a#b HTTP/1.1", "400 The request target has a character it must not have.");
    check_line("GET /\u{e4} HTTP/1.1", "400 The request target has a character it must not have.");
    check_line("CONNECT h:80 HTTP/1.1", "501 CONNECT is not offered here.");
}

#[test]
fn there_is_exactly_one_host() {
    check_refused("GET / HTTP/1.1\r\n\r\n", "400 The request has no Host.");
    check_refused("GET / HTTP/1.0\r\n\r\n", "accepted");
    check_lines("Host: h\r\n", "400 The request has more than one Host.");
    for host in [
        "", "a b", "a/b", "a@b", "a,b", "a\\b", "a?b", "a\"b", "\u{e4}", ":80", "a:b", "a:1:2",
        "a:123456", "[::1", "::1", "[]", "[::1]x", "[a/b]:1", "[::1]]:1", "a[::1]",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        check_refused(&head, "400 The Host is not a host name with a port.");
    }
    for host in ["a", "a.example:8080", "127.0.0.1", "[::1]:80", "[::1]", "a_b", "a.:80", "a:"] {
        check_refused(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "accepted");
    }
}

#[test]
fn only_one_length_is_believed() {
    const BAD: &str = "400 The Content-Length is not a number.";
    assert_eq!(with("").unwrap().framing, Framing::Empty);
    assert_eq!(with("Content-Length: 0\r\n").unwrap().framing, Framing::Length(0));
    assert_eq!(with("content-length: 0042\r\n").unwrap().framing, Framing::Length(42));
    for length in ["", "-1", "+1", "1 2", "1,1", "0x1", "1.0", "9999999999999999999"] {
        check_lines(&format!("Content-Length: {length}\r\n"), BAD);
    }
    let twice = "400 The request has more than one Content-Length.";
    check_lines("Content-Length: 1\r\nContent-Length: 1\r\n", twice);
    check_lines("Content-Length: 1\r\nContent-Length: 2\r\n", twice);
}

#[test]
fn chunked_is_the_only_encoding() {
    assert_eq!(with("Transfer-Encoding: Chunked\r\n").unwrap().framing, Framing::Chunked);
    let both = "400 The request has both Content-Length and Transfer-Encoding.";
    check_lines("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", both);
    check_lines("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", both);
    let last = "400 The last Transfer-Encoding is not chunked.";
    for encoding in ["xchunked", "identity", "chunked, gzip", "\"chunked\"", "chunked;q=1", ""] {
        check_lines(&format!("Transfer-Encoding: {encoding}\r\n"), last);
    }
    let others = "501 Of transfer encodings only chunked is offered here.";
    check_lines("Transfer-Encoding: gzip, chunked\r\n", others);
    check_lines("Transfer-Encoding: chunked, chunked\r\n", others);
    let twice = "400 The request has more than one Transfer-Encoding.";
    check_lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", twice);
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_refused(old, "400 HTTP/1.0 has no Transfer-Encoding.");
}

#[test]
fn a_connection_is_kept_unless_version_or_client_say_otherwise() {
    let keep = |version: &str, lines: &str| {
        read(&format!("GET / {version}\r\nHost: h\r\n{lines}\r\n")).unwrap().keep_alive
    };
    assert!(keep("HTTP/1.1", ""));
    assert!(keep("HTTP/1.1", "Connection: keep-alive\r\n"));
    assert!(!keep("HTTP/1.1", "Connection: Close\r\n"));
    assert!(!keep("HTTP/1.1", "Connection: keep-alive, close\r\n"));
    assert!(!keep("HTTP/1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
    assert!(!keep("HTTP/1.0", ""));
    assert!(keep("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

#[test]
fn only_a_continue_can_be_expected() {
    assert!(with("Expect: 100-Continue\r\n").unwrap().expects_continue);
    check_lines("Expect: tea\r\n", "417 Only 100-continue can be expected.");
    let old = read("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").unwrap();
    assert!(!old.expects_continue, "HTTP/1.0 clients cannot read an interim answer");
}

#[test]
fn what_was_read_before_leaves_no_trace() {
    let mut request = Request::new();
    let first = "POST /a?b HTTP/1.0\r\nHost: h\r\nConnection: keep-alive, x-a\r\nTE: trailers\r\n\
                 Expect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    request.read(first.as_bytes().to_vec()).unwrap();
    request.read(b"GET /c HTTP/1.1\r\nHost: g\r\n\r\n".to_vec()).unwrap();
    assert_eq!(request.method(), Method::GET);
    assert_eq!((request.target(), request.query()), (&b"/c"[..], None));
    assert_eq!((request.host(), request.framing), (Some("g"), Framing::Empty));
    assert!(request.keep_alive && !request.is_old);
    assert!(!request.names_fields && !request.expects_continue && !request.wants_trailers);
    assert_eq!(request.lines().count(), 1);
}
