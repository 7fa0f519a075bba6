//! A count that many cores raise at once without waiting for each other.
//!
//! Each thread adds to a cell of its own, on a cache line of its own; reading adds them up.
//! A shared number would travel from core to core with every request.

use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// More stripes would cost memory on every counter for little: threads that share one merely
/// slow each other down.
const STRIPES_MAX: usize = 16;

/// A power of two, so that a thread's number is brought into range by a mask.
static STRIPES: LazyLock<usize> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(STRIPES_MAX, usize::from);
    cores.next_power_of_two().min(STRIPES_MAX)
});

thread_local! {
    static THREAD: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

/// One value per stripe.
#[derive(Debug)]
pub(super) struct Striped<T>(Box<[Line<T>]>);

/// Alone on its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self((0..*STRIPES).map(|_| Line::default()).collect())
    }
}

impl<T> Striped<T> {
    /// The value of this thread's stripe.
    pub(super) fn mine(&self) -> &T {
        let mask = self.0.len() - 1;
        &self.0[THREAD.with(|thread| *thread) & mask].0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

/// A number that only grows. Clones count together.
#[derive(Clone, Default)]
pub struct Counter(Arc<Striped<AtomicU64>>);

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// `more` more.
    pub fn add(&self, more: u64) {
        self.0.mine().fetch_add(more, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, cell| sum.wrapping_add(cell.load(Ordering::Relaxed)))
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({})", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_together() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| (0..1_000).for_each(|_| counter.clone().inc()));
            }
        });
        counter.add(2);
        assert_eq!(counter.get(), 40_002);
        assert_eq!(format!("{counter:?}"), "Counter(40002)");
    }
}
