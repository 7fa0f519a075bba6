//! A number as a header value, small ones without an allocation.
//!
//! `X-RateLimit-Remaining` and the waits are nearly always below a thousand, and those are slices
//! of one text that the compiler writes. Larger ones cost one exact allocation; the conversion
//! that `http` offers would reserve twenty bytes and so allocate twice.

use http::HeaderValue;

/// How many numbers stand in the table; three digits each make 3 kB, which stays cached.
const SMALL: usize = 1_000;

/// `000001002…999`: number `n` is the last digits of the three at `3 * n`.
static DIGITS: [u8; 3 * SMALL] = digits();

/// `number` in decimal.
pub(crate) fn header_value(number: u64) -> HeaderValue {
    match small(number) {
        Some(text) => HeaderValue::from_static(text),
        None => HeaderValue::from_str(itoa::Buffer::new().format(number))
            .expect("digits are a header value"),
    }
}

fn small(number: u64) -> Option<&'static str> {
    let number = usize::try_from(number).ok().filter(|&number| number < SMALL)?;
    let end = 3 * number + 3;
    let length = if number < 10 {
        1
    } else if number < 100 {
        2
    } else {
        3
    };
    std::str::from_utf8(&DIGITS[end - length..end]).ok()
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of ten fits a byte")]
const fn digits() -> [u8; 3 * SMALL] {
    let mut text = [b'0'; 3 * SMALL];
    let mut n = 0;
    while n < SMALL {
        text[3 * n] += (n / 100) as u8;
        text[3 * n + 1] += (n / 10 % 10) as u8;
        text[3 * n + 2] += (n % 10) as u8;
        n += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_reads_as_itself() {
        let edges = [9_999, 10_000, 1_800_000_000, 1 << 53, u64::MAX];
        for number in (0..2_000).chain(edges) {
            assert_eq!(header_value(number), number.to_string());
        }
    }
}
