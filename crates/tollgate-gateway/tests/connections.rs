//! How connections are kept, shared and let go, on both sides.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Mutex, mpsc};

use support::{SOON, Upstream, gateway, get, route_to};
use tollgate_listen::DrainReport;
use tollgate_testkit::wait::{PATIENCE, wait_until};

/// Answers with the number of the connection that the request came on.
fn numbering() -> Upstream {
    Upstream::with(|mut connection| {
        while connection.request().is_some() {
            let number = connection.number;
            connection.client.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}"));
        }
    })
}

#[test]
fn one_connection_to_the_upstream_serves_one_request_after_the_other() {
    let upstream = numbering();
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    for _ in 0..5 {
        client.send(get("/"));
        assert_eq!(client.answer().body, "0");
        // Also for another client.
        assert_eq!(gateway.get("/").body, "0");
    }
}

#[test]
fn an_upstream_that_closes_is_believed() {
    for (answer, kept) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
    ] {
        let upstream = Upstream::with(move |mut connection| {
            while connection.request().is_some() {
                connection.record(format!("on {}", connection.number));
                connection.client.send(answer);
            }
        });
        let gateway = gateway(&route_to(&[&upstream], ""));
        let mut client = gateway.connect();
        for _ in 0..2 {
            client.send(get("/"));
            assert_eq!(client.answer().status(), 200);
        }
        let on = upstream.requests().into_iter().filter(|text| text.starts_with("on"));
        let expected = if kept { ["on 0", "on 0"] } else { ["on 0", "on 1"] };
        assert_eq!(on.collect::<Vec<_>>(), expected, "{answer}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let upstream = Upstream::with(|mut connection| {
        while let Some(request) = connection.request() {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
            connection.client.send(head + &path);
        }
    });
    let gateway = gateway(&route_to(&[&upstream], "").replace("path: /", "path: /a"));
    let mut client = gateway.connect();
    let paths = ["/a/1", "/none", "/a/2", "/a/3"];
    client.send(paths.map(get).concat());
    for path in paths {
        let answer = client.answer();
        assert_eq!(answer.body == path, path != "/none", "{path}: {}", answer.body);
    }
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    let request = "\r\nPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\nab\r\n0\r\n\r\n";
    for byte in request.repeat(2).bytes() {
        client.send([byte]);
    }
    assert_eq!([client.answer().body, client.answer().body], ["hello", "hello"]);
}

#[test]
fn a_client_may_ask_to_close() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned() + &get("/late"));
    let answer = client.answer();
    assert_eq!((answer.header("connection"), &*answer.body), (Some("close"), "hello"));
    assert!(client.is_closed());
    assert_eq!(upstream.requests().len(), 1, "what came after the last request was served");
}

#[test]
fn a_slow_reader_slows_its_upstream_down() {
    let (sent, progress) = mpsc::channel();
    let sent = Mutex::new(sent);
    let upstream = Upstream::with(move |mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
        for _ in 0..64 {
            connection.client.send("x".repeat(1 << 20));
            sent.lock().unwrap().send(()).unwrap();
        }
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(get("/"));
    client.head();
    // Until every buffer on the way is full, and then no more.
    let mut filled = 0;
    while progress.recv_timeout(support::A_WHILE).is_ok() {
        filled += 1;
    }
    assert!(filled < 40, "{filled} MiB went somewhere");
    assert_eq!(client.exactly(64 << 20).len(), 64 << 20);
}

#[test]
fn a_client_that_leaves_takes_its_upstream_connection_with_it() {
    let upstream = Upstream::with(|mut connection| {
        connection.request();
        connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel");
        assert!(connection.client.is_closed());
        connection.record("closed");
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut client = gateway.connect();
    client.send(get("/"));
    client.head();
    drop(client);
    assert!(upstream.request().starts_with("GET"));
    assert_eq!(upstream.request(), "closed");
    wait_until(PATIENCE, || gateway.open_connections() == 0).unwrap();
}

// part of: G5
#[test]
fn stopping_finishes_what_has_begun() {
    let (finish, finished) = mpsc::channel::<()>();
    let finished = Mutex::new(finished);
    let upstream = Upstream::with(move |mut connection| {
        while connection.request().is_some() {
            finished.lock().unwrap().recv().unwrap();
            connection.client.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let gateway = gateway(&route_to(&[&upstream], ""));
    let mut idle = gateway.connect();
    idle.send(get("/"));
    finish.send(()).unwrap();
    idle.answer();
    let mut busy = gateway.connect();
    busy.send(get("/"));
    upstream.request();
    upstream.request();

    let stopping = std::thread::spawn(move || gateway.stop(SOON));
    assert!(idle.is_closed());
    finish.send(()).unwrap();
    let answer = busy.answer();
    assert_eq!((answer.header("connection"), &*answer.body), (Some("close"), "hello"));
    assert!(busy.is_closed());
    assert_eq!(stopping.join().unwrap(), DrainReport { finished: 2, aborted: 0 });
}

/// What a client sends while the word to stop is on its way is not lost.
// part of: G5
#[test]
fn an_idle_client_may_ask_once_more_while_stopping() {
    let upstream = Upstream::saying("hello");
    let gateway = gateway(&route_to(&[&upstream], ""));
    let (addr, mut idle, mut leaver) = (gateway.addr, gateway.connect(), gateway.connect());
    for client in [&mut idle, &mut leaver] {
        client.send(get("/"));
        assert_eq!(client.answer().header("connection"), None);
    }
    let stopping = std::thread::spawn(move || gateway.stop(SOON));
    // Nobody listens any more once it stops.
    wait_until(PATIENCE, || std::net::TcpStream::connect(addr).is_err()).unwrap();
    idle.send(get("/"));
    let answer = idle.answer();
    assert_eq!((answer.header("connection"), &*answer.body), (Some("close"), "hello"));
    assert!(idle.is_closed() && leaver.is_closed());
    assert_eq!(stopping.join().unwrap().aborted, 0);
}

// part of: C9
#[test]
fn new_rules_hold_from_the_next_request_on_and_keep_connections() {
    let (old, new) = (numbering(), Upstream::saying("new"));
    let gateway = gateway(&route_to(&[&old], ""));
    let mut client = gateway.connect();
    let mut ask = |path: &str| {
        client.send(get(path));
        client.answer().body
    };
    assert_eq!(ask("/"), "0");
    let moved = route_to(&[&old], "").replace("path: /", "path: /old")
        + &route_to(&[&new], "").replace("routes:\n", "").replace("440000", "440001");
    gateway.reload(&moved);
    assert_eq!(ask("/"), "new");
    assert_eq!(ask("/old"), "0", "the connection to an upstream that stayed was not kept");
    gateway.reload("routes: []\n");
    assert!(ask("/old").contains("\"status\":404"));
}

#[test]
fn every_worker_serves() {
    let upstream = Upstream::saying("hello");
    let gateway = support::start(support::config(&route_to(&[&upstream], "")), 4, None);
    let mut clients: Vec<_> = (0..40).map(|_| gateway.connect()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            client.send(get("/"));
        }
        for client in &mut clients {
            assert_eq!(client.answer().body, "hello");
        }
    }
}

#[test]
fn a_name_is_looked_up() {
    let upstream = Upstream::saying("hello");
    let config = route_to(&[&upstream], "").replace("127.0.0.1", "localhost");
    assert_eq!(gateway(&config).get("/").body, "hello");
}
