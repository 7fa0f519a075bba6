//! libFuzzer's way into `tollgate_fuzz::key_template`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::key_template::read(bytes));
