//! How long something took, in buckets from a quarter of a microsecond to ten seconds.
//!
//! An observation is a search among two dozen numbers and two additions to memory that only this
//! thread writes; there is no lock. A page read meanwhile may miss the sum of an observation
//! whose count it has, which the next reading mends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{counter::Striped, page::Page};

/// Upper bounds in nanoseconds, and in seconds as the page writes them. One ladder for both
/// histograms: it begins where a decision in memory lies and ends beyond every time-out.
const BOUNDS: [(u64, &str); 23] = [
    (250, "0.00000025"),
    (500, "0.0000005"),
    (1_000, "0.000001"),
    (2_500, "0.0000025"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_500_000_000, "2.5"),
    (10_000_000_000, "10.0"),
];

/// A distribution of durations. Clones observe together.
#[derive(Debug, Clone, Default)]
pub struct Histogram(Arc<Striped<Cells>>);

#[derive(Debug, Default)]
struct Cells {
    /// Not cumulative; the last is for what exceeds every bound.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| bound.0 < nanos);
        let cells = self.0.mine();
        cells.counts[bucket].fetch_add(1, Ordering::Relaxed);
        cells.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How many were observed.
    pub fn count(&self) -> u64 {
        (0..=BOUNDS.len()).map(|bucket| self.in_bucket(bucket)).sum()
    }

    pub(super) fn write(&self, page: &mut Page) {
        let mut cumulative = 0;
        for (bucket, (_, bound)) in BOUNDS.iter().enumerate() {
            cumulative += self.in_bucket(bucket);
            page.sample_of("_bucket", &[("le", bound)], cumulative);
        }
        cumulative += self.in_bucket(BOUNDS.len());
        page.sample_of("_bucket", &[("le", "+Inf")], cumulative);
        page.sample_of("_sum", &[], self.sum_seconds());
        page.sample_of("_count", &[], cumulative);
    }

    fn in_bucket(&self, bucket: usize) -> u64 {
        self.0.iter().map(|cells| cells.counts[bucket].load(Ordering::Relaxed)).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "a sum of years to the microsecond is enough")]
    fn sum_seconds(&self) -> f64 {
        let nanos: u64 = self
            .0
            .iter()
            .fold(0, |sum, cells| sum.wrapping_add(cells.sum_nanos.load(Ordering::Relaxed)));
        nanos as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_are_written_as_what_they_are() {
        assert!(BOUNDS.is_sorted());
        for (nanos, text) in BOUNDS {
            assert_eq!(text.parse::<f64>().unwrap(), nanos as f64 / 1e9);
        }
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let bucket_of = |nanos| {
            let histogram = Histogram::default();
            histogram.observe(Duration::from_nanos(nanos));
            (0..=BOUNDS.len()).find(|bucket| histogram.in_bucket(*bucket) == 1).unwrap()
        };
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(250), 0);
        assert_eq!(bucket_of(251), 1);
        assert_eq!(bucket_of(10_000_000_000), 22);
        assert_eq!(bucket_of(10_000_000_001), 23);
        assert_eq!(bucket_of(u64::MAX), 23);
    }

    #[test]
    fn threads_observe_together() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| histogram.observe(Duration::from_millis(1))));
            }
        });
        assert_eq!(histogram.count(), 800);
        assert!((histogram.sum_seconds() - 0.8).abs() < 1e-9);
    }
}
