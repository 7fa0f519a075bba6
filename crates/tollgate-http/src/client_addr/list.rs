//! The entries of a comma-separated header, from either end, across its lines.
//!
//! Going from the right also decides what a broken quotation can do: the entries our proxies
//! wrote are read before anything the caller sent, so an open quote far left hides none of them.

use super::{BYTES_MAX, ENTRIES_MAX};

/// Whether commas inside quotes separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The header knows no quotes: every comma separates.
    None,
    /// A comma inside a quoted string is part of it.
    Skip,
}

/// Entries from the first one on; `lines` begins with the first line.
pub(super) fn from_left<'a, L>(lines: L, quotes: Quotes) -> Entries<'a, L> {
    Entries::new(lines, Side::Left, quotes)
}

/// Entries from the last one on; `lines` begins with the last line.
pub(super) fn from_right<'a, L>(lines: L, quotes: Quotes) -> Entries<'a, L> {
    Entries::new(lines, Side::Right, quotes)
}

/// Entries without the space around them; empty ones mean nothing (RFC 9110, 5.6.1) and are
/// passed over. Ends early once the bounds are reached, and never gives part of an entry.
pub(super) struct Entries<'a, L> {
    lines: L,
    rest: Option<&'a [u8]>,
    side: Side,
    quotes: Quotes,
    entries_left: usize,
    bytes_left: usize,
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

impl<L> Entries<'_, L> {
    fn new(lines: L, side: Side, quotes: Quotes) -> Self {
        let (entries_left, bytes_left) = (ENTRIES_MAX, BYTES_MAX);
        Self { lines, rest: None, side, quotes, entries_left, bytes_left }
    }
}

impl<'a, L: Iterator<Item = &'a [u8]>> Iterator for Entries<'a, L> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            self.entries_left = self.entries_left.checked_sub(1)?;
            let line = match self.rest.take() {
                Some(rest) => rest,
                None => self.lines.next()?,
            };
            let (entry, rest) = match self.side {
                Side::Left => split_first(line, self.bytes_left, self.quotes)?,
                Side::Right => split_last(line, self.bytes_left, self.quotes)?,
            };
            self.bytes_left = self.bytes_left.saturating_sub(entry.len() + 1);
            self.rest = rest;
            let entry = entry.trim_ascii();
            if !entry.is_empty() {
                return Some(entry);
            }
        }
    }
}

/// An entry, and what is left of its line.
type Split<'a> = (&'a [u8], Option<&'a [u8]>);

fn split_first(line: &[u8], bytes_max: usize, quotes: Quotes) -> Option<Split<'_>> {
    let seen = &line[..line.len().min(bytes_max)];
    let comma = match quotes {
        Quotes::None => seen.iter().position(|&byte| byte == b','),
        Quotes::Skip => first_unquoted(seen, b','),
    };
    match comma {
        Some(at) => Some((&line[..at], Some(&line[at + 1..]))),
        None => (seen.len() == line.len()).then_some((line, None)),
    }
}

fn split_last(line: &[u8], bytes_max: usize, quotes: Quotes) -> Option<Split<'_>> {
    let unseen = line.len().saturating_sub(bytes_max);
    let comma = match quotes {
        Quotes::None => line[unseen..].iter().rposition(|&byte| byte == b','),
        Quotes::Skip => last_unquoted_comma(&line[unseen..]),
    };
    match comma {
        Some(at) => Some((&line[unseen + at + 1..], Some(&line[..unseen + at]))),
        None => (unseen == 0).then_some((line, None)),
    }
}

/// The first `separator` outside of quotes.
pub(super) fn first_unquoted(text: &[u8], separator: u8) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    text.iter().position(|&byte| {
        if escaped {
            escaped = false;
            return false;
        }
        match byte {
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
        byte == separator && !quoted
    })
}

fn last_unquoted_comma(text: &[u8]) -> Option<usize> {
    let mut quoted = false;
    (0..text.len()).rev().find(|&at| {
        // Read backwards, the first quote met ends a string and the next bare one begins it.
        if text[at] == b'"' && !(quoted && ends_in_escape(&text[..at])) {
            quoted = !quoted;
        }
        text[at] == b',' && !quoted
    })
}

fn ends_in_escape(text: &[u8]) -> bool {
    text.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Vec<&'a str> {
        entries.map(|entry| std::str::from_utf8(entry).unwrap()).collect()
    }

    #[track_caller]
    fn check(lines: &[&str], quotes: Quotes, expected: &[&str]) {
        let bytes = lines.iter().map(|line| line.as_bytes());
        assert_eq!(texts(from_left(bytes.clone(), quotes)), expected);
        let mut backwards = texts(from_right(bytes.rev(), quotes));
        backwards.reverse();
        assert_eq!(backwards, expected);
    }

    #[test]
    fn several_lines_are_one_list() {
        check(&["a, b", "c"], Quotes::None, &["a", "b", "c"]);
        check(&[" , a,,\tb ,", "", "c,"], Quotes::None, &["a", "b", "c"]);
        check(&[], Quotes::None, &[]);
        check(&["", " , "], Quotes::Skip, &[]);
    }

    #[test]
    fn a_comma_in_quotes_does_not_separate() {
        check(&[r#"a="1,2", b"#], Quotes::Skip, &[r#"a="1,2""#, "b"]);
        check(&[r#"a="\",\\", b"#], Quotes::Skip, &[r#"a="\",\\""#, "b"]);
        check(&[r#"a="1,2""#], Quotes::None, &["a=\"1", "2\""]);
    }

    #[test]
    fn an_open_quote_on_the_left_hides_nothing_on_the_right() {
        let line = br#"for=", for=1.1.1.1, for=2.2.2.2"#;
        let right = texts(from_right([&line[..]].into_iter(), Quotes::Skip).take(2));
        assert_eq!(right, ["for=2.2.2.2", "for=1.1.1.1"]);
    }

    #[test]
    fn reading_ends_at_the_bounds() {
        let many = "a,".repeat(1_000);
        assert_eq!(from_right([many.as_bytes()].into_iter(), Quotes::None).count(), 63);
        assert_eq!(from_left([many.as_bytes()].into_iter(), Quotes::None).count(), 64);
        let wide = format!("{},{}", "a".repeat(BYTES_MAX), "b".repeat(BYTES_MAX - 1));
        assert_eq!(from_right([wide.as_bytes()].into_iter(), Quotes::None).count(), 1);
        assert_eq!(from_left([wide.as_bytes()].into_iter(), Quotes::None).count(), 0);
    }

    proptest! {
        #[test]
        fn both_directions_agree_on_well_formed_lists(
            entries in prop::collection::vec(r#"[a-z]{1,3}(="([a-z,]|\\["\\,])*")?"#, 0..10),
        ) {
            let line = entries.join(", ");
            check(&[&line], Quotes::Skip, &entries.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
