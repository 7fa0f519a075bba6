//! A TCP link on loopback that misbehaves on command.
//!
//! It stands between a client and any server and passes bytes on, until it is told to do something
//! else: swallow them, hold them, slow them down, cut or garble them, refuse or reset
//! connections. [`FaultyLink::set`] returns once the new fault is in force. One thread serves all
//! connections of a link, and ends with it.

mod pair;
mod pipe;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use mio::{Events, Interest, Poll, Token, Waker, net::TcpListener};

use self::pair::Pair;
use crate::{stopwatch::Stopwatch, wait::PATIENCE};

/// What a link does to the bytes and connections in its care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: everything is passed on at once.
    None,
    /// New connections are accepted, and whatever is sent is lost. A connection that lost
    /// something stays silent for ever, as behind a router that has forgotten it.
    BlackHole,
    /// Nothing moves; what was sent meanwhile arrives when the fault ends, as after packets
    /// were lost and sent again.
    Stall,
    /// Nobody listens, and who was connected is reset.
    Refuse,
    /// Every connection, old and new, is reset.
    Reset,
    /// So many bytes get through in each direction of each connection, each second.
    Throttle {
        /// The bytes.
        bytes_per_second: u32,
    },
    /// Everything arrives so much later, in both directions.
    Delay(Duration),
    /// A connection ends after the client has received so many bytes more.
    CutAfter(u64),
    /// The client receives other bytes than the server sent.
    Garble,
}

/// A running link; it and its connections end when dropped.
#[derive(Debug)]
pub struct FaultyLink {
    addr: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FaultyLink {
    /// Opens a link to `target` without a fault.
    pub fn to(target: SocketAddr) -> io::Result<Self> {
        let poll = Poll::new()?;
        let shared = Arc::new(Shared {
            orders: Mutex::new(Orders { fault: Fault::None, given: 0, obeyed: 0, stop: false }),
            obeyed: Condvar::new(),
            waker: Waker::new(poll.registry(), WAKER)?,
            accepted: AtomicU64::new(0),
        });
        let mut carrier = Carrier::new(poll, target, Arc::clone(&shared));
        carrier.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let addr = carrier.addr;
        let thread = thread::spawn(move || carrier.run().unwrap());
        Ok(Self { addr, shared, thread: Some(thread) })
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Makes it misbehave in another way, or no longer; in force when this returns.
    ///
    /// # Panics
    ///
    /// If the link's thread has ended, for example because its port was taken while it refused.
    pub fn set(&self, fault: Fault) {
        let mut orders = self.shared.orders();
        orders.fault = fault;
        orders.given += 1;
        let turn = orders.given;
        self.shared.waker.wake().unwrap();
        let wait = self.shared.obeyed.wait_timeout_while(orders, PATIENCE, |one| one.obeyed < turn);
        assert!(!wait.unwrap().1.timed_out(), "the link's thread has ended");
    }

    /// Resets every connection that is there now, once.
    pub fn reset_once(&self) {
        let fault = self.shared.orders().fault;
        self.set(Fault::Reset);
        self.set(fault);
    }

    /// How many connections it has accepted so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyLink {
    fn drop(&mut self) {
        self.shared.orders().stop = true;
        let _ = self.shared.waker.wake();
        // A thread that panicked has said why.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    obeyed: Condvar,
    waker: Waker,
    accepted: AtomicU64,
}

#[derive(Debug)]
struct Orders {
    fault: Fault,
    given: u64,
    obeyed: u64,
    stop: bool,
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const WAKER: Token = Token(0);
/// All sockets share it: whatever happens, everything is looked at. Tests have few connections.
const SOCKET: Token = Token(1);

/// The thread's own part.
struct Carrier {
    poll: Poll,
    shared: Arc<Shared>,
    target: SocketAddr,
    addr: SocketAddr,
    listener: Option<TcpListener>,
    pairs: Vec<Pair>,
    fault: Fault,
    watch: Stopwatch,
}

impl Carrier {
    fn new(poll: Poll, target: SocketAddr, shared: Arc<Shared>) -> Self {
        Self {
            poll,
            shared,
            target,
            addr: target,
            listener: None,
            pairs: Vec::new(),
            fault: Fault::None,
            watch: Stopwatch::start(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        let mut pause = None;
        loop {
            match self.poll.poll(&mut events, pause) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if self.obey()? {
                return Ok(());
            }
            self.accept()?;
            pause = self.carry();
        }
    }

    /// Takes new orders; true is the order to stop.
    fn obey(&mut self) -> io::Result<bool> {
        let shared = Arc::clone(&self.shared);
        let mut orders = shared.orders();
        if orders.given > orders.obeyed {
            self.change_to(orders.fault)?;
            orders.obeyed = orders.given;
            shared.obeyed.notify_all();
        }
        Ok(orders.stop)
    }

    fn change_to(&mut self, fault: Fault) -> io::Result<()> {
        if matches!(fault, Fault::Reset | Fault::Refuse) {
            self.pairs.drain(..).for_each(Pair::reset);
        }
        match (fault, &self.listener) {
            (Fault::Refuse, _) => self.listener = None,
            (_, None) => self.listen(self.addr)?,
            _ => {}
        }
        self.pairs.iter_mut().for_each(Pair::begin_again);
        self.fault = fault;
        Ok(())
    }

    fn listen(&mut self, addr: SocketAddr) -> io::Result<()> {
        let mut listener = TcpListener::bind(addr)?;
        self.addr = listener.local_addr()?;
        self.poll.registry().register(&mut listener, SOCKET, Interest::READABLE)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(Ok((client, _))) = self.listener.as_ref().map(TcpListener::accept) {
            self.shared.accepted.fetch_add(1, Ordering::Relaxed);
            let target = (self.fault != Fault::BlackHole).then_some(self.target);
            let pair = Pair::new(client, target, self.poll.registry(), SOCKET)?;
            match self.fault {
                Fault::Reset => pair.reset(),
                _ => self.pairs.push(pair),
            }
        }
        Ok(())
    }

    /// Moves what can be moved, and gives how long nothing else is to do.
    fn carry(&mut self) -> Option<Duration> {
        let (now, fault) = (self.watch.elapsed(), self.fault);
        // Ended pairs close their sockets by being dropped.
        self.pairs.retain_mut(|pair| pair.carry(fault, now));
        // What was due and did not fit waits for its socket, not for a time.
        let next = self.pairs.iter().filter_map(Pair::next_due).filter(|due| *due > now).min();
        next.map(|due| due - now)
    }
}

#[cfg(test)]
mod tests;
