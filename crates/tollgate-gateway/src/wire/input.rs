//! What was read from a socket and not yet used.

use std::{
    io,
    pin::pin,
    task::{Context, Poll},
};

use tokio::{io::AsyncReadExt, net::TcpStream};

use super::buffers::{BUFFER_SIZE_MAX, Buffers};

/// Bytes read ahead.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    used: usize,
}

impl Input {
    /// What has not been used yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// So much has been used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.used += count;
        debug_assert!(self.used <= self.bytes.len(), "more was used than read");
    }

    /// Reads once, keeping what is unread. Zero is the end of the stream. While there is nothing
    /// to read, no buffer is held.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        buffers: &Buffers,
    ) -> Poll<io::Result<usize>> {
        self.make_room(buffers);
        let read = pin!(stream.read_buf(&mut self.bytes)).poll(cx);
        if read.is_pending() {
            self.release(buffers);
        }
        read
    }

    /// Takes the first `length` unread bytes out as a buffer of their own. When they are all
    /// there is, as is usual, the buffer changes hands without a copy.
    pub(crate) fn split_off(&mut self, length: usize, buffers: &Buffers) -> Vec<u8> {
        let mut rest = Vec::new();
        if self.unread().len() > length {
            rest = buffers.take();
            rest.extend_from_slice(&self.unread()[length..]);
        }
        let mut first = std::mem::replace(&mut self.bytes, rest);
        first.truncate(self.used + length);
        first.drain(..self.used);
        self.used = 0;
        first
    }

    /// Gives the buffer back if nothing in it is unread.
    pub(crate) fn release(&mut self, buffers: &Buffers) {
        if self.unread().is_empty() && self.bytes.capacity() > 0 {
            self.used = 0;
            buffers.give(std::mem::take(&mut self.bytes));
        }
    }

    /// Forgets what is unread, and gives the buffer back.
    pub(crate) fn discard(&mut self, buffers: &Buffers) {
        self.used = self.bytes.len();
        self.release(buffers);
    }

    fn make_room(&mut self, buffers: &Buffers) {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers.take();
        } else if self.used == self.bytes.len() {
            // A read that filled the buffer shows that more is waiting: take it in larger bites.
            let was_full = self.bytes.len() == self.bytes.capacity();
            self.bytes.clear();
            self.used = 0;
            if was_full && self.bytes.capacity() < BUFFER_SIZE_MAX {
                self.bytes.reserve_exact(BUFFER_SIZE_MAX);
            }
        } else if self.bytes.len() == self.bytes.capacity() {
            self.bytes.drain(..self.used);
            self.used = 0;
            // Doubles if there was nothing to drop; how far that may go is the reader's to say.
            self.bytes.reserve(1);
        }
    }
}
