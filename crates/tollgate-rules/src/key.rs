//! Whom a policy counts: templates such as `rl:auth:{ip}`, and the keys they give.
//!
//! Two clients must never share a key by accident or by design, so the values of a template are
//! kept apart even where they contain its own literal text: each value but the last is written
//! so that the byte after it in the template cannot occur in it. The last one, and so any
//! template of a single part, stays as it is: `{ip}` is plainly `192.168.1.100`.
//!
//! A request that lacks a part (no such header, an empty one, a parameter given twice) is
//! counted by its address as `anonymous:ADDRESS`. One bucket for all such requests would let a
//! single client lock out the others, and refusing them is not for a limiter to decide. No
//! value can forge such a key: one that looks like it gets a `=` in front.
//!
//! A key of up to 64 bytes is rendered without allocating.

mod compile;
mod value;

use std::net::{IpAddr, Ipv6Addr};

use smallvec::SmallVec;

pub use self::compile::KeyTemplateError;
use self::value::Source;

/// A rendered key; short ones live on the stack.
pub type KeyBuf = SmallVec<[u8; 64]>;

/// What a key template may ask of a request.
pub trait Attributes {
    /// The client's address, trusted proxies already taken into account.
    fn ip(&self) -> IpAddr;
    /// The value of a header; the name is in lower case. A header that is there twice should be
    /// `None`: nobody can tell which of them the upstream believes.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The host the request names, with or without its port.
    fn host(&self) -> Option<&str>;
    /// The method.
    fn method(&self) -> &str;
    /// The path, as it was sent or in its normal form.
    fn path(&self) -> &str;
    /// What stands after the question mark, as it was sent.
    fn query(&self) -> Option<&str>;
}

/// A compiled key template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTemplate {
    parts: Box<[Part]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Box<[u8]>),
    /// A value, and how to keep it apart from what follows; the last needs nothing.
    Value(Source, Option<Escape>),
}

/// How to write a value so that `stop` does not occur in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Escape {
    stop: u8,
    /// Written twice for itself, and before `code` for `stop`.
    escape: u8,
    code: u8,
}

const ANONYMOUS: &[u8] = b"anonymous:";

impl KeyTemplate {
    /// Counts by address.
    pub fn ip() -> Self {
        Self { parts: Box::new([Part::Value(Source::Ip, None)]) }
    }

    /// Reads a template: literal text with parts in braces.
    pub fn parse(text: &str) -> Result<Self, KeyTemplateError> {
        compile::parse(text)
    }

    /// Writes the key of a request into `out`, which is cleared first. `ipv6_prefix` leading
    /// bits of an IPv6 address are kept.
    pub fn render<A: Attributes + ?Sized>(
        &self,
        attributes: &A,
        ipv6_prefix: u8,
        out: &mut KeyBuf,
    ) {
        out.clear();
        for part in &self.parts {
            let found = match part {
                Part::Literal(text) => {
                    out.extend_from_slice(text);
                    true
                }
                Part::Value(Source::Ip, escape) => {
                    push_address(out, masked(attributes.ip(), ipv6_prefix), *escape);
                    true
                }
                Part::Value(source, escape) => push_value(out, source, attributes, *escape),
            };
            if !found {
                return anonymous(attributes.ip(), ipv6_prefix, out);
            }
        }
        if looks_anonymous(out) {
            out.insert(0, b'=');
        }
    }
}

fn anonymous(ip: IpAddr, ipv6_prefix: u8, out: &mut KeyBuf) {
    out.clear();
    out.extend_from_slice(ANONYMOUS);
    push_address(out, masked(ip, ipv6_prefix), None);
}

/// Whether a key could be taken for an anonymous one, or for one already set apart from them.
fn looks_anonymous(key: &[u8]) -> bool {
    let marks = key.iter().take_while(|&&byte| byte == b'=').count();
    key[marks..].starts_with(ANONYMOUS)
}

/// One client's address: an IPv6 customer has a whole network, an IPv4 one may come mapped.
fn masked(ip: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => {
            let host_bits = 128 - u32::from(ipv6_prefix.min(128));
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
        v4 => v4,
    }
}

fn push_address(out: &mut KeyBuf, ip: IpAddr, escape: Option<Escape>) {
    let start = out.len();
    match (ip, escape) {
        (IpAddr::V4(v4), _) => {
            value::push_ipv4(out, v4);
            escape_from(out, start, escape);
        }
        (IpAddr::V6(v6), None) => value::push_ipv6(out, v6),
        // Its colons are likely to be the template's, too; within brackets they stay readable.
        (IpAddr::V6(v6), Some(_)) => {
            out.push(b'[');
            value::push_ipv6(out, v6);
            out.push(b']');
        }
    }
}

/// Writes a value; `false` if the request has none.
fn push_value<A: Attributes + ?Sized>(
    out: &mut KeyBuf,
    source: &Source,
    attributes: &A,
    escape: Option<Escape>,
) -> bool {
    let start = out.len();
    if !source.push(attributes, out) || out.len() == start {
        return false;
    }
    escape_from(out, start, escape);
    true
}

/// Escapes what was written from `start` on.
fn escape_from(out: &mut KeyBuf, start: usize, escape: Option<Escape>) {
    let Some(Escape { stop, escape, code }) = escape else { return };
    if !out[start..].iter().any(|&byte| byte == stop || byte == escape) {
        return;
    }
    let raw = KeyBuf::from_slice(&out[start..]);
    out.truncate(start);
    for byte in raw {
        match byte {
            _ if byte == stop => out.extend_from_slice(&[escape, code]),
            _ if byte == escape => out.extend_from_slice(&[escape, escape]),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
