//! The longest that a single new key has to wait while ten million are added.
//!
//! A table that doubles moves all its keys while somebody waits. Every insert is timed by itself.
//! The time in which other programs had the core is taken out again: on a busy machine it would be
//! all there is to see.

use std::time::Duration;

use tollgate_testkit::{
    cpu::{Core, waited_for_core},
    stopwatch::Stopwatch,
};

use crate::{
    limiters::{Governor, Ours},
    rounds::{Side, compare},
};

const KEYS: u64 = 10_000_000;

pub(crate) fn worst_insert() -> anyhow::Result<()> {
    Core(0).pin_current_thread()?;
    let keys = usize::try_from(KEYS)?;
    let sides = vec![
        Side::new("tollgate", move || {
            let ours = Ours::new(keys)?;
            worst(|key| ours.allows(&key.to_ne_bytes()))
        }),
        Side::new("governor", || {
            let governor = Governor::<u64>::new()?;
            worst(|key| governor.allows(&key))
        }),
    ];
    compare("fill-worst-insert", "µs", sides)
}

/// An insert that was interrupted takes longer than this; a quick one is not worth asking about.
const SUSPICIOUS: Duration = Duration::from_micros(50);

/// The longest insert in microseconds.
fn worst(ask: impl Fn(u64) -> bool) -> anyhow::Result<f64> {
    let mut longest = Duration::ZERO;
    let mut waited = waited_for_core()?;
    for key in 0..KEYS {
        let watch = Stopwatch::start();
        let allowed = ask(key);
        let mut elapsed = watch.elapsed();
        anyhow::ensure!(allowed, "the first request of a key must pass");
        if elapsed > SUSPICIOUS {
            let before = std::mem::replace(&mut waited, waited_for_core()?);
            elapsed = elapsed.saturating_sub(waited - before);
        }
        longest = longest.max(elapsed);
    }
    Ok(longest.as_nanos() as f64 / 1_000.0)
}
