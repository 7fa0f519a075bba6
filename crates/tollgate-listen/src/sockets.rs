//! The listening sockets of one address, one for each worker.
//!
//! `SO_REUSEPORT` lets all of them share the address, but would also let a second program take
//! half of our connections unnoticed. So the address is first bound without it: if anybody
//! listens there already, that fails and says so.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Connections that wait to be accepted; the kernel's own bound is 4096 by default, and a burst
/// that large is accepted within milliseconds.
const BACKLOG: i32 = 4096;

/// Why nobody can listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}: {cause}")]
pub struct BindError {
    /// The address that was asked for.
    pub addr: SocketAddr,
    /// What the system said.
    pub cause: io::Error,
}

/// Sockets that listen on one address.
#[derive(Debug, Clone)]
pub struct Sockets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addr: SocketAddr,
    waiting: Mutex<Vec<Option<TcpListener>>>,
    connections_max: AtomicUsize,
    open: AtomicUsize,
    accepted: AtomicU64,
    turned_away: AtomicU64,
}

/// What has happened on an address since it was bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Connections open now.
    pub open: usize,
    /// Connections ever accepted, those turned away not included.
    pub accepted: u64,
    /// Connections closed at once because too many were open.
    pub turned_away: u64,
}

impl Sockets {
    /// Binds the address once for each worker. Port 0 takes any free port, the same for all.
    pub fn bind(addr: SocketAddr, workers: usize) -> Result<Self, BindError> {
        let failed = |cause| BindError { addr, cause };
        let free =
            bound(addr, Sharing::Alone).and_then(|socket| addr_of(&socket)).map_err(failed)?;
        let listen = |_| -> io::Result<_> {
            let socket = bound(free, Sharing::Shared)?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok(Some(socket.into()))
        };
        let waiting: io::Result<_> = (0..workers.max(1)).map(listen).collect();
        Ok(Self(Arc::new(Inner {
            addr: free,
            waiting: Mutex::new(waiting.map_err(failed)?),
            connections_max: AtomicUsize::new(usize::MAX),
            open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        })))
    }

    /// Sets how many connections may be open at once, over all workers. A further one is
    /// accepted and closed, so that its client learns at once; waiting in the backlog it would
    /// only learn by a time-out.
    #[must_use]
    pub fn with_connections_max(self, max: usize) -> Self {
        self.0.connections_max.store(max, Relaxed);
        self
    }

    /// The address, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.addr
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        Tally {
            open: self.0.open.load(Relaxed),
            accepted: self.0.accepted.load(Relaxed),
            turned_away: self.0.turned_away.load(Relaxed),
        }
    }

    /// The socket of one worker; each can be taken once.
    pub(crate) fn take(&self, worker: usize) -> Option<TcpListener> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get_mut(worker)?.take()
    }

    /// Counts one more connection in, unless too many are open.
    pub(crate) fn admit(&self) -> Option<Place> {
        let open = self.0.open.fetch_add(1, Relaxed);
        let place = Place(self.clone());
        if open >= self.0.connections_max.load(Relaxed) {
            self.0.turned_away.fetch_add(1, Relaxed);
            return None;
        }
        self.0.accepted.fetch_add(1, Relaxed);
        Some(place)
    }
}

/// One open connection; dropping it counts the connection out.
#[derive(Debug)]
pub(crate) struct Place(Sockets);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Alone,
    Shared,
}

fn bound(addr: SocketAddr, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier run may linger for a minute; they must not keep us out.
    socket.set_reuse_address(true)?;
    if sharing == Sharing::Shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&SockAddr::from(addr))?;
    if sharing == Sharing::Alone {
        // Two sockets may be bound to one address, but only one may listen.
        socket.listen(1)?;
    }
    Ok(socket)
}

fn addr_of(socket: &Socket) -> io::Result<SocketAddr> {
    let addr = socket.local_addr()?.as_socket();
    addr.ok_or_else(|| io::Error::other("the system gave no internet address"))
}
