//! What one decision costs on a million keys that come in no order, in time and in memory.
//!
//! Keys are written into a buffer just before they are asked about, as a front end does with what
//! it has just received; that costs both sides the same. Every key is there before the clock runs.

use std::{hint::black_box, io, sync::Barrier, thread, time::Duration};

use tollgate_testkit::cpu::Core;

use crate::{
    allocation,
    bare_table::BareTable,
    limiters::{Governor, Ours},
    own_time::own_time,
    random::Random,
    rounds::{Side, compare, figure, ratio},
};

const KEYS: u64 = 1_000_000;
const DECISIONS: u64 = 2_000_000;

/// Keys as text of 13 bytes, like many an address or an account.
pub(crate) fn string_keys() -> anyhow::Result<()> {
    let ours_ask = |ours: &Ours, key: &TextKey| ours.allows(key.0.as_bytes());
    let governor_ask = |governor: &Governor<String>, key: &TextKey| governor.allows(&key.0);
    run("keyed-string", Ours::new(keys())?, ours_ask, Governor::new()?, governor_ask)
}

/// Keys as numbers.
pub(crate) fn u64_keys() -> anyhow::Result<()> {
    let ours_ask = |ours: &Ours, key: &NumberKey| ours.allows(&key.0);
    let governor_ask =
        |governor: &Governor<u64>, key: &NumberKey| governor.allows(&u64::from_ne_bytes(key.0));
    run("keyed-u64", Ours::new(keys())?, ours_ask, Governor::new()?, governor_ask)
}

/// The store with all it does against a bare table of a library.
pub(crate) fn bare_table() -> anyhow::Result<()> {
    let (ours, bare) = (Ours::new(keys())?, BareTable::new());
    let ours_ask = |key: &NumberKey| ours.allows(&key.0);
    let bare_ask = |key: &NumberKey| bare.allows(&key.0);
    let (ours_bytes, bare_bytes) = (fill(ours_ask), fill(bare_ask));
    figure("table-bytes", "tollgate", ours_bytes, "bytes/key");
    figure("table-bytes", "hashbrown", bare_bytes, "bytes/key");
    ratio("table-bytes-hashbrown", bare_bytes / ours_bytes);
    let sides = vec![
        Side::new("tollgate", || nanos(1, ours_ask)),
        Side::new("hashbrown", || nanos(1, bare_ask)),
    ];
    compare("table", "ns/decision", sides)
}

fn keys() -> usize {
    usize::try_from(KEYS).unwrap_or(usize::MAX)
}

/// How many keys a caller of the batch endpoint sends at once.
const BATCH: usize = 64;

/// A key that is written anew for every decision.
trait Key: Default {
    fn set(&mut self, number: u64);
    fn bytes(&self) -> &[u8];
}

#[derive(Default)]
struct TextKey(String);

impl Key for TextKey {
    fn set(&mut self, number: u64) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.clear();
        bytes.extend_from_slice(b"user-");
        let mut rest = number;
        let mut digits = [b'0'; 8];
        for digit in digits.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        bytes.extend_from_slice(&digits);
        self.0 = String::from_utf8(bytes).unwrap_or_default();
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[derive(Default)]
struct NumberKey([u8; 8]);

impl Key for NumberKey {
    fn set(&mut self, number: u64) {
        self.0 = number.to_ne_bytes();
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn run<K: Key, B: Sync>(
    name: &str,
    ours: Ours,
    ours_ask: impl Fn(&Ours, &K) -> bool + Copy + Send + Sync,
    governor: B,
    governor_ask: impl Fn(&B, &K) -> bool + Copy + Send + Sync,
) -> anyhow::Result<()> {
    let ours_bytes = fill(|key| ours_ask(&ours, key));
    let governor_bytes = fill(|key| governor_ask(&governor, key));
    figure(&format!("{name}-bytes"), "tollgate", ours_bytes, "bytes/key");
    figure(&format!("{name}-bytes"), "governor", governor_bytes, "bytes/key");
    ratio(&format!("{name}-bytes-governor"), governor_bytes / ours_bytes);
    for threads in [1, 2] {
        let sides = vec![
            Side::new("tollgate", || nanos(threads, |key| ours_ask(&ours, key))),
            Side::new("governor", || nanos(threads, |key| governor_ask(&governor, key))),
        ];
        let plural = if threads == 1 { "thread" } else { "threads" };
        compare(&format!("{name}-{threads}-{plural}"), "ns/decision", sides)?;
    }
    let one_by_one =
        |keys: &[K]| keys.iter().filter(|key| !governor_ask(&governor, key)).count() as u64;
    let sides = vec![
        Side::new("tollgate", || batched(|keys: &[K]| ours.refused(keys.iter().map(Key::bytes)))),
        Side::new("governor", || batched(one_by_one)),
    ];
    compare(&format!("{name}-batch-of-{BATCH}"), "ns/decision", sides)
}

/// Nanoseconds per decision where the keys of many are at hand at once.
fn batched<K: Key>(refused: impl Fn(&[K]) -> u64) -> anyhow::Result<f64> {
    let _ = Core(0).pin_current_thread();
    let mut random = Random::new(1);
    let mut keys: Vec<_> = (0..BATCH).map(|_| K::default()).collect();
    let mut sum = 0;
    let time = own_time(|| {
        for _ in 0..DECISIONS / BATCH as u64 {
            keys.iter_mut().for_each(|key| key.set(random.below(KEYS)));
            sum += refused(&keys);
        }
    })?;
    black_box(sum);
    Ok(time.as_nanos() as f64 / DECISIONS as f64)
}

/// Asks once about every key and gives the bytes that each costs.
fn fill<K: Key>(ask: impl Fn(&K) -> bool) -> f64 {
    let before = allocation::held();
    let mut key = K::default();
    for number in 0..KEYS {
        key.set(number);
        assert!(ask(&key), "the first request of a key must pass");
    }
    drop(key);
    (allocation::held() - before) as f64 / KEYS as f64
}

/// Nanoseconds per decision while each of `threads` takes `DECISIONS`, each on its own core.
fn nanos<K: Key>(
    threads: usize,
    ask: impl Fn(&K) -> bool + Copy + Send + Sync,
) -> anyhow::Result<f64> {
    let barrier = Barrier::new(threads);
    let times = thread::scope(|scope| {
        let barrier = &barrier;
        let running: Vec<_> = (0..threads)
            .map(|core| scope.spawn(move || on_core(Core(core), barrier, ask)))
            .collect();
        let joined = running.into_iter().map(|thread| thread.join().expect("no decision panics"));
        joined.collect::<io::Result<Vec<_>>>()
    })?;
    let longest = times.into_iter().max().unwrap_or_default();
    Ok(longest.as_nanos() as f64 / DECISIONS as f64)
}

fn on_core<K: Key>(
    core: Core,
    barrier: &Barrier,
    ask: impl Fn(&K) -> bool,
) -> io::Result<Duration> {
    // On a machine with a single core both threads share it, for both sides alike.
    let _ = core.pin_current_thread();
    let mut random = Random::new(core.0 as u64 + 1);
    let mut key = K::default();
    let mut refused = 0_u64;
    barrier.wait();
    let time = own_time(|| {
        for _ in 0..DECISIONS {
            key.set(random.below(KEYS));
            refused += u64::from(!ask(&key));
        }
    });
    black_box(refused);
    time
}
