use super::*;

fn read(head: &str, method: Method) -> Result<Response, BadAnswer> {
    let mut response = Response::new();
    response.read(head.as_bytes(), &method)?;
    Ok(response)
}

#[track_caller]
fn check(head: &str, method: Method, framing: Framing, keep_alive: bool) {
    let response = read(head, method).unwrap();
    assert_eq!((response.framing, response.keep_alive), (framing, keep_alive));
}

#[track_caller]
fn check_error(head: &str, expected: BadAnswer) {
    assert_eq!(read(head, Method::GET).map(|response| response.status), Err(expected));
}

#[test]
fn the_end_of_the_body_follows_from_status_method_and_lines() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
    check(length, Method::GET, Framing::Length(7), true);
    check(length, Method::HEAD, Framing::Empty, true);
    check(
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        Method::GET,
        Framing::Empty,
        true,
    );
    check("HTTP/1.1 204 No Content\r\n\r\n", Method::GET, Framing::Empty, true);
    check("HTTP/1.1 103 Early Hints\r\n\r\n", Method::GET, Framing::Empty, true);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(chunked, Method::GET, Framing::Chunked, true);
    check("HTTP/1.1 200 OK\r\n\r\n", Method::GET, Framing::UntilClose, false);
}

#[test]
fn a_connection_is_kept_unless_version_or_server_say_otherwise() {
    let check_kept = |version: &str, connection: &str, expected: bool| {
        let head = format!("{version} 200 OK\r\n{connection}Content-Length: 1\r\n\r\n");
        check(&head, Method::GET, Framing::Length(1), expected);
    };
    check_kept("HTTP/1.1", "", true);
    check_kept("HTTP/1.1", "Connection: close\r\n", false);
    check_kept("HTTP/1.0", "", false);
    check_kept("HTTP/1.0", "Connection: keep-alive\r\n", true);
}

#[test]
fn a_reason_may_be_missing_or_any_text() {
    for (line, text) in [
        ("HTTP/1.1 200 OK", "200 OK"),
        ("HTTP/1.1 200 ", "200 "),
        ("HTTP/1.1 200", "200"),
        ("HTTP/1.0 999 A b\u{e4}", "999 A b\u{e4}"),
    ] {
        let head = format!("{line}\r\n\r\n");
        let response = read(&head, Method::GET).unwrap();
        assert_eq!(response.status_text(head.as_bytes()), text.as_bytes());
    }
}

#[test]
fn what_clients_would_read_differently_is_refused() {
    for line in [
        "HTTP/2 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200",
        "",
        "hello",
        "HTTP/1.1 099 A",
        "HTTP/1.1 +20 A",
        "HTTP/1.1 200\u{1}",
    ] {
        check_error(&format!("{line}\r\n\r\n"), BadAnswer::StatusLine);
    }
    let ok = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
    check_error(&ok("Content-Length: 1\r\nContent-Length: 1\r\n"), BadAnswer::Length);
    check_error(&ok("Content-Length: a\r\n"), BadAnswer::Length);
    check_error(&ok("Transfer-Encoding: gzip\r\n"), BadAnswer::Encoding);
    check_error(&ok("Transfer-Encoding: gzip, chunked\r\n"), BadAnswer::Encoding);
    let both = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n";
    check_error(&ok(both), BadAnswer::LengthAndEncoding);
    check_error(&ok("a : b\r\n"), BadAnswer::Head(HeadError::BadName));
    check_error("HTTP/1.1 101 Switching Protocols\r\n\r\n", BadAnswer::Switch);
}
