//! How many callers may wait for their turn at once.
//!
//! A waiting caller costs a connection and some memory for as long as it likes; without a bound
//! a few slow policies would leave no room for those who only ask.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The places there are, and how many are taken.
#[derive(Debug)]
pub(crate) struct Waiters {
    taken: AtomicUsize,
    max: usize,
}

impl Waiters {
    pub(crate) const fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max }
    }

    /// Takes a place until it is dropped; none if all are taken.
    pub(crate) fn enter(&self) -> Option<WaitingPlace<'_>> {
        // Counted before it is looked at, so that two callers cannot both see the last place.
        let place = WaitingPlace { taken: &self.taken };
        (self.taken.fetch_add(1, Relaxed) < self.max).then_some(place)
    }
}

/// A place to wait; dropping it frees it.
#[derive(Debug)]
pub(crate) struct WaitingPlace<'a> {
    taken: &'a AtomicUsize,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_left_can_be_taken_again() {
        let waiters = Waiters::new(2);
        let first = waiters.enter();
        let second = waiters.enter();
        assert!(first.is_some() && second.is_some());
        assert!(waiters.enter().is_none());
        drop(first);
        assert!(waiters.enter().is_some());
    }
}
