//! The `Date` header, written once a second instead of once a request.

use std::{
    cell::{Cell, RefCell},
    fmt::Write as _,
    time::{Duration, UNIX_EPOCH},
};

use httpdate::HttpDate;
use tollgate_core::Time;

/// The last second's text.
#[derive(Debug, Default)]
pub(crate) struct DateCache {
    second: Cell<u64>,
    text: RefCell<String>,
}

impl DateCache {
    /// Appends the header line.
    pub(crate) fn push(&self, now: Time, out: &mut Vec<u8>) {
        let second = now.as_micros() / 1_000_000;
        let mut text = self.text.borrow_mut();
        if self.second.replace(second) != second || text.is_empty() {
            text.clear();
            let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
            write!(text, "Date: {date}\r\n").expect("writing to a string cannot fail");
        }
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cache: &DateCache, micros: u64, expected: &str) {
        let mut out = Vec::new();
        cache.push(Time::from_micros(micros), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_text_follows_the_second() {
        let cache = DateCache::default();
        check(&cache, 0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
        check(&cache, 784_111_777_000_000, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        check(&cache, 784_111_777_999_999, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        check(&cache, 784_111_778_000_000, "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    }
}
