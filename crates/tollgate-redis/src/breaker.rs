//! Whether a server is worth asking.
//!
//! A server that cannot be connected to opens the breaker at once; other failures open it when
//! several come in a row, because one slow answer or one lost connection says nothing. While it is
//! open calls fail without waiting, and only a probe in the background closes it. Each opening
//! begins a new generation: what an older connection still reports no longer matters, and the
//! connection itself is not used again.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::fault::Fault;

/// Two in a row happen by chance; a third would make everybody wait for nothing.
const FAILURES_MAX: u32 = 3;

/// Asked before every call: two loads, no lock.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    open: AtomicBool,
    failures: AtomicU32,
    generation: AtomicU64,
    cause: Mutex<Option<Fault>>,
}

impl Breaker {
    /// Why not to ask, if so.
    pub(crate) fn refusal(&self) -> Option<Fault> {
        if self.open.load(Ordering::Acquire) { self.cause.lock().clone() } else { None }
    }

    /// How often it has opened.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Notes an answer.
    pub(crate) fn succeed(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Notes a failure in a generation; true if this is what opened the breaker.
    pub(crate) fn fail(&self, fault: &Fault, generation: u64) -> bool {
        let mut cause = self.cause.lock();
        if generation != self.generation() || cause.is_some() {
            return false;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if !fault.is_unreachable() && failures < FAILURES_MAX {
            return false;
        }
        *cause = Some(fault.clone());
        self.generation.fetch_add(1, Ordering::Release);
        self.open.store(true, Ordering::Release);
        true
    }

    /// Notes why a probe failed: the cause may have changed.
    pub(crate) fn still(&self, fault: &Fault) {
        if let Some(cause) = self.cause.lock().as_mut() {
            *cause = fault.clone();
        }
    }

    /// A probe was answered.
    pub(crate) fn close(&self) {
        let mut cause = self.cause.lock();
        *cause = None;
        self.failures.store(0, Ordering::Relaxed);
        self.open.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ErrorKind;

    fn refused() -> Fault {
        Fault::new(ErrorKind::Connection, "connection refused").while_connecting()
    }

    fn slow() -> Fault {
        Fault::timed_out(Duration::from_millis(50))
    }

    #[test]
    fn a_server_that_cannot_be_reached_opens_it_at_once() {
        let breaker = Breaker::default();
        assert!(!breaker.fail(&Fault::new(ErrorKind::Connection, "connection lost"), 0));
        assert!(breaker.fail(&refused(), 0));
        assert_eq!(breaker.refusal().unwrap().to_string(), "connection refused");
        breaker.close();
        assert!(breaker.refusal().is_none());
    }

    #[test]
    fn three_failures_in_a_row_open_it_and_an_answer_between_them_counts() {
        let breaker = Breaker::default();
        assert!(!breaker.fail(&slow(), 0) && !breaker.fail(&slow(), 0));
        breaker.succeed();
        assert!(!breaker.fail(&slow(), 0) && !breaker.fail(&slow(), 0));
        assert!(breaker.fail(&slow(), 0));
        assert_eq!(breaker.refusal().unwrap().to_string(), "timed out after 50 ms");
    }

    #[test]
    fn what_an_older_generation_reports_does_not_matter() {
        let breaker = Breaker::default();
        let lost = refused();
        assert!(breaker.fail(&lost, 0));
        breaker.close();
        assert!(!breaker.fail(&lost, 0));
        assert!(breaker.refusal().is_none());
        assert!(breaker.fail(&lost, 1));
    }
}
