//! Any text as a rate, a duration or a size: what is understood is shown in a form that is
//! understood the same way again, and no limit made of it overflows.

use tollgate_core::{COST_MAX, Limit};
use tollgate_rules::{parse_duration, parse_rate, parse_size};

/// Reads the bytes as each of them.
pub fn read(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = parse_duration(text);
    let _ = parse_size(text);
    match parse_rate(text) {
        Err(error) => assert!(!error.to_string().is_empty(), "no reason given"),
        Ok(rate) => {
            assert_eq!(parse_rate(&rate.to_string()), Ok(rate), "shown as something else");
            for burst in [0, 1, rate.count, COST_MAX, u64::MAX] {
                let _ = Limit::token_bucket(rate, burst);
                let _ = Limit::leaky_bucket(rate, burst);
            }
            let _ = Limit::fixed_window(rate);
            let _ = Limit::sliding_log(rate);
            let _ = Limit::sliding_counter(rate);
            let _ = Limit::sliding_window(rate);
        }
    }
}
