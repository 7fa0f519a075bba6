//! How a body is delimited, and how much of what was read belongs to it.

use super::chunked::{ChunkError, Decoder};

/// How a message says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    Empty,
    /// By its length.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By closing the connection; only answers may.
    UntilClose,
}

/// A body that is being read.
#[derive(Debug)]
pub(crate) enum Body {
    /// So many bytes are still to come.
    Length(u64),
    /// Chunks are still to come.
    Chunked(Decoder),
    /// Everything until the connection ends.
    UntilClose {
        /// Whether it has ended.
        ended: bool,
    },
}

/// The next part of a body within what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes to skip before the data.
    pub(crate) skip: usize,
    /// Bytes of data.
    pub(crate) data: usize,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Empty => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Decoder::new()),
            Framing::UntilClose => Self::UntilClose { ended: false },
        }
    }

    /// Finds the next part in `input` and counts it as taken. Without data, more must be read.
    pub(crate) fn next(&mut self, input: &[u8]) -> Result<Piece, ChunkError> {
        Ok(match self {
            Self::Length(left) => {
                let data = at_most(input.len(), *left);
                *left -= data as u64;
                Piece { skip: 0, data }
            }
            Self::Chunked(decoder) => {
                let skip = decoder.framing(input)?;
                let data = at_most(input.len() - skip, decoder.left());
                if data > 0 {
                    decoder.taken(data as u64);
                }
                Piece { skip, data }
            }
            Self::UntilClose { .. } => Piece { skip: 0, data: input.len() },
        })
    }

    /// Whether nothing is to come any more.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(decoder) => decoder.is_done(),
            Self::UntilClose { ended } => *ended,
        }
    }

    /// The connection has ended; whether the body could end like that.
    pub(crate) fn end(&mut self) -> bool {
        if let Self::UntilClose { ended } = self {
            *ended = true;
        }
        self.is_done()
    }

    /// The lines after the last chunk, if there are any.
    pub(crate) fn trailer(&self) -> &[u8] {
        match self {
            Self::Chunked(decoder) => decoder.trailer(),
            Self::Length(_) | Self::UntilClose { .. } => &[],
        }
    }
}

fn at_most(length: usize, left: u64) -> usize {
    usize::try_from(left).map_or(length, |left| left.min(length))
}
