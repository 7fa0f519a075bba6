//! Connections to the servers behind us: opening, keeping, and handing them out again.
//!
//! Each worker keeps its own, so nothing is locked. The one used last is handed out first: it is
//! the least likely to have been closed, and the others can grow old and be dropped. A kept
//! connection is watched only when it is looked at: one that has become readable is dead,
//! because an upstream has nothing to say unasked.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::net::TcpStream;
use tollgate_rules::{Upstream as Rule, UpstreamKind};

/// As many as one worker can have in flight to one server without opening new ones each time;
/// beyond it a burst pays for its own connections.
const IDLE_MAX: usize = 256;

/// How often connections that have grown old are looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How many sweeps a kept connection outlives: half a minute, shorter than the keep-alive time of
/// most servers, so that we, not they, close first. Counted in sweeps, a request need not ask
/// for the time.
const IDLE_SWEEPS_MAX: u64 = 6;

/// One server, as one worker sees it.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// `host:port`.
    pub(crate) authority: Box<str>,
    target: Target,
    idle: RefCell<VecDeque<Idle>>,
    sweeps: Cell<u64>,
    fails: Cell<bool>,
}

#[derive(Debug)]
enum Target {
    Addr(SocketAddr),
    Name(Box<str>, u16),
    Echo,
}

#[derive(Debug)]
struct Idle {
    stream: TcpStream,
    since: u64,
}

impl Upstream {
    fn new(rule: &Rule) -> Self {
        let target = match (rule.kind, rule.host.parse::<IpAddr>()) {
            (UpstreamKind::Echo, _) => Target::Echo,
            (UpstreamKind::Http, Ok(ip)) => Target::Addr(SocketAddr::new(ip, rule.port)),
            (UpstreamKind::Http, Err(_)) => Target::Name(rule.host.clone(), rule.port),
        };
        let (idle, sweeps, fails) = Default::default();
        Self { authority: rule.authority.clone(), target, idle, sweeps, fails }
    }

    /// Whether the gateway answers by itself.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self.target, Target::Echo)
    }

    /// A kept connection that is still alive.
    pub(crate) fn kept(&self, cx: &mut Context<'_>) -> Option<TcpStream> {
        let mut idle = self.idle.borrow_mut();
        while let Some(Idle { stream, .. }) = idle.pop_back() {
            if is_silent(&stream, cx) {
                return Some(stream);
            }
        }
        None
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = match &self.target {
            Target::Addr(addr) => TcpStream::connect(addr).await?,
            Target::Name(host, port) => TcpStream::connect((&**host, *port)).await?,
            Target::Echo => return Err(io::Error::other("there is nothing to connect to")),
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(crate) fn keep(&self, stream: TcpStream) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < IDLE_MAX {
            idle.push_back(Idle { stream, since: self.sweeps.get() });
        }
    }

    /// Remembers how the last try to reach the server went; says so when that has changed, not
    /// for every request.
    pub(crate) fn note(&self, reached: Result<(), &dyn std::fmt::Display>) {
        let fails = reached.is_err();
        if self.fails.replace(fails) == fails {
            return;
        }
        match reached {
            Ok(()) => tracing::info!(upstream = %self.authority, "the upstream answers again"),
            Err(cause) => tracing::warn!(upstream = %self.authority, %cause, "the upstream fails"),
        }
    }

    fn sweep(&self) {
        let now = self.sweeps.get() + 1;
        self.sweeps.set(now);
        let mut idle = self.idle.borrow_mut();
        while idle.front().is_some_and(|oldest| now - oldest.since > IDLE_SWEEPS_MAX) {
            idle.pop_front();
        }
        let mut nobody = Context::from_waker(std::task::Waker::noop());
        idle.retain(|idle| is_silent(&idle.stream, &mut nobody));
    }
}

/// Whether the other side has neither sent nor closed. What the runtime remembers of the socket
/// nearly always answers that without a system call.
fn is_silent(stream: &TcpStream, cx: &mut Context<'_>) -> bool {
    match stream.poll_read_ready(cx) {
        Poll::Pending => true,
        Poll::Ready(Err(_)) => false,
        Poll::Ready(Ok(())) => {
            let read = stream.try_read(&mut [0]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        }
    }
}

/// All servers that one worker knows. They outlive reloads, with their connections.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    known: RefCell<HashMap<Box<str>, Rc<Upstream>>>,
    /// Whether somebody sweeps.
    pub(crate) sweeping: Cell<bool>,
}

impl Upstreams {
    /// The server of this rule, with the connections it has.
    pub(crate) fn get(&self, rule: &Rule) -> Rc<Upstream> {
        let mut known = self.known.borrow_mut();
        let upstream = known.entry(rule.authority.clone());
        Rc::clone(upstream.or_insert_with(|| Rc::new(Upstream::new(rule))))
    }

    /// Lets go of servers that no rule names any more.
    pub(crate) fn retain_used(&self) {
        self.known.borrow_mut().retain(|_, upstream| Rc::strong_count(upstream) > 1);
    }

    /// Closes connections that have grown old or died.
    pub(crate) fn sweep(&self) {
        for upstream in self.known.borrow().values() {
            upstream.sweep();
        }
    }
}
