//! Passing a body from one socket to the other.
//!
//! At any time at most one buffer of a body is here: nothing more is read from one side until
//! the other has taken it, so a slow reader slows its writer down and costs no memory. Data
//! whose length was announced is written from the buffer it was read into.

use std::{
    io,
    task::{Context, Poll, ready},
};

use tokio::net::TcpStream;
use tollgate_listen::Watch;

use super::{buffers::Buffers, input::Input, output::Output};
use crate::h1::{
    body::{Body, Framing, Piece},
    chunked::{ChunkError, push_chunk},
    head::{Lines, push_lines},
};

/// Up to here it is cheaper to copy a piece behind the head than to write both by one call.
const COPIED_MAX: usize = 4 << 10;

/// Why a body did not get through.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The sender went away in the middle, or fell silent.
    Cut,
    /// The sender's chunks are malformed.
    Chunk(ChunkError),
    /// The body is larger than allowed.
    TooLarge,
    /// Writing failed.
    To(io::Error),
}

/// One body on its way.
#[derive(Debug)]
pub(crate) struct Pump {
    body: Body,
    chunked: bool,
    /// How much of the input is data that is to be written.
    ready: usize,
    passed: u64,
    max: u64,
    /// Whether the end was written too.
    ended: bool,
}

/// What a pump works on.
pub(crate) struct Ends<'a> {
    pub(crate) from: &'a mut TcpStream,
    pub(crate) input: &'a mut Input,
    pub(crate) to: &'a mut TcpStream,
    pub(crate) output: &'a mut Output,
}

impl Pump {
    /// A body that comes in one framing and goes out in another, chunked or as bare data.
    pub(crate) fn new(framing: Framing, chunked: bool, max: Option<u64>) -> Self {
        let max = max.unwrap_or(u64::MAX);
        Self { body: Body::new(framing), chunked, ready: 0, passed: 0, max, ended: false }
    }

    /// Whether everything was passed on.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.ready == 0
    }

    /// Whether the sender has sent everything.
    pub(crate) fn is_read(&self) -> bool {
        self.body.is_done()
    }

    /// Whether data is here that the receiver has not taken yet.
    pub(crate) fn has_data(&self) -> bool {
        self.ready > 0
    }

    /// How much data was passed on.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Copies what is already here behind what is to be written, if it is little: then head and
    /// body leave in one piece.
    pub(crate) fn prime(
        &mut self,
        input: &mut Input,
        output: &mut Output,
        buffers: &Buffers,
    ) -> Result<(), PumpError> {
        if input.unread().len() > COPIED_MAX {
            return Ok(());
        }
        while !self.ended {
            let piece = self.take(input)?;
            let data = &input.unread()[..piece.data];
            if self.chunked && !data.is_empty() {
                push_chunk(output.buffer(buffers), data);
            } else {
                output.buffer(buffers).extend_from_slice(data);
            }
            input.consume(piece.data);
            self.end(output, buffers);
            if input.unread().is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Passes on what it can. `moved` is called whenever something was read or written.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        ends: Ends<'_>,
        buffers: &Buffers,
        moved: impl Fn(),
    ) -> Poll<Result<(), PumpError>> {
        let Ends { from, input, to, output } = ends;
        loop {
            if !output.is_written() || self.ready > 0 {
                let tail = &input.unread()[..self.ready];
                let wrote = ready!(output.poll_write(cx, to, tail)).map_err(PumpError::To)?;
                input.consume(wrote);
                self.ready -= wrote;
                moved();
                continue;
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            if input.unread().is_empty() && !self.body.is_done() {
                match ready!(input.poll_fill(cx, from, buffers)) {
                    Ok(0) if self.body.end() => {}
                    Ok(0) | Err(_) => return Poll::Ready(Err(PumpError::Cut)),
                    Ok(_) => {}
                }
                moved();
            }
            let piece = self.take(input)?;
            if self.chunked && piece.data > 0 {
                push_chunk(output.buffer(buffers), &input.unread()[..piece.data]);
                input.consume(piece.data);
            } else {
                self.ready = piece.data;
            }
            self.end(output, buffers);
        }
    }

    /// Finds the next data; the input then begins with it.
    fn take(&mut self, input: &mut Input) -> Result<Piece, PumpError> {
        let piece = self.body.next(input.unread()).map_err(PumpError::Chunk)?;
        input.consume(piece.skip);
        self.passed += piece.data as u64;
        if self.passed > self.max {
            return Err(PumpError::TooLarge);
        }
        Ok(piece)
    }

    /// Writes the end once all data is out of the way.
    fn end(&mut self, output: &mut Output, buffers: &Buffers) {
        if !self.body.is_done() || self.ended {
            return;
        }
        self.ended = true;
        if self.chunked {
            let out = output.buffer(buffers);
            out.extend_from_slice(b"0\r\n");
            push_trailer(out, self.body.trailer());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Copies the fields that may stand in a trailer.
fn push_trailer(out: &mut Vec<u8>, trailer: &[u8]) {
    let mut lines = Lines::default();
    // It was read without a mistake before.
    if trailer.is_empty() || lines.read(trailer, 0).is_err() {
        return;
    }
    push_lines(out, trailer, lines.iter(), |line| line.known.may_trail());
}

/// Sets the deadline anew whenever a body moves.
pub(crate) fn extend(watch: &Watch, silence_max: std::time::Duration) -> impl Fn() {
    move || watch.set(silence_max)
}
