//! One server of however many there are: where it is, whether it is worth asking, which run of it
//! was met last.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{Host, breaker::Breaker};

/// A server, shared by all threads that ask it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) host: Host,
    pub(crate) breaker: Breaker,
    /// No longer part of the arrangement: nobody should keep a connection to it.
    retired: AtomicBool,
    run: Mutex<Option<Run>>,
    checked: AtomicBool,
}

/// One life of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    /// Its run id.
    Known(String),
    /// It would not tell; every loss of all connections may have been its end.
    Untold {
        /// How often connections had been lost by then.
        generation: u64,
    },
}

impl Server {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            host,
            breaker: Breaker::default(),
            retired: AtomicBool::new(false),
            run: Mutex::new(None),
            checked: AtomicBool::new(false),
        }
    }

    /// Notes which run was met; true if it is not the one met before.
    pub(crate) fn met(&self, run: Run) -> bool {
        let mut last = self.run.lock();
        let other = last.as_ref().is_some_and(|last| *last != run);
        *last = Some(run);
        other
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// True the first time: its settings are looked at once.
    pub(crate) fn unchecked(&self) -> bool {
        !self.checked.swap(true, Ordering::AcqRel)
    }
}
