//! Taking one value out of a request.
//!
//! A value is read the way an upstream would read it: escapes decoded, host and path in their
//! normal form. Otherwise one client could spell its name in many ways and have a bucket each.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::{Attributes, KeyBuf};
use crate::{
    host::bare_host,
    path::{normal_path, segments},
};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Ip,
    /// A header; in lower case.
    Header(Box<str>),
    Cookie(Box<str>),
    Query(Box<str>),
    /// A segment of the path, the first being 1.
    Segment(usize),
    Host,
    Method,
}

impl Source {
    /// Appends the value; `false` if the request has none.
    pub(super) fn push<A: Attributes + ?Sized>(&self, attributes: &A, out: &mut KeyBuf) -> bool {
        match self {
            // The template writes addresses itself: only it knows how they are masked.
            Self::Ip => false,
            Self::Header(name) => push_bytes(out, attributes.header(name)),
            Self::Cookie(name) => {
                push_bytes(out, attributes.header("cookie").and_then(|all| cookie(all, name)))
            }
            Self::Query(name) => attributes.query().is_some_and(|all| push_query(out, all, name)),
            Self::Segment(number) => push_segment(out, attributes.path(), *number),
            Self::Host => attributes.host().is_some_and(|host| {
                out.extend(bare_host(host).bytes().map(|byte| byte.to_ascii_lowercase()));
                true
            }),
            Self::Method => push_bytes(out, Some(attributes.method().as_bytes())),
        }
    }
}

fn push_bytes(out: &mut KeyBuf, value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| {
        out.extend_from_slice(value);
        true
    })
}

/// The value of a cookie, without its quotes; one that is there twice is none.
fn cookie<'a>(all: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut values = all.split(|&byte| byte == b';').filter_map(|pair| {
        let pair = pair.trim_ascii();
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        Some(unquoted.unwrap_or(value))
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Appends the decoded value of a parameter; one that is there twice is none.
fn push_query(out: &mut KeyBuf, all: &str, name: &str) -> bool {
    let mut values = all.split('&').filter_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        decoded(found).eq(name.bytes()).then_some(value)
    });
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    out.extend(decoded(value));
    true
}

/// The bytes a form field stands for; a broken escape stands for itself.
fn decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        rest = after;
        if first == b'+' {
            return Some(b' ');
        }
        let digit = |at: usize| after.get(at).and_then(|&digit| (digit as char).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            rest = &after[2..];
            return u8::try_from(high << 4 | low).ok();
        }
        Some(first)
    })
}

fn push_segment(out: &mut KeyBuf, path: &str, number: usize) -> bool {
    let normal = normal_path(path);
    let segment = normal.as_deref().and_then(|path| segments(path).nth(number - 1));
    push_bytes(out, segment.map(str::as_bytes))
}

pub(super) fn push_ipv4(out: &mut KeyBuf, ip: Ipv4Addr) {
    // One copy at the end: growing the buffer byte by byte would cost three times as much.
    let mut text = [b'.'; 16];
    let mut end = 0;
    for octet in ip.octets() {
        for (at_least, divisor) in [(100, 100), (10, 10), (0, 1)] {
            if octet >= at_least {
                text[end] = b'0' + octet / divisor % 10;
                end += 1;
            }
        }
        // The dot is there already.
        end += 1;
    }
    out.extend_from_slice(&text[..end - 1]);
}

pub(super) fn push_ipv6(out: &mut KeyBuf, ip: Ipv6Addr) {
    // Writing into a buffer that grows cannot fail.
    let _ = write!(Text(out), "{ip}");
}

struct Text<'a>(&'a mut KeyBuf);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
