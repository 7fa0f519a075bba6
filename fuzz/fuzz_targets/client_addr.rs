//! libFuzzer's way into `tollgate_fuzz::client_addr`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::client_addr::read(bytes));
