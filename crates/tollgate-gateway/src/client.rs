//! A client's connection: reading the next request, sending what is to be sent, letting go.

use std::{
    future::poll_fn,
    net::IpAddr,
    task::{Context, Poll},
    time::Duration,
};

use http::StatusCode;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tollgate_listen::Watch;

use crate::{
    gateway::Gateway,
    h1::{
        body::Body,
        head::Scan,
        request::{Refusal, Request},
        response::Response,
    },
    wire::{buffers::Buffers, input::Input, output::Output},
};

/// How long, and for how much, a client is listened to after its last answer, so that closing
/// does not reset the connection under an answer it has not read yet.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// The largest piece that is read ahead while a request is in flight.
const AHEAD_MAX: usize = 64 << 10;

/// How long a client that has closed its sending side may still wait for its answer. Whether it
/// has only finished sending or has hung up cannot be told before something is written to it;
/// some clients do the former, and whoever did the latter must not hold a place for long.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How long an idle connection is still listened to when we stop. A client in the middle of its
/// work has written its next request by then and learns from the answer that it was the last;
/// closing at once would cost that request whenever the two cross on the way.
const LAST_CALL: Duration = Duration::from_millis(500);

/// One client's connection and the request it is at.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) request: Request,
    /// The head of the upstream's answer; here so that its lines are allocated only once.
    pub(crate) response: Response,
    pub(crate) peer: IpAddr,
    /// The peer's address as upstreams are told it.
    pub(crate) peer_text: Box<str>,
    /// Whether it has sent a request before.
    is_known: bool,
    /// Whether it has closed its sending side.
    pub(crate) has_finished: bool,
}

/// What a client did next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It sent a request, which is in [`Client::request`].
    Request,
    /// It sent something that is not passed on.
    Refused(Refusal),
    /// It left, or was silent for too long, or we are stopping.
    Gone,
}

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request.
    Keep,
    /// It is closed.
    Close,
    /// It is closed once the client has stopped sending.
    Linger,
    /// It is reset, so that an answer that broke off is not taken for complete.
    Reset,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, peer: IpAddr) -> Self {
        let (input, output, request) = (Input::default(), Output::default(), Request::new());
        Self {
            stream,
            input,
            output,
            request,
            response: Response::new(),
            peer,
            peer_text: peer.to_canonical().to_string().into(),
            is_known: false,
            has_finished: false,
        }
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self, gateway: &Gateway, watch: &Watch) -> Next {
        let (config, buffers) = (gateway.config(), &gateway.buffers);
        buffers.give(self.request.take_bytes());
        if self.input.unread().is_empty() {
            self.input.release(buffers);
            // Who has not asked for anything yet must do so as quickly as one who has begun to.
            let wait = if self.is_known { config.idle_timeout } else { config.header_timeout };
            watch.set(wait);
            if !self.wait_for_bytes(gateway, watch).await {
                return Next::Gone;
            }
        }
        self.is_known = true;
        watch.set(config.header_timeout);
        let mut scan = Scan::default();
        match poll_fn(|cx| self.poll_head(cx, &mut scan, gateway, watch)).await {
            Ok(Some(length)) => {
                let head = self.input.split_off(length, buffers);
                match self.request.read(head) {
                    Ok(()) => Next::Request,
                    Err(refusal) => Next::Refused(refusal),
                }
            }
            Ok(None) => Next::Gone,
            Err(refusal) => Next::Refused(refusal),
        }
    }

    async fn wait_for_bytes(&mut self, gateway: &Gateway, watch: &Watch) -> bool {
        let mut was_told = false;
        poll_fn(|cx| {
            // Read first: a request that is here already is answered even if we are stopping.
            match self.input.poll_fill(cx, &mut self.stream, &gateway.buffers) {
                Poll::Ready(filled) => return Poll::Ready(filled.is_ok_and(|count| count > 0)),
                Poll::Pending if watch.is_late() => return Poll::Ready(false),
                Poll::Pending => {}
            }
            if watch.is_stopping() && !std::mem::replace(&mut was_told, true) {
                watch.set(LAST_CALL);
            }
            Poll::Pending
        })
        .await
    }

    /// Reads until the head is all there; gives its length.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        scan: &mut Scan,
        gateway: &Gateway,
        watch: &Watch,
    ) -> Poll<Result<Option<usize>, Refusal>> {
        let bytes_max = gateway.config().max_header_bytes;
        loop {
            // An empty line before a request is a habit of old clients, and harmless.
            while self.input.unread().starts_with(b"\r\n") {
                self.input.consume(2);
                *scan = Scan::default();
            }
            let unread = self.input.unread();
            match scan.end(unread) {
                Ok(Some(length)) if length <= bytes_max => return Poll::Ready(Ok(Some(length))),
                Ok(None) if unread.len() < bytes_max => {}
                Ok(_) => return Poll::Ready(Err(too_large(unread, bytes_max))),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            match self.input.poll_fill(cx, &mut self.stream, &gateway.buffers) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ok(None)),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending if watch.is_late() => {
                    let detail = "The request's head did not arrive in full in time.";
                    return Poll::Ready(Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, detail)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether the client has gone, for all that can be seen now. What it sends meanwhile is
    /// read ahead.
    pub(crate) fn poll_gone(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &Buffers,
        watch: &Watch,
    ) -> bool {
        while self.input.unread().len() < AHEAD_MAX && !self.has_finished {
            match self.input.poll_fill(cx, &mut self.stream, buffers) {
                Poll::Ready(Ok(0)) => {
                    self.has_finished = true;
                    watch.set(LAST_WORD);
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }

    /// Sends what is to be sent; whether it was.
    pub(crate) async fn flush(&mut self, gateway: &Gateway, watch: &Watch) -> bool {
        watch.set(gateway.config().body_timeout);
        let flushed = watch.bound(poll_fn(|cx| self.output.poll_write(cx, &mut self.stream, &[])));
        let flushed = matches!(flushed.await, Ok(Ok(_)));
        self.output.clear(&gateway.buffers);
        flushed
    }

    /// Skips the body of a request that is not passed on, as far as it is already here; whether
    /// that was all of it.
    pub(crate) fn skip_body(&mut self) -> bool {
        let mut body = Body::new(self.request.framing);
        while !body.is_done() {
            // Whoever waits for a word before sending may now send or not: nobody could tell
            // where the next request begins.
            if self.input.unread().is_empty() || self.request.expects_continue {
                return false;
            }
            match body.next(self.input.unread()) {
                Ok(piece) => self.input.consume(piece.skip + piece.data),
                Err(_) => return false,
            }
        }
        true
    }

    /// Ends the connection.
    pub(crate) async fn end(mut self, after: After, gateway: &Gateway, watch: &Watch) {
        match after {
            After::Keep | After::Close => {}
            After::Reset => {
                // Fails only if the connection is gone already.
                let _ = self.stream.set_zero_linger();
            }
            After::Linger => self.linger(&gateway.buffers, watch).await,
        }
        self.input.discard(&gateway.buffers);
    }

    async fn linger(&mut self, buffers: &Buffers, watch: &Watch) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        watch.set(LINGER);
        let mut seen = 0;
        poll_fn(|cx| {
            loop {
                self.input.discard(buffers);
                match self.input.poll_fill(cx, &mut self.stream, buffers) {
                    Poll::Ready(Ok(count)) if count > 0 && seen < LINGER_BYTES_MAX => seen += count,
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending if watch.is_late() => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }
}

fn too_large(head: &[u8], bytes_max: usize) -> Refusal {
    if memchr::memchr(b'\n', &head[..bytes_max.min(head.len())]).is_some() {
        let detail = "The request's head is larger than allowed.";
        Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
    } else {
        Refusal::new(StatusCode::URI_TOO_LONG, "The request's URI is longer than allowed.")
    }
}
