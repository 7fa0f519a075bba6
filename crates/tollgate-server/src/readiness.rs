//! Whether this process wants traffic, as `/readyz` tells a load balancer.
//!
//! Alive and ready are two things: a process that drains is alive, and should be left alone to
//! finish, but should get no new work.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::Relaxed},
};

/// A switch that the program holds and `/readyz` reads. Clones are the same switch; it begins
/// as starting.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicU8>);

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

impl Readiness {
    /// Everything that is needed to decide is there.
    pub fn ready(&self) {
        self.0.store(READY, Relaxed);
    }

    /// The process is about to stop: finish what has begun, send nothing new.
    pub fn draining(&self) {
        self.0.store(DRAINING, Relaxed);
    }

    /// Why no traffic is wanted; none if it is.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        match self.0.load(Relaxed) {
            READY => None,
            DRAINING => Some("The service is draining and takes no new work."),
            STARTING.. => Some("The service is still starting."),
        }
    }
}
