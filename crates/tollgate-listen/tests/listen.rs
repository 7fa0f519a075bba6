//! Workers over real sockets: accepting, bounds, time-outs and draining.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    convert::Infallible,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    service::service_fn,
};
use tokio::sync::Notify;
use tollgate_listen::{DrainReport, HttpServer, HttpSettings, Sockets, Workers};

const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Nothing here takes longer unless it is broken.
const SOON: Duration = Duration::from_secs(10);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// A server whose `/` answers at once and whose other paths wait for `gate`.
struct Server {
    sockets: Sockets,
    workers: Workers,
    gate: Arc<Notify>,
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn server(workers: usize, settings: HttpSettings, connections_max: usize) -> Server {
    let sockets = Sockets::bind(LOOPBACK, workers).unwrap().with_connections_max(connections_max);
    let (gate, waiting) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let dropped = Arc::new(AtomicBool::new(false));
    let started = Workers::start(workers, "test", {
        let (sockets, gate, waiting) = (sockets.clone(), gate.clone(), waiting.clone());
        let dropped = dropped.clone();
        move |worker| {
            let (gate, waiting, dropped) = (gate.clone(), waiting.clone(), dropped.clone());
            let make = move |_peer| {
                let (gate, waiting, dropped) = (gate.clone(), waiting.clone(), dropped.clone());
                service_fn(move |request: Request<Incoming>| {
                    let (gate, waiting) = (gate.clone(), waiting.clone());
                    let dropped = SetOnDrop(dropped.clone());
                    async move {
                        if request.uri() != "/" {
                            let wait = gate.notified();
                            waiting.fetch_add(1, SeqCst);
                            wait.await;
                        }
                        drop(dropped);
                        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
                    }
                })
            };
            worker.listen(&sockets, HttpServer::new(settings.clone(), make));
        }
    });
    Server { sockets, workers: started.unwrap(), gate, waiting, dropped }
}

impl Server {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.sockets.local_addr()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    }

    fn wait_until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        wait_until(what, || done(self));
    }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let (_keep, never) = mpsc::channel::<()>();
    for _ in 0..1_000 {
        if done() {
            return;
        }
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"hello") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap() == 0 {
            break;
        }
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn an_address_in_use_is_named_with_the_cause() {
    let taken = TcpListener::bind(LOOPBACK).unwrap();
    let addr = taken.local_addr().unwrap();
    let error = Sockets::bind(addr, 2).unwrap_err().to_string();
    assert_eq!(error, format!("cannot listen on {addr}: Address already in use (os error 98)"));
}

#[test]
fn a_second_program_cannot_share_the_address() {
    let first = Sockets::bind(LOOPBACK, 2).unwrap();
    assert!(Sockets::bind(first.local_addr(), 2).is_err());
}

#[test]
fn all_workers_share_the_port_that_was_taken() {
    let server = server(3, HttpSettings::default(), usize::MAX);
    for _ in 0..30 {
        let mut stream = server.connect();
        stream.write_all(GET).unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200 OK"));
    }
    assert_eq!(server.sockets.tally().accepted, 30);
}

#[test]
fn pipelined_requests_are_all_answered() {
    let server = server(1, HttpSettings::default(), usize::MAX);
    let mut stream = server.connect();
    stream.write_all(&GET.repeat(3)).unwrap();
    for _ in 0..3 {
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200 OK"));
    }
}

#[test]
fn a_connection_too_many_is_closed_and_counted() {
    let server = server(2, HttpSettings::default(), 2);
    let mut held = [server.connect(), server.connect()];
    for stream in &mut held {
        stream.write_all(GET).unwrap();
        answer(stream);
    }
    assert!(is_closed(&mut server.connect()));
    assert_eq!(server.sockets.tally().turned_away, 1);

    drop(held);
    server.wait_until("closing", |server| server.sockets.tally().open == 0);
    let mut stream = server.connect();
    stream.write_all(GET).unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_head_that_does_not_arrive_in_time_ends_the_connection() {
    let settings =
        HttpSettings { head_timeout: Duration::from_millis(100), ..HttpSettings::default() };
    let server = server(1, settings, usize::MAX);
    let mut slow = server.connect();
    slow.write_all(&GET[..10]).unwrap();
    assert!(is_closed(&mut slow));

    // A request resets the time; then it runs again.
    let mut idle = server.connect();
    idle.write_all(GET).unwrap();
    answer(&mut idle);
    assert!(is_closed(&mut idle));
}

#[test]
fn a_slow_answer_is_not_cut_by_the_time_for_heads() {
    let settings =
        HttpSettings { head_timeout: Duration::from_millis(50), ..HttpSettings::default() };
    let server = server(1, settings, usize::MAX);
    let mut slow = server.connect();
    slow.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    // Another connection that does run out of time shows that enough of it has passed.
    assert!(is_closed(&mut server.connect()));
    assert!(is_closed(&mut server.connect()));
    server.gate.notify_waiters();
    assert!(answer(&mut slow).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_client_that_asks_and_does_not_read_is_given_up() {
    let settings =
        HttpSettings { write_timeout: Duration::from_millis(100), ..HttpSettings::default() };
    let server = server(1, settings, 10);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(SOON)).unwrap();
    let many = GET.repeat(1_000);
    let error = loop {
        if let Err(error) = stream.write_all(&many) {
            break error;
        }
    };
    let is_closed =
        matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
    assert!(is_closed, "{error}");
    server.wait_until("the end", |server| server.sockets.tally().open == 0);
}

#[test]
fn a_client_that_hangs_up_frees_what_it_waited_for() {
    let server = server(1, HttpSettings::default(), usize::MAX);
    let mut stream = server.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    server.wait_until("the request", |server| server.waiting.load(SeqCst) == 1);
    drop(stream);
    server.wait_until("the drop", |server| server.dropped.load(SeqCst));
}

// part of: G5
#[test]
fn stopping_lets_requests_in_flight_finish_and_closes_idle_connections() {
    let server = server(2, HttpSettings::default(), usize::MAX);
    let mut idle = server.connect();
    idle.write_all(GET).unwrap();
    answer(&mut idle);
    let mut busy = server.connect();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    server.wait_until("the request", |server| server.waiting.load(SeqCst) == 1);

    let (addr, gate, workers) = (server.sockets.local_addr(), server.gate, server.workers);
    let stopping = std::thread::spawn(move || workers.stop(SOON));
    assert!(is_closed(&mut idle));
    // Each worker stops in its own time; what one still accepts meanwhile is closed like an
    // idle connection.
    wait_until("the end of listening", || TcpStream::connect(addr).is_err());
    gate.notify_waiters();
    let answer = answer(&mut busy);
    assert!(answer.contains("connection: close"), "{answer}");
    let report = stopping.join().unwrap();
    assert!(report.finished >= 2 && report.aborted == 0, "{report:?}");
}

/// Whoever was told that it is connected is served, also if its connection still waited to be
/// accepted when the word to stop came.
// part of: G5
#[test]
fn connections_that_wait_to_be_accepted_are_served_before_stopping() {
    let sockets = Sockets::bind(LOOPBACK, 1).unwrap();
    let (block, blocked) = mpsc::channel::<mpsc::Receiver<()>>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let (entered, has_entered) = mpsc::channel();
    let workers = Workers::start(1, "test", {
        let sockets = sockets.clone();
        move |worker| {
            let (blocked, entered) = (blocked.clone(), entered.clone());
            let make = move |_peer| {
                let (blocked, entered) = (blocked.clone(), entered.clone());
                service_fn(move |request: Request<Incoming>| {
                    if request.uri() == "/block" {
                        // Holds the thread, so that nothing is accepted meanwhile.
                        entered.send(()).unwrap();
                        let _ = blocked.lock().unwrap().recv().unwrap().recv();
                    }
                    std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(
                        "hello",
                    ))))
                })
            };
            worker.listen(&sockets, HttpServer::new(HttpSettings::default(), make));
        }
    });
    let connect = || {
        let stream = TcpStream::connect(sockets.local_addr()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    };
    let mut first = connect();
    first.write_all(b"GET /block HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    has_entered.recv_timeout(SOON).unwrap();
    let mut waiting: Vec<_> = (0..20).map(|_| connect()).collect();
    for stream in &mut waiting {
        stream.write_all(GET).unwrap();
    }
    let (unblock, unblocked) = mpsc::channel();
    block.send(unblocked).unwrap();
    let stopping = std::thread::spawn(move || {
        // The thread is let go by the end of this one's time slice at the earliest, and stopping
        // begins with the word.
        drop(unblock);
        workers.unwrap().stop(SOON)
    });
    for stream in waiting.iter_mut().chain([&mut first]) {
        assert!(answer(stream).ends_with("hello"));
    }
    assert_eq!(stopping.join().unwrap().aborted, 0);
}

// part of: G5
#[test]
fn what_does_not_finish_in_time_is_cut_off() {
    let server = server(1, HttpSettings::default(), usize::MAX);
    let mut busy = server.connect();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    server.wait_until("the request", |server| server.waiting.load(SeqCst) == 1);
    let report = server.workers.stop(Duration::from_millis(50));
    assert_eq!(report, DrainReport { finished: 0, aborted: 1 });
    assert!(is_closed(&mut busy));
}
