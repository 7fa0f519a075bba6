//! libFuzzer's way into `tollgate_fuzz::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::configuration::read(bytes));
