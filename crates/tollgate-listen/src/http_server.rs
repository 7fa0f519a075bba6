//! Serving any hyper service over HTTP/1.1 on a connection.

use std::{
    error::Error,
    net::SocketAddr,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http_body::Body;
use hyper::{
    Request, Response,
    body::Incoming,
    rt::{Sleep, Timer},
    server::conn::http1,
    service::Service,
};
use tokio::net::TcpStream;

use crate::{Serve, Watch, stall::Stall};

/// Bounds of an HTTP connection.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// How long a client may take to send a request's head, counted from the end of the answer
    /// before; so this is also how long a connection may stay idle.
    pub head_timeout: Duration,
    /// The largest head.
    pub head_bytes_max: usize,
    /// How long a client may leave an answer unread.
    pub write_timeout: Duration,
    /// Whether a client that has closed its sending side still gets its answer. If not, closing
    /// it counts as hanging up, and what was asked is dropped.
    pub half_close: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            // Browsers and client pools keep idle connections about as long.
            head_timeout: Duration::from_secs(60),
            // Four times what browsers send with a page of cookies.
            head_bytes_max: 32 << 10,
            // Answers are small; who reads nothing for so long has gone or means harm.
            write_timeout: Duration::from_secs(30),
            // A hung-up client must be noticed: what it waits for may hold a place in a queue.
            half_close: false,
        }
    }
}

/// Serves what `make` makes for each connection, given the peer's address.
pub struct HttpServer<M> {
    settings: HttpSettings,
    make: M,
}

impl<M> HttpServer<M> {
    /// A server with these bounds.
    pub fn new(settings: HttpSettings, make: M) -> Self {
        Self { settings, make }
    }
}

impl<M, S, B> Serve for HttpServer<M>
where
    M: Fn(SocketAddr) -> S + 'static,
    S: Service<Request<Incoming>, Response = Response<B>> + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn connection(self: Rc<Self>, stream: TcpStream, peer: SocketAddr, watch: Watch) {
        let mut connection = pin!(
            http1::Builder::new()
                .timer(WatchTimer { watch: watch.again(), base: base() })
                .header_read_timeout(self.settings.head_timeout)
                .max_header_size(self.settings.head_bytes_max)
                .half_close(self.settings.half_close)
                // Answers are small: copying one behind its head is cheaper than telling the
                // kernel of two pieces.
                .writev(false)
                .serve_connection(
                    Stall::new(stream, self.settings.write_timeout),
                    (self.make)(peer)
                )
        );
        let mut stopping = false;
        let ended = std::future::poll_fn(|cx| {
            if watch.is_stopping() && !stopping {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(cx)
        });
        if let Err(error) = ended.await {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}

/// hyper's timer on the connection's deadline. hyper only ever runs one at a time, the one for
/// the next head, and drops it when the head is there.
#[derive(Debug)]
struct WatchTimer {
    watch: Watch,
    base: Instant,
}

#[expect(clippy::disallowed_methods, reason = "only differences to it are used")]
fn base() -> Instant {
    Instant::now()
}

impl Timer for WatchTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.watch.set(duration);
        Box::pin(WatchSleep(self.watch.again()))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.base))
    }

    /// Stands still: hyper adds its time-out to it and hands it to `sleep_until`, which takes
    /// the difference. That saves asking the system for the time twice a request.
    fn now(&self) -> Instant {
        self.base
    }
}

struct WatchSleep(Watch);

impl Sleep for WatchSleep {}

impl Future for WatchSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        // The walk wakes the connection's task, which polls this.
        if self.0.is_late() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for WatchSleep {
    fn drop(&mut self) {
        self.0.clear();
    }
}
