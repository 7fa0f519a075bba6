//! How much an HTTP/1.1 server can take: many kept connections, each with one request in flight.
//!
//! One thread drives all connections by epoll, so that on a small machine the generator takes
//! little from what it measures: per request one write, one read and a share of one wait. The run
//! ends after a fixed number of requests, because processor time per request is the figure we are
//! after; the time bound only stops a server that hangs.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use mio::{Events, Interest, Poll, Token, net::TcpStream};

use crate::{
    response::{Skipped, skip},
    stopwatch::Stopwatch,
    wait::PATIENCE,
};

/// A server that breaks more connections than this is not worth further measuring.
const ERRORS_MAX: u64 = 1_000;

/// What to send, where to, and when to stop.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// The server.
    pub addr: SocketAddr,
    /// How many connections are kept open, each with one request in flight.
    pub connections: usize,
    /// Requests as bytes, sent one after the other, over and over.
    pub requests: &'a [Vec<u8>],
    /// How many responses to wait for.
    pub count: u64,
    /// After this long the run ends whatever has come by then.
    pub time_max: Duration,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// From the first request to the last response.
    pub elapsed: Duration,
    /// How many responses had each status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that got no response, or a broken one.
    pub errors: u64,
    latencies: Vec<Duration>,
}

impl Report {
    /// How many responses came.
    pub fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Responses per second.
    pub fn per_second(&self) -> f64 {
        self.answered() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency that `share` (0.99: 99 %) of the responses did not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, reason = "a share of an index is an index")]
        let rank = (last as f64 * share.clamp(0.0, 1.0)).round() as usize;
        self.latencies.get(rank).copied().unwrap_or_default()
    }
}

impl Load<'_> {
    /// Sends the load from the current thread.
    pub fn run(&self) -> io::Result<Report> {
        let mut run = Run::new(self)?;
        for token in 0..self.connections {
            run.open(token)?;
        }
        run.until_done()?;
        run.report.elapsed = run.watch.elapsed();
        run.report.latencies.sort_unstable();
        Ok(run.report)
    }
}

struct Run<'a> {
    load: &'a Load<'a>,
    poll: Poll,
    connections: Vec<Connection<'a>>,
    watch: Stopwatch,
    sent: u64,
    report: Report,
}

struct Connection<'a> {
    stream: TcpStream,
    received: Vec<u8>,
    unsent: &'a [u8],
    since: Stopwatch,
    busy: bool,
}

/// What a readable connection turned out to hold.
enum Progress {
    Waiting,
    Answered { status: u16, closes: bool },
    Failed,
}

impl<'a> Run<'a> {
    fn new(load: &'a Load<'a>) -> io::Result<Self> {
        Ok(Self {
            load,
            poll: Poll::new()?,
            connections: Vec::with_capacity(load.connections),
            watch: Stopwatch::start(),
            sent: 0,
            report: Report::default(),
        })
    }

    fn until_done(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(self.load.connections.max(1));
        while self.goes_on() {
            let left = self.load.time_max.saturating_sub(self.watch.elapsed());
            match self.poll.poll(&mut events, Some(left)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.step(event.token().0)?;
            }
        }
        Ok(())
    }

    fn goes_on(&self) -> bool {
        let done = self.report.answered() + self.report.errors;
        done < self.load.count
            && self.report.errors < ERRORS_MAX
            && self.watch.elapsed() < self.load.time_max
    }

    /// Opens (or opens again) the connection of that number and sends its first request.
    fn open(&mut self, token: usize) -> io::Result<()> {
        let stream = std::net::TcpStream::connect_timeout(&self.load.addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(token), interest)?;
        let connection = Connection {
            stream,
            received: Vec::with_capacity(16 * 1024),
            unsent: &[],
            since: self.watch,
            busy: false,
        };
        // The old one, if any, is closed by being replaced.
        match self.connections.get_mut(token) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
        self.send_next(token);
        Ok(())
    }

    fn send_next(&mut self, token: usize) {
        if self.sent >= self.load.count {
            return;
        }
        let turn = usize::try_from(self.sent).unwrap_or(0) % self.load.requests.len();
        self.sent += 1;
        let connection = &mut self.connections[token];
        connection.unsent = &self.load.requests[turn];
        connection.since = Stopwatch::start();
        connection.busy = true;
        // A failed write shows again as a failed read.
        let _ = connection.write();
    }

    fn step(&mut self, token: usize) -> io::Result<()> {
        match self.connections[token].advance() {
            Progress::Waiting => Ok(()),
            Progress::Answered { status, closes } => {
                self.count(token, status);
                if closes {
                    return self.open(token);
                }
                self.send_next(token);
                Ok(())
            }
            Progress::Failed => {
                self.report.errors += 1;
                self.open(token)
            }
        }
    }

    fn count(&mut self, token: usize, status: u16) {
        self.report.latencies.push(self.connections[token].since.elapsed());
        *self.report.statuses.entry(status).or_default() += 1;
    }
}

impl Connection<'_> {
    fn advance(&mut self) -> Progress {
        if !self.busy || self.write().is_err() {
            return if self.busy { Progress::Failed } else { Progress::Waiting };
        }
        loop {
            match self.read() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waiting,
                Err(_) | Ok(0) => return Progress::Failed,
                Ok(_) => {}
            }
            match skip(&self.received) {
                Skipped::Part => {}
                Skipped::Broken => return Progress::Failed,
                Skipped::Whole { status, length, closes } => {
                    self.received.drain(..length);
                    self.busy = false;
                    return Progress::Answered { status, closes };
                }
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent) {
                Ok(count) => self.unsent = &self.unsent[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer)?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// A server that answers every request of every connection with the next of `answers`.
    fn answering(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut request = [0; 1024];
                    for answer in answers.iter().cycle() {
                        if matches!(stream.read(&mut request), Ok(0) | Err(_)) {
                            return;
                        }
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        addr
    }

    fn run(addr: SocketAddr, count: u64) -> Report {
        let requests = [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()];
        let load = Load { addr, connections: 4, requests: &requests, count, time_max: PATIENCE };
        load.run().unwrap()
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    const TOO_MANY: &str = "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n\
                            2\r\nno\r\n0\r\n\r\n";
    const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn every_response_is_counted_by_its_status() {
        let report = run(answering(&[OK, TOO_MANY]), 400);
        assert_eq!((report.answered(), report.errors), (400, 0));
        assert_eq!(report.statuses.keys().copied().collect::<Vec<_>>(), [200, 429]);
        assert!(report.latency(0.5) <= report.latency(0.99));
        assert!(report.latency(1.0) <= report.elapsed);
        assert!(report.per_second() > 0.0);
    }

    #[test]
    fn a_connection_the_server_closes_is_opened_again() {
        let report = run(answering(&[OK, LAST]), 40);
        assert_eq!((report.answered(), report.errors), (40, 0));
    }

    #[test]
    fn broken_responses_are_errors() {
        let report = run(answering(&[OK, "nonsense\r\n\r\n"]), 40);
        assert_eq!(report.answered() + report.errors, 40);
        assert!(report.errors >= 10);
    }

    #[test]
    fn a_server_that_hangs_is_left_after_the_bound() {
        let requests = [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()];
        let addr = answering(&[""]);
        let time_max = Duration::from_millis(20);
        let load = Load { addr, connections: 1, requests: &requests, count: 1, time_max };
        assert_eq!(load.run().unwrap().answered(), 0);
    }
}
