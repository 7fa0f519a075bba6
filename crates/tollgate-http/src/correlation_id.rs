//! By which name one request is found again in every log it leaves a line in.
//!
//! A caller's `X-Correlation-ID` is kept when it is sane: 1 to 128 characters of `A–Z a–z 0–9`
//! and `- . _ ~ : / + = @`. That covers UUIDs, trace ids, ULIDs, base64 and `service:id`, and
//! such a text needs no escaping in a header, a JSON body or a log line. Anything else is
//! replaced, never repaired: half an id finds nothing.
//!
//! A made id is 32 hexadecimal digits: 64 random bits of the thread, then a counter that was
//! scrambled one to one. So ids never repeat within a thread, need no system call, and do not
//! tell a client how many requests went by.

use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, RandomState},
};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries the id in, on and back.
pub const HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

/// Longer than any id in use, short enough for every log line.
const LENGTH_MAX: usize = 128;

/// An id that is safe to print anywhere. Kept in place: neither taking nor making one allocates.
#[derive(Clone, Copy)]
pub struct CorrelationId {
    length: u8,
    bytes: [u8; LENGTH_MAX],
}

impl CorrelationId {
    /// The caller's id if it is sane, else a new one.
    ///
    /// ```
    /// # use {http::HeaderMap, tollgate_http::CorrelationId};
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-correlation-id", "order-17".parse().unwrap());
    /// assert_eq!(CorrelationId::of(&headers).as_str(), "order-17");
    ///
    /// headers.insert("x-correlation-id", r#"","admin":true"#.parse().unwrap());
    /// assert_eq!(CorrelationId::of(&headers).as_str().len(), 32);
    /// ```
    pub fn of(headers: &HeaderMap) -> Self {
        Self::of_value(headers.get(HEADER).map(HeaderValue::as_bytes))
    }

    /// The same for a front end that keeps headers in its own way.
    pub fn of_value(value: Option<&[u8]>) -> Self {
        value.and_then(Self::sane).unwrap_or_else(Self::make)
    }

    /// This id, if it is sane.
    pub fn sane(id: &[u8]) -> Option<Self> {
        if !is_sane(id) {
            return None;
        }
        let mut bytes = [0; LENGTH_MAX];
        bytes[..id.len()].copy_from_slice(id);
        Some(Self { length: u8::try_from(id.len()).ok()?, bytes })
    }

    /// A new id, unlike any other.
    pub fn make() -> Self {
        let id = SOURCE.with(Source::next_hex);
        let mut bytes = [0; LENGTH_MAX];
        bytes[..id.len()].copy_from_slice(&id);
        Self { length: 32, bytes }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("only sane ids are kept")
    }

    /// The id as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The id for a header, upstream or back.
    pub fn header_value(&self) -> HeaderValue {
        HeaderValue::from_bytes(self.as_bytes()).expect("only sane ids are kept")
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CorrelationId({})", self.as_str())
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a caller's id may be kept.
pub fn is_sane(id: &[u8]) -> bool {
    (1..=LENGTH_MAX).contains(&id.len()) && id.iter().all(|&byte| is_sane_byte(byte))
}

const fn is_sane_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'+' | b'=' | b'@')
}

thread_local! {
    static SOURCE: Source = Source::new();
}

/// One thread's ids.
struct Source {
    prefix: u64,
    counter: Cell<u64>,
    step: u64,
}

impl Source {
    fn new() -> Self {
        // Odd, so that the counter visits every value before it repeats one; secret, so that two
        // ids do not tell how many lie between them.
        let step = random() | 1;
        Self { prefix: random(), counter: Cell::new(random()), step }
    }

    fn next_hex(&self) -> [u8; 32] {
        let count = self.counter.get().wrapping_add(self.step);
        self.counter.set(count);
        hex(u128::from(self.prefix) << 64 | u128::from(scramble(count)))
    }
}

/// The standard library seeds its hasher from the system once per thread, and cannot fail.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// A bijection on 64 bits: shifts and odd multiplications can all be undone.
const fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

fn hex(id: u128) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0; 32];
    for (pair, byte) in out.chunks_exact_mut(2).zip(id.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[track_caller]
    fn check(sent: &str, kept: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(sent.as_bytes()).unwrap());
        assert_eq!(CorrelationId::of(&headers).as_str() == sent, kept, "{sent:?}");
    }

    // covers: C6
    #[test]
    fn a_sane_id_is_kept() {
        check("a", true);
        check("550e8400-e29b-41d4-a716-446655440000", true);
        check("01ARZ3NDEKTSV4RRFFQ69G5FAV", true);
        check("svc:orders/42.1_b~c+d==@eu", true);
        check(&"x".repeat(128), true);
    }

    // covers: C6
    #[test]
    fn what_could_break_a_log_or_a_body_is_replaced() {
        check(&"x".repeat(129), false);
        check("", false);
        check("two words", false);
        check("a\tb", false);
        check("\"quoted\"", false);
        check("<script>", false);
        check("größe", false);
        check("a,b", false);
        check("%0d%0a", false);
    }

    // covers: C6
    #[test]
    fn without_a_header_a_new_id_is_made() {
        let id = CorrelationId::of(&HeaderMap::new());
        assert_eq!(id.as_str().len(), 32);
        assert!(is_sane(id.as_str().as_bytes()));
        assert_eq!(id.header_value(), id.as_str());
    }

    #[test]
    fn made_ids_differ_within_and_across_threads() {
        let many = || (0..10_000).map(|_| CorrelationId::make().as_str().to_owned());
        let others = std::thread::spawn(move || many().collect::<Vec<_>>()).join().unwrap();
        let all: HashSet<_> = many().chain(others).collect();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn digits_stand_in_order() {
        let text = hex(0x0123_4567_89ab_cdef_0000_0000_0000_00ff);
        assert_eq!(&text, b"0123456789abcdef00000000000000ff");
    }
}
