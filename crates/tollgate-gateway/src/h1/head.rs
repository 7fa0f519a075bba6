//! Where a head ends and what its lines are.
//!
//! Stricter than RFC 9112 allows itself to be: a line ends with CR LF and nothing else, no line
//! is folded, no space stands before the colon, no control character in a value. Each of these
//! has been read differently by some server behind some proxy.

use std::ops::Range;

use super::{name::Name, tokens};

/// More lines than any honest message has; an attack is cut short before the map of it grows.
pub(crate) const LINES_MAX: usize = 100;

/// Why a head cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("a line ends without a carriage return")]
    BareLineFeed,
    #[error("a header line is folded")]
    Folded,
    #[error("a header line has no colon")]
    NoColon,
    #[error("a header name has a character that names must not have")]
    BadName,
    #[error("a header value has a control character")]
    BadValue,
    #[error("there are more than {LINES_MAX} header lines")]
    TooMany,
}

/// Looks for the empty line that ends a head, a read at a time.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    seen: usize,
}

impl Scan {
    /// The length of the head with its empty line, once it is all there. `bytes` begins where
    /// the head begins, and each call shows at least what the last one showed.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        for at in memchr::memchr_iter(b'\n', &bytes[self.seen..]) {
            let at = self.seen + at;
            if at == 0 || bytes[at - 1] != b'\r' {
                return Err(HeadError::BareLineFeed);
            }
            if at >= 3 && bytes[at - 2] == b'\n' {
                return Ok(Some(at + 1));
            }
        }
        self.seen = bytes.len();
        Ok(None)
    }
}

/// One header line: where it stands and which it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    name: (u32, u32),
    value: (u32, u32),
    /// Which it is.
    pub(crate) known: Name,
}

/// The lines of a head, as places in its bytes. Kept from message to message, so that reading
/// a head allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
}

impl Lines {
    /// Reads the lines in `bytes[from..]`, which ends with the empty line; places count from
    /// the beginning of `bytes`.
    pub(crate) fn read(&mut self, bytes: &[u8], from: usize) -> Result<(), HeadError> {
        self.lines.clear();
        let mut at = from;
        for feed in memchr::memchr_iter(b'\n', &bytes[from..]) {
            // The scan has made sure of the carriage return.
            let end = from + feed - 1;
            if end == at {
                break;
            }
            if self.lines.len() == LINES_MAX {
                return Err(HeadError::TooMany);
            }
            self.lines.push(line(bytes, at, end)?);
            at = end + 2;
        }
        Ok(())
    }

    /// The lines in their order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter()
    }
}

impl Line {
    /// The name, as it was sent.
    pub(crate) fn name<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.name.0 as usize..self.name.1 as usize]
    }

    /// The value, without the space around it.
    pub(crate) fn value<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.value.0 as usize..self.value.1 as usize]
    }

    /// Where the line begins and ends, its line break included.
    fn place(&self, bytes: &[u8]) -> Range<usize> {
        let value_end = self.value.1 as usize;
        let spaces = bytes[value_end..].iter().take_while(|&&byte| byte != b'\n').count();
        self.name.0 as usize..value_end + spaces + 1
    }
}

/// Appends the lines that may `pass`, as they were sent. Lines that follow one another are copied
/// together, and as a rule that is nearly all of them.
pub(crate) fn push_lines<'a>(
    out: &mut Vec<u8>,
    bytes: &[u8],
    lines: impl Iterator<Item = &'a Line>,
    mut pass: impl FnMut(&Line) -> bool,
) {
    let mut run = 0..0;
    for line in lines {
        if !pass(line) {
            continue;
        }
        let place = line.place(bytes);
        if place.start == run.end {
            run.end = place.end;
        } else {
            out.extend_from_slice(&bytes[run]);
            run = place;
        }
    }
    out.extend_from_slice(&bytes[run]);
}

fn line(bytes: &[u8], start: usize, end: usize) -> Result<Line, HeadError> {
    let text = &bytes[start..end];
    let colon = text.iter().take_while(|&&byte| tokens::is_token_byte(byte)).count();
    match text.get(colon) {
        Some(b':') if colon > 0 => {}
        Some(b' ' | b'\t') if colon == 0 => return Err(HeadError::Folded),
        None => return Err(HeadError::NoColon),
        Some(_) => return Err(HeadError::BadName),
    }
    let value = trim(text, colon + 1);
    if !is_value(&text[value.clone()]) {
        return Err(HeadError::BadValue);
    }
    let place = |from: usize, to: usize| (offset(start + from), offset(start + to));
    Ok(Line {
        known: Name::of(&text[..colon]),
        name: place(0, colon),
        value: place(value.start, value.end),
    })
}

/// What stands at and after `from`, without spaces and tabs around it.
fn trim(text: &[u8], from: usize) -> Range<usize> {
    let (mut start, mut end) = (from, text.len());
    while start < end && matches!(text[start], b' ' | b'\t') {
        start += 1;
    }
    while end > start && matches!(text[end - 1], b' ' | b'\t') {
        end -= 1;
    }
    start..end
}

/// Whether a text has no control characters but tabs.
pub(crate) fn is_value(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut suspect = 0;
    for word in words {
        suspect |= controls(u64::from_ne_bytes(*word));
    }
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    suspect |= controls(u64::from_ne_bytes(last));
    // A tab is suspect too, and rare.
    suspect == 0 || text.iter().all(|&byte| byte == b'\t' || !byte.is_ascii_control())
}

/// Not zero if one of eight bytes is a control character, all looked at together: a byte below
/// a space borrows from its highest bit when the space is subtracted.
const fn controls(word: u64) -> u64 {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = 0x80 * EACH;
    let below_space = word.wrapping_sub(0x20 * EACH) & !word;
    let delete = word ^ (0x7f * EACH);
    let is_delete = delete.wrapping_sub(EACH) & !delete;
    (below_space | is_delete) & HIGH
}

#[expect(clippy::cast_possible_truncation, reason = "heads are bounded far below 4 GiB")]
const fn offset(place: usize) -> u32 {
    place as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Vec<(String, String)>, HeadError> {
        let bytes = head.as_bytes();
        let Some(end) = Scan::default().end(bytes)? else { return Ok(vec![]) };
        let mut lines = Lines::default();
        let from = head.find('\n').unwrap() + 1;
        lines.read(&bytes[..end], from)?;
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
        Ok(lines.iter().map(|line| (text(line.name(bytes)), text(line.value(bytes)))).collect())
    }

    #[track_caller]
    fn check(lines: &str, expected: &[(&str, &str)]) {
        let found = read(&format!("GET / HTTP/1.1\r\n{lines}\r\n")).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, expected);
    }

    #[track_caller]
    fn check_error(lines: &str, expected: HeadError) {
        assert_eq!(read(&format!("GET / HTTP/1.1\r\n{lines}\r\n")), Err(expected));
    }

    #[test]
    fn values_are_trimmed_and_may_be_empty() {
        check("", &[]);
        check("a: b\r\n", &[("a", "b")]);
        check("A:b\r\nc:\t d e \t\r\n", &[("A", "b"), ("c", "d e")]);
        check("a:\r\nb: \t \r\n", &[("a", ""), ("b", "")]);
        check("a: b: c\r\n", &[("a", "b: c")]);
        check("a: größe\r\n", &[("a", "größe")]);
    }

    #[test]
    fn what_servers_read_differently_is_refused() {
        check_error("a: b\n", HeadError::BareLineFeed);
        check_error("a: b\r\n c\r\n", HeadError::Folded);
        check_error(" a: b\r\n", HeadError::Folded);
        check_error("a : b\r\n", HeadError::BadName);
        check_error(": b\r\n", HeadError::BadName);
        check_error("a\u{e4}: b\r\n", HeadError::BadName);
        check_error("ab\r\n", HeadError::NoColon);
        check_error("a b\r\n", HeadError::BadName);
        check_error("a: b\rc\r\n", HeadError::BadValue);
        check_error("a: b\0c\r\n", HeadError::BadValue);
        check_error("a: b\x7f\r\n", HeadError::BadValue);
        check_error(&"a: b\r\n".repeat(101), HeadError::TooMany);
    }

    #[test]
    fn control_characters_are_found_wherever_they_stand() {
        for byte in 0..=255_u8 {
            for length in 1..20 {
                for place in 0..length {
                    let mut text = vec![b'x'; length];
                    text[place] = byte;
                    let expected = byte == b'\t' || !byte.is_ascii_control();
                    assert_eq!(is_value(&text), expected, "{byte} at {place} of {length}");
                }
            }
        }
        assert!(is_value(b""));
    }

    #[test]
    fn the_end_is_found_whatever_the_reads() {
        let head = b"GET / HTTP/1.1\r\na: b\r\n\r\nbody\r\n\r\n";
        for cut in 0..head.len() {
            let mut scan = Scan::default();
            let first = scan.end(&head[..cut]).unwrap();
            let expected = (cut >= 24).then_some(24);
            assert_eq!(first, expected, "{cut}");
            assert_eq!(scan.end(head).unwrap(), Some(24), "{cut}");
        }
    }

    #[test]
    fn a_bare_line_feed_is_found_before_the_end_is_there() {
        assert_eq!(Scan::default().end(b"GET / HTTP/1.1\nh"), Err(HeadError::BareLineFeed));
        assert_eq!(Scan::default().end(b"\n"), Err(HeadError::BareLineFeed));
    }
}
