//! The connection that carries one request to an upstream.

use std::{
    future::poll_fn,
    io,
    rc::Rc,
    task::{Context, Poll, ready},
};

use tokio::net::TcpStream;
use tollgate_listen::Watch;

use super::failure::Failure;
use crate::{
    gateway::Gateway,
    h1::head::Scan,
    story::Story,
    table::RouteState,
    upstream::Upstream,
    wire::{buffers::Buffers, input::Input, output::Output},
};

/// Far more than any server sends, and a bound on what one can make us hold.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A connection to an upstream with a request on it.
pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// Whether it has served a request before.
    pub(crate) is_kept: bool,
    scan: Scan,
    head_length: usize,
}

/// Takes a kept connection to the upstream whose turn it is, or opens one; if that cannot be
/// reached, to the next. Nothing has been sent yet, so every request may try them all.
pub(crate) async fn open(
    gateway: &Gateway,
    watch: &Watch,
    story: &mut Story,
    route: &RouteState,
) -> Result<Option<(Rc<Upstream>, Link)>, Failure> {
    let mut failure = Failure::NoUpstream;
    for (before, upstream) in route.turn().enumerate() {
        story.upstream = Some(Rc::clone(upstream));
        if upstream.is_echo() {
            return Ok(None);
        }
        let kept = poll_fn(|cx| Poll::Ready(upstream.kept(cx))).await;
        if let Some(stream) = kept {
            return Ok(Some((Rc::clone(upstream), Link::new(stream, true))));
        }
        match connect(gateway, watch, upstream).await {
            Ok(stream) => return Ok(Some((Rc::clone(upstream), Link::new(stream, false)))),
            Err(cause) => {
                upstream.note(Err(&cause));
                failure = Failure::Unreachable { tried: before + 1, cause };
            }
        }
    }
    Err(failure)
}

async fn connect(gateway: &Gateway, watch: &Watch, upstream: &Upstream) -> io::Result<TcpStream> {
    watch.set(gateway.config().connect_timeout);
    let connected = watch.bound(upstream.connect()).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl Link {
    fn new(stream: TcpStream, is_kept: bool) -> Self {
        let (input, output) = (Input::default(), Output::default());
        Self { stream, input, output, is_kept, scan: Scan::default(), head_length: 0 }
    }

    /// Puts the same request on a new connection.
    pub(crate) async fn renew(
        &mut self,
        gateway: &Gateway,
        watch: &Watch,
        upstream: &Upstream,
    ) -> Result<(), Failure> {
        let connected = connect(gateway, watch, upstream).await;
        self.stream = connected.map_err(|cause| Failure::Unreachable { tried: 1, cause })?;
        self.is_kept = false;
        self.input.discard(&gateway.buffers);
        self.output.rewind();
        self.scan = Scan::default();
        Ok(())
    }

    /// Reads until the answer's head is all there; gives its length.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &Buffers,
    ) -> Poll<Result<usize, Failure>> {
        loop {
            let unread = self.input.unread();
            match self.scan.end(unread) {
                Ok(Some(length)) => {
                    self.scan = Scan::default();
                    self.head_length = length;
                    return Poll::Ready(Ok(length));
                }
                Ok(None) if unread.len() >= HEAD_BYTES_MAX => {
                    return Poll::Ready(Err(Failure::LargeHead));
                }
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(Failure::BadAnswer(error.into()))),
            }
            let has_begun = !unread.is_empty();
            match ready!(self.input.poll_fill(cx, &mut self.stream, buffers)) {
                Ok(0) | Err(_) if has_begun => return Poll::Ready(Err(Failure::CutHead)),
                Ok(0) => return Poll::Ready(Err(Failure::Closed)),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(Failure::Broken(error))),
            }
        }
    }

    /// The length of the head that was found last.
    pub(crate) fn head_length(&self) -> usize {
        self.head_length
    }

    /// Lets go of the connection after an answer that was read to its end.
    pub(crate) fn finish(mut self, gateway: &Gateway, upstream: &Upstream, keep: bool) {
        let is_clean = self.is_clean();
        self.output.clear(&gateway.buffers);
        self.input.discard(&gateway.buffers);
        if keep && is_clean {
            upstream.keep(self.stream);
        }
    }

    /// Whether the next request on this connection would be the next message on it. Whatever came
    /// unasked would be taken for the answer to somebody else's request, and whatever was not sent
    /// yet (an upstream may answer early) would be filled up with it.
    fn is_clean(&self) -> bool {
        self.input.unread().is_empty() && self.output.is_written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link_to(listener: &std::net::TcpListener) -> Link {
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Link::new(TcpStream::from_std(stream).unwrap(), false)
    }

    #[test]
    fn a_connection_with_half_a_request_on_it_is_not_used_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let (mut link, buffers) = (link_to(&listener), Buffers::default());
            assert!(link.is_clean());
            link.output.buffer(&buffers).extend_from_slice(b"4\r\nrest\r\n0\r\n\r\n");
            assert!(!link.is_clean());
            poll_fn(|cx| link.output.poll_write(cx, &mut link.stream, &[])).await.unwrap();
            assert!(link.is_clean());
        });
    }
}
