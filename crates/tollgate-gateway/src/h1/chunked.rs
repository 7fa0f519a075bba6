//! Where the chunks of a body begin and end (RFC 9112, 7.1).
//!
//! Chunks are taken apart here and put together anew on the other side, so that nothing but
//! their data is passed on: sizes in odd spellings and extensions are where servers disagree.

use super::head::{HeadError, Lines};

/// All extensions of a body together, and all zeros before its sizes; nobody uses them but to hide
/// something or to waste time.
const EXTENSIONS_MAX: usize = 4 << 10;

/// A trailer as large as a small head.
const TRAILER_MAX: usize = 8 << 10;

/// Why a chunked body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    #[error("a chunk's size is not a hexadecimal number")]
    Size,
    #[error("a chunk's size is larger than any body")]
    TooLarge,
    #[error("a line between chunks does not end with a carriage return and a line feed")]
    LineEnd,
    #[error("chunks carry too many extensions")]
    Extensions,
    #[error("the trailer is too large")]
    Trailer,
    #[error("the trailer is malformed: {0}")]
    TrailerLine(HeadError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    Size,
    /// After at least one digit.
    Digits,
    /// After a space behind the size, where only an extension may follow.
    Space,
    /// After the size, before the line's end; nothing in it counts.
    Extension,
    /// Between CR and LF of the size's line.
    SizeFeed,
    /// Inside a chunk.
    Data,
    /// After a chunk, before its CR.
    DataEnd,
    /// Between CR and LF after a chunk.
    DataFeed,
    /// After the last chunk.
    Trailer,
    /// After the empty line.
    Done,
}

/// Reads one chunked body.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    left: u64,
    extensions: usize,
    trailer: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { state: State::Size, left: 0, extensions: 0, trailer: Vec::new() }
    }

    /// How many bytes at the beginning of `input` are framing. Data follows them, or more
    /// framing that has not arrived yet, or the end.
    pub(crate) fn framing(&mut self, input: &[u8]) -> Result<usize, ChunkError> {
        for (at, &byte) in input.iter().enumerate() {
            if matches!(self.state, State::Data | State::Done) {
                return Ok(at);
            }
            self.step(byte)?;
        }
        Ok(input.len())
    }

    /// How much of the present chunk is still to come; zero between chunks.
    pub(crate) fn left(&self) -> u64 {
        if self.state == State::Data { self.left } else { 0 }
    }

    /// That much of the present chunk has been taken.
    pub(crate) fn taken(&mut self, count: u64) {
        self.left -= count;
        if self.left == 0 {
            self.state = State::DataEnd;
        }
    }

    /// Whether the body has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The lines after the last chunk with their empty line; empty if there are none.
    pub(crate) fn trailer(&self) -> &[u8] {
        if self.trailer.len() > 2 { &self.trailer } else { &[] }
    }

    fn step(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.state = match (self.state, byte) {
            (State::Size | State::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.left == 0 && byte == b'0' {
                    self.ornament()?;
                }
                self.left = with_digit(self.left, byte)?;
                State::Digits
            }
            (State::Digits | State::Space | State::Extension, b'\r') => State::SizeFeed,
            (State::Digits | State::Space, b';') => State::Extension,
            (State::Digits | State::Space, b' ' | b'\t') => {
                self.ornament()?;
                State::Space
            }
            (State::Size | State::Digits | State::Space, _) => return Err(ChunkError::Size),
            (State::Extension, byte) => self.extension(byte)?,
            (State::SizeFeed, b'\n') if self.left == 0 => State::Trailer,
            (State::SizeFeed, b'\n') => State::Data,
            (State::DataEnd, b'\r') => State::DataFeed,
            (State::DataFeed, b'\n') => State::Size,
            (State::Trailer, byte) => self.trailer_byte(byte)?,
            (State::SizeFeed | State::DataEnd | State::DataFeed, _) => {
                return Err(ChunkError::LineEnd);
            }
            (state @ (State::Data | State::Done), _) => state,
        };
        Ok(())
    }

    fn extension(&mut self, byte: u8) -> Result<State, ChunkError> {
        if byte == b'\n' {
            return Err(ChunkError::LineEnd);
        }
        self.ornament()?;
        Ok(State::Extension)
    }

    /// Counts a byte that says nothing.
    fn ornament(&mut self) -> Result<(), ChunkError> {
        self.extensions += 1;
        if self.extensions > EXTENSIONS_MAX { Err(ChunkError::Extensions) } else { Ok(()) }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<State, ChunkError> {
        self.trailer.push(byte);
        if byte != b'\n' {
            let full = self.trailer.len() >= TRAILER_MAX;
            return if full { Err(ChunkError::Trailer) } else { Ok(State::Trailer) };
        }
        if !self.trailer.ends_with(b"\r\n") {
            return Err(ChunkError::LineEnd);
        }
        if self.trailer.len() != 2 && !self.trailer.ends_with(b"\r\n\r\n") {
            return Ok(State::Trailer);
        }
        Lines::default().read(&self.trailer, 0).map_err(ChunkError::TrailerLine)?;
        Ok(State::Done)
    }
}

fn with_digit(size: u64, digit: u8) -> Result<u64, ChunkError> {
    let digit = char::from(digit).to_digit(16).ok_or(ChunkError::Size)?;
    // Half of what fits, so that sums of sizes cannot overflow either.
    if size >> 59 != 0 {
        return Err(ChunkError::TooLarge);
    }
    Ok(size << 4 | u64::from(digit))
}

/// Writes a chunk: its size, its data, its end.
pub(crate) fn push_chunk(out: &mut Vec<u8>, data: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - data.len().leading_zeros()).div_ceil(4);
    out.extend((0..digits).rev().map(|digit| DIGITS[data.len() >> (4 * digit) & 15]));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `body`, shown to the decoder in pieces of `size`; gives data and trailer.
    fn decode(body: &[u8], size: usize) -> Result<(String, String), ChunkError> {
        let (mut decoder, mut data) = (Decoder::new(), Vec::new());
        for mut piece in body.chunks(size) {
            while !piece.is_empty() && !decoder.is_done() {
                piece = &piece[decoder.framing(piece)?..];
                let count = piece.len().min(usize::try_from(decoder.left()).unwrap());
                if count > 0 {
                    decoder.taken(count as u64);
                }
                data.extend_from_slice(&piece[..count]);
                piece = &piece[count..];
            }
        }
        assert!(decoder.is_done(), "not done: {decoder:?}");
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
        Ok((text(&data), text(decoder.trailer())))
    }

    #[track_caller]
    fn check(body: &str, expected: &str, trailer: &str) {
        for size in 1..=body.len() {
            let found = decode(body.as_bytes(), size).unwrap();
            assert_eq!(found, (expected.to_owned(), trailer.to_owned()), "{size}");
        }
    }

    #[track_caller]
    fn check_error(body: &str, expected: ChunkError) {
        for size in 1..=body.len() {
            assert_eq!(decode(body.as_bytes(), size), Err(expected), "{size}");
        }
    }

    #[test]
    fn data_comes_out_whatever_the_reads() {
        check("0\r\n\r\n", "", "");
        check("5\r\nhello\r\n0\r\n\r\n", "hello", "");
        check("0005\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\n", "hello0123456789", "");
        check("5;a=b;c=\"d\"\r\nhello\r\n0 ; x\r\n\r\n", "hello", "");
        check("1\r\na\r\n0\r\nx-a: 1\r\nx-b: 2\r\n\r\n", "a", "x-a: 1\r\nx-b: 2\r\n\r\n");
    }

    #[test]
    fn what_servers_read_differently_is_refused() {
        check_error("\r\n", ChunkError::Size);
        check_error("g\r\n", ChunkError::Size);
        check_error("0x5\r\nhello\r\n", ChunkError::Size);
        check_error("-1\r\n", ChunkError::Size);
        check_error("+5\r\nhello\r\n", ChunkError::Size);
        check_error(" 5\r\nhello\r\n", ChunkError::Size);
        check_error("5\nhello\r\n", ChunkError::Size);
        check_error("5 5\r\nhello\r\n", ChunkError::Size);
        check_error("5 \nhello\r\n", ChunkError::Size);
        check_error("5;a\nhello\r\n", ChunkError::LineEnd);
        check_error("5\rhello", ChunkError::LineEnd);
        check_error("5\r\nhello0\r\n\r\n", ChunkError::LineEnd);
        check_error("5\r\nhello\n0\r\n\r\n", ChunkError::LineEnd);
        check_error("0\r\n\n", ChunkError::LineEnd);
        check_error("0\r\na: b\n\r\n", ChunkError::LineEnd);
        check_error("0\r\na : b\r\n\r\n", ChunkError::TrailerLine(HeadError::BadName));
        check_error("ffffffffffffffff\r\n", ChunkError::TooLarge);
        check_error("10000000000000005\r\nhello\r\n", ChunkError::TooLarge);
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let body = format!("1;{}\r\n", "x".repeat(5_000));
        assert_eq!(decode(body.as_bytes(), 100), Err(ChunkError::Extensions));
        let body = format!("{}1\r\na", "0".repeat(5_000));
        assert_eq!(decode(body.as_bytes(), 100), Err(ChunkError::Extensions));
        let body = format!("1{}\r\na", " ".repeat(5_000));
        assert_eq!(decode(body.as_bytes(), 100), Err(ChunkError::Extensions));
        let body = format!("0\r\na: {}\r\n\r\n", "x".repeat(9_000));
        assert_eq!(decode(body.as_bytes(), 100), Err(ChunkError::Trailer));
    }

    #[test]
    fn a_chunk_is_written_with_its_size() {
        for (length, size) in [(1, "1"), (15, "f"), (16, "10"), (4096, "1000")] {
            let (mut out, data) = (Vec::new(), "x".repeat(length));
            push_chunk(&mut out, data.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), format!("{size}\r\n{data}\r\n"));
        }
    }
}
