//! A gateway, clients and upstreams over real sockets, all of them in bytes.
//!
//! Nothing here waits for longer than [`SOON`]: a read that takes longer fails its test.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use socket2::{Domain, Socket, Type};
use tollgate_engine::{Engine, Rules};
use tollgate_gateway::{Context, Gateway, Settings};
use tollgate_listen::{DrainReport, Sockets, Workers};
use tollgate_rules::Config;
use tollgate_store::{MemoryConfig, MemoryStore, Store};
use tollgate_telemetry::{AccessLog, Exposition, Metrics};
use tollgate_testkit::ManualClock;

/// Nothing takes longer unless it is broken.
pub const SOON: Duration = Duration::from_secs(10);

/// How long something must not happen for a test to believe that it never does.
pub const A_WHILE: Duration = Duration::from_millis(150);

/// A running gateway.
pub struct Running {
    pub addr: SocketAddr,
    pub clock: ManualClock,
    pub engine: Arc<Engine>,
    pub metrics: Arc<Metrics>,
    sockets: Sockets,
    workers: Workers,
}

pub fn config(yaml: &str) -> Config {
    tollgate_rules::read("test.yaml", yaml, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

/// One worker, so that what connections share can be seen.
pub fn gateway(yaml: &str) -> Running {
    start(config(yaml), 1, None)
}

pub fn start(config: Config, workers: usize, access_log: Option<Arc<AccessLog>>) -> Running {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), Arc::new(clock.clone())));
    start_on(store, clock, config, workers, access_log)
}

/// The same on any store.
pub fn start_on(
    store: Arc<dyn Store>,
    clock: ManualClock,
    config: Config,
    workers: usize,
    access_log: Option<Arc<AccessLog>>,
) -> Running {
    let metrics = Arc::new(Metrics::new());
    let rules = Rules::new(config.rules, config.client.ipv6_prefix);
    let engine = Arc::new(Engine::new(store, rules));
    let context = Context {
        engine: engine.clone(),
        metrics: metrics.clone(),
        access_log,
        clock: Arc::new(clock.clone()),
        settings: Settings {
            gateway: config.gateway,
            client: config.client,
            headers: config.headers,
        },
    };
    let sockets = Sockets::bind("127.0.0.1:0".parse().unwrap(), workers).unwrap();
    let listening = sockets.clone();
    let workers = Workers::start(workers, "gateway", move |worker| {
        worker.listen(&listening, Gateway::new(context.clone()));
    });
    let addr = sockets.local_addr();
    Running { addr, clock, engine, metrics, sockets, workers: workers.unwrap() }
}

impl Running {
    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.addr).unwrap())
    }

    /// Sends one request on a connection of its own.
    pub fn ask(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer()
    }

    /// A GET of this path.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&get(path))
    }

    /// Puts other rules in force.
    pub fn reload(&self, yaml: &str) {
        let config = config(yaml);
        self.engine.replace(Rules::new(config.rules, config.client.ipv6_prefix));
    }

    pub fn open_connections(&self) -> usize {
        self.sockets.tally().open
    }

    /// The lines of the metrics page that begin so.
    pub fn counted(&self, name: &str) -> Vec<String> {
        let page = self.metrics.encode(Exposition::Text);
        page.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    pub fn stop(self, within: Duration) -> DrainReport {
        self.workers.stop(within)
    }
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

/// A route on `/` to these upstreams, and whatever else.
pub fn route_to(upstreams: &[&Upstream], more: &str) -> String {
    let urls: Vec<_> = upstreams.iter().map(|upstream| format!("\"{}\"", upstream.url())).collect();
    format!(
        "routes:\n  - id: 550e8400-e29b-41d4-a716-446655440000\n    path: /\n    upstreams: [{}]\n{more}",
        urls.join(", ")
    )
}

/// A client, byte by byte.
pub struct Client {
    pub stream: TcpStream,
}

/// An answer as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub head: String,
    pub body: String,
}

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).unwrap();
    }

    /// Reads one answer, interim ones included; a body by its length or its chunks.
    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    /// Reads the answer to a request of this method.
    pub fn answer_to(&mut self, method: &str) -> Answer {
        let head = self.head();
        let status = head.get(9..12).unwrap_or("none");
        let is_bare =
            method == "HEAD" || status.starts_with('1') || ["204", "304"].contains(&status);
        let body = if is_bare {
            String::new()
        } else if let Some(length) = value(&head, "content-length") {
            self.exactly(length.parse().unwrap())
        } else if value(&head, "transfer-encoding").is_some() {
            self.chunks()
        } else {
            self.rest()
        };
        Answer { head, body }
    }

    /// Reads up to and with the empty line.
    pub fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if self.stream.read(&mut byte).unwrap_or_else(|error| panic!("{error} after {head:?}"))
                == 0
            {
                break;
            }
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()
    }

    pub fn exactly(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads a chunked body, with its framing.
    pub fn chunks(&mut self) -> String {
        let mut bytes = Vec::new();
        while bytes != b"0\r\n\r\n" && !bytes.ends_with(b"\r\n0\r\n\r\n") {
            let mut byte = [0];
            if self.stream.read(&mut byte).unwrap() == 0 {
                break;
            }
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Reads to the end of the connection.
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Whether the other side has closed, in order or not; waits for it.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Whether nothing comes for a while.
    pub fn is_silent(&mut self) -> bool {
        self.stream.set_read_timeout(Some(A_WHILE)).unwrap();
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(SOON)).unwrap();
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        value(&self.head, name)
    }
}

/// The value of a header in a head; the name in any case.
pub fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A server behind the gateway that records what it was sent.
pub struct Upstream {
    pub addr: SocketAddr,
    seen: mpsc::Receiver<String>,
    _taken: Option<Socket>,
}

/// One connection to it.
pub struct Connection {
    pub client: Client,
    /// Which connection this is, from 0.
    pub number: usize,
    seen: mpsc::Sender<String>,
}

impl Upstream {
    /// Runs `serve` with every connection, each on a thread of its own.
    pub fn with(serve: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, seen) = mpsc::channel();
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let client = Client::new(stream.unwrap());
                let connection = Connection { client, number, seen: sender.clone() };
                let serve = serve.clone();
                thread::spawn(move || serve(connection));
            }
        });
        Self { addr, seen, _taken: None }
    }

    /// Answers every request with `answer`, on kept connections.
    pub fn answering(answer: &str) -> Self {
        let answer = answer.to_owned();
        Self::with(move |mut connection| {
            while connection.request().is_some() {
                connection.client.send(&answer);
            }
        })
    }

    /// Answers every request with a 200 and this body.
    pub fn saying(body: &str) -> Self {
        Self::answering(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// An address that is taken, so that nobody else can have it, but that nobody listens on.
    pub fn dead() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        let addr = socket.local_addr().unwrap().as_socket().unwrap();
        Self { addr, seen: mpsc::channel().1, _taken: Some(socket) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The next request that reached it, as bytes.
    pub fn request(&self) -> String {
        self.seen.recv_timeout(SOON).unwrap()
    }

    /// Requests that have reached it and were not looked at.
    pub fn requests(&self) -> Vec<String> {
        self.seen.try_iter().collect()
    }
}

impl Connection {
    /// Reads and records one request; none if the connection has ended.
    pub fn request(&mut self) -> Option<String> {
        let head = self.head()?;
        let body = if let Some(length) = value(&head, "content-length") {
            self.client.exactly(length.parse().unwrap())
        } else if value(&head, "transfer-encoding").is_some() {
            self.client.chunks()
        } else {
            String::new()
        };
        let request = head + &body;
        let _ = self.seen.send(request.clone());
        Some(request)
    }

    /// Reads a head, without recording it.
    pub fn head(&mut self) -> Option<String> {
        // Kept connections may be idle for as long as a test takes.
        self.client.stream.set_read_timeout(None).unwrap();
        let mut first = [0];
        let some = self.client.stream.peek(&mut first).is_ok_and(|count| count > 0);
        self.client.stream.set_read_timeout(Some(SOON)).unwrap();
        some.then(|| self.client.head())
    }

    /// Records a text as if it were a request.
    pub fn record(&self, text: impl Into<String>) {
        let _ = self.seen.send(text.into());
    }
}
