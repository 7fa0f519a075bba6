//! Who wants to know what the store does: metrics, and tests that count.

use std::time::Duration;

use crate::ErrorKind;

/// Told of every call. It must not block: it is called between a reply and whoever waits for it.
pub trait Observer: Send + Sync {
    /// One call was answered, with this many requests in it, of which so many were decisions.
    fn round_trip(&self, took: Duration, requests: usize, decisions: usize);

    /// One call failed.
    fn failed(&self, kind: ErrorKind);
}

/// Nobody.
impl Observer for () {
    fn round_trip(&self, _: Duration, _: usize, _: usize) {}

    fn failed(&self, _: ErrorKind) {}
}

/// What is known of the store and the fleet on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisStats {
    /// The store's clock less our own.
    pub clock_offset_micros: i64,
    /// How many nodes live, this one included, as last seen.
    pub fleet: usize,
    /// How often the store may have forgotten something.
    pub epoch: u64,
}
