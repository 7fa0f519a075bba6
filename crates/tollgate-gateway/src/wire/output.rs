//! What is to be written to a socket.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{io::AsyncWrite, net::TcpStream};

use super::buffers::Buffers;

/// Bytes to write. They stay here after they were written, until [`Output::clear`]: a request
/// can then be sent a second time without having been copied.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    /// The buffer to append to, emptied of what was written.
    pub(crate) fn buffer(&mut self, buffers: &Buffers) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers.take();
        }
        if self.is_written() {
            self.bytes.clear();
            self.written = 0;
        }
        &mut self.bytes
    }

    /// Whether everything was written.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Begins again with what was written before.
    pub(crate) fn rewind(&mut self) {
        self.written = 0;
    }

    /// Forgets everything, and gives the buffer back.
    pub(crate) fn clear(&mut self, buffers: &Buffers) {
        self.written = 0;
        if self.bytes.capacity() > 0 {
            buffers.give(std::mem::take(&mut self.bytes));
        }
    }

    /// Writes what is here and, in the same call where it can be, `tail` after it. Ready once
    /// all of what is here and some of `tail`, or all of an empty one, was written; says how
    /// much of `tail`.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        tail: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut stream = Pin::new(stream);
        loop {
            let here = &self.bytes[self.written..];
            let wrote = match (here.is_empty(), tail.is_empty()) {
                (true, true) => return Poll::Ready(Ok(0)),
                (true, false) => ready!(stream.as_mut().poll_write(cx, tail))?,
                (false, true) => ready!(stream.as_mut().poll_write(cx, here))?,
                (false, false) => {
                    let both = [IoSlice::new(here), IoSlice::new(tail)];
                    ready!(stream.as_mut().poll_write_vectored(cx, &both))?
                }
            };
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_here = wrote.min(here.len());
            self.written += of_here;
            if wrote > of_here {
                return Poll::Ready(Ok(wrote - of_here));
            }
        }
    }
}
