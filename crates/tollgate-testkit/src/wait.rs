//! Waiting for something another thread or process does, and no longer than told.
//!
//! A test that sleeps is either slow or flaky. Here the condition is looked at every millisecond,
//! so that the wait ends as soon as it holds, and the bound only matters when the test fails.

use std::{thread, time::Duration};

use crate::stopwatch::Stopwatch;

/// Long enough for a loaded machine, short enough for a person looking at a failing test.
pub const PATIENCE: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(1);

/// The condition did not come true in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("still not so after {0:?}")]
pub struct TookTooLong(pub Duration);

/// Waits until `condition` gives a value, at most `bound`.
///
/// ```
/// # use std::{sync::atomic::{AtomicBool, Ordering}, thread, time::Duration};
/// # use tollgate_testkit::wait::{PATIENCE, wait_for, TookTooLong};
/// let done = AtomicBool::new(false);
/// thread::scope(|scope| {
///     scope.spawn(|| done.store(true, Ordering::Release));
///     assert_eq!(wait_for(PATIENCE, || done.load(Ordering::Acquire).then_some(7)), Ok(7));
/// });
/// let moment = Duration::from_millis(5);
/// assert_eq!(wait_for(moment, || None::<u8>), Err(TookTooLong(moment)));
/// ```
pub fn wait_for<T>(
    bound: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> Result<T, TookTooLong> {
    let watch = Stopwatch::start();
    loop {
        if let Some(value) = condition() {
            return Ok(value);
        }
        if watch.elapsed() >= bound {
            return Err(TookTooLong(bound));
        }
        thread::park_timeout(PAUSE);
    }
}

/// Waits until `condition` holds, at most `bound`.
pub fn wait_until(bound: Duration, mut condition: impl FnMut() -> bool) -> Result<(), TookTooLong> {
    wait_for(bound, || condition().then_some(()))
}
