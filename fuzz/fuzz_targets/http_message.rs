//! libFuzzer's way into `tollgate_fuzz::http_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::http_message::read(bytes));
