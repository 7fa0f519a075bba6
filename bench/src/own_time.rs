//! How long work took, without the time in which other programs had the core.

use std::{io, time::Duration};

use tollgate_testkit::{cpu::waited_for_core, stopwatch::Stopwatch};

/// Times `work` on the current thread. Waiting for a lock counts; waiting for a core does not.
pub(crate) fn own_time(work: impl FnOnce()) -> io::Result<Duration> {
    let before = waited_for_core()?;
    let watch = Stopwatch::start();
    work();
    let elapsed = watch.elapsed();
    Ok(elapsed.saturating_sub(waited_for_core()? - before))
}
