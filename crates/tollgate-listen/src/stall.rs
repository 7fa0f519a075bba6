//! Giving up on a client that asks and does not read.
//!
//! Once the socket's buffers are full, an answer waits for the client, and without a bound it
//! would wait for ever and hold a connection. Nearly no write ever waits, so the timer is only
//! made when one does.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::Sleep};

/// A connection whose writes must get on.
pub(crate) struct Stall {
    stream: TokioIo<TcpStream>,
    silence_max: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// Fails a write for which nothing was read for this long.
    pub(crate) fn new(stream: TcpStream, silence_max: Duration) -> Self {
        Self { stream: TokioIo::new(stream), silence_max, waiting: None }
    }

    fn bound<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.waiting = None;
            return write;
        }
        let silence_max = self.silence_max;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(silence_max)));
        waiting.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for Stall {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Stall {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bound(cx, write)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
