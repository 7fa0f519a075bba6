//! A server that throws keys away is warned of. Alone in its process, for the log is shared by all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;

use std::{
    io,
    sync::{Arc, Mutex},
};

use node::{runtime, start};
use tollgate_testkit::{
    servers::RedisOptions,
    wait::{PATIENCE, wait_until},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn a_server_that_evicts_keys_is_warned_of_and_no_other() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();

    let keeping = RedisOptions::new().memory_max(100_000_000).start().unwrap();
    let store = start(&keeping.url());
    runtime().block_on(store.ready());
    // Once a second, and the first time looked at after it was met.
    wait_until(PATIENCE, || keeping.info("total_commands_processed").unwrap() != "0").unwrap();
    let evicting = RedisOptions::new().line("maxmemory-policy allkeys-lru").start().unwrap();
    let _store = start(&evicting.url());
    wait_until(PATIENCE, || log.text().contains("WARN")).unwrap();
    let text = log.text();
    assert_eq!(text.matches("WARN").count(), 1, "{text}");
    assert!(text.contains("Redis is set to evict keys (maxmemory-policy allkeys-lru)"), "{text}");
    assert!(text.contains(&evicting.addr().to_string()), "{text}");
}
