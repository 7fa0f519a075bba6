//! Taking connections off a listening socket, as many as may be open.
//!
//! An error of `accept` is of two kinds. The client hung up before we came: no matter, the next
//! one. Or the process is out of descriptors or memory: then the connection stays where it is
//! and the next call fails at once again, so we pause instead of burning the core that could
//! close something.

use std::{io, net::SocketAddr, rc::Rc, time::Duration};

use tokio::net::{TcpListener, TcpStream};

use crate::{Sockets, Watch, sockets::Place, watch::Roster};

/// Long enough for other connections to end, short enough to go unnoticed by who waits.
const PAUSE: Duration = Duration::from_millis(100);

/// As many as can be waiting; who comes after them finds nobody, which clients know how to handle.
const WAITING_MAX: usize = 4_096;

/// Something that serves connections.
pub trait Serve: 'static {
    /// Serves one connection to its end. Once `watch` says so, it should come soon.
    fn connection(
        self: Rc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        watch: Watch,
    ) -> impl Future<Output = ()> + 'static;
}

/// Accepts until the future is dropped.
pub(crate) async fn accept(
    listener: &TcpListener,
    sockets: &Sockets,
    roster: &Rc<Roster>,
    server: &Rc<impl Serve>,
) {
    // Said when it begins and when it ends: it may go on for long, and logs need descriptors too.
    let mut fails = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if std::mem::take(&mut fails) {
                    tracing::info!(addr = %sockets.local_addr(), "connections are accepted again");
                }
                match sockets.admit() {
                    Some(place) => serve(stream, peer, place, roster, server),
                    None => tracing::debug!(%peer, "too many connections are open"),
                }
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                if !std::mem::replace(&mut fails, true) {
                    tracing::warn!(addr = %sockets.local_addr(), %error, "cannot accept connections");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Takes the connections that were waiting when the word to stop came, and closes the socket. Their
/// clients have been told that they are connected and may have sent their requests: closing at
/// once would reset them.
pub(crate) fn accept_waiting(
    listener: TcpListener,
    sockets: &Sockets,
    roster: &Rc<Roster>,
    server: &Rc<impl Serve>,
) {
    // Asks the system itself: what the runtime remembers of the socket may be older.
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..WAITING_MAX {
        let Ok((stream, peer)) = listener.accept() else { return };
        let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
        if let (Ok(stream), Some(place)) = (stream, sockets.admit()) {
            serve(stream, peer, place, roster, server);
        }
    }
}

fn serve<S: Serve>(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    roster: &Rc<Roster>,
    server: &Rc<S>,
) {
    // Answers are written whole; waiting for more to send would only delay them. The system
    // refuses when the client has gone already, which the first read will notice.
    let _ = stream.set_nodelay(true);
    let (watch, membership) = roster.enter();
    let server = Rc::clone(server);
    tokio::task::spawn_local(async move {
        let _counted = (place, membership);
        watch.enlist().await;
        server.connection(stream, peer, watch).await;
    });
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
