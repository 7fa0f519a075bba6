//! libFuzzer's way into `tollgate_fuzz::rate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::rate::read(bytes));
