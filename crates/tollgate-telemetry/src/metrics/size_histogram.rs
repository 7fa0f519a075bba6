//! How many things came at once, in buckets that double from 1 to 128.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{counter::Striped, page::Page};

/// Upper bounds as the page writes them; the last is the most that a store is sent in one call.
const BOUNDS: [&str; 8] = ["1.0", "2.0", "4.0", "8.0", "16.0", "32.0", "64.0", "128.0"];

/// A distribution of sizes. Clones observe together.
#[derive(Debug, Clone, Default)]
pub struct SizeHistogram(Arc<Striped<Cells>>);

#[derive(Debug, Default)]
struct Cells {
    /// Not cumulative; the last is for what exceeds every bound.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

impl SizeHistogram {
    /// Counts one size.
    pub fn observe(&self, size: usize) {
        let cells = self.0.mine();
        cells.counts[bucket(size)].fetch_add(1, Ordering::Relaxed);
        cells.sum.fetch_add(size as u64, Ordering::Relaxed);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let mut cumulative = 0;
        for (bucket, bound) in BOUNDS.iter().enumerate() {
            cumulative += self.in_bucket(bucket);
            page.sample_of("_bucket", &[("le", bound)], cumulative);
        }
        cumulative += self.in_bucket(BOUNDS.len());
        page.sample_of("_bucket", &[("le", "+Inf")], cumulative);
        let sum: u64 = self.0.iter().map(|cells| cells.sum.load(Ordering::Relaxed)).sum();
        page.sample_of("_sum", &[], sum);
        page.sample_of("_count", &[], cumulative);
    }

    fn in_bucket(&self, bucket: usize) -> u64 {
        self.0.iter().map(|cells| cells.counts[bucket].load(Ordering::Relaxed)).sum()
    }
}

/// The first bucket that holds a size: the exponent of the next power of two.
fn bucket(size: usize) -> usize {
    let exponent = size.checked_next_power_of_two().map_or(u32::MAX, usize::trailing_zeros);
    usize::try_from(exponent).map_or(BOUNDS.len(), |exponent| exponent.min(BOUNDS.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_falls_into_the_first_bucket_that_holds_it() {
        let buckets = [0, 1, 2, 3, 4, 5, 64, 65, 128, 129, usize::MAX].map(bucket);
        assert_eq!(buckets, [0, 0, 1, 2, 2, 3, 6, 7, 7, 8, 8]);
        for (exponent, bound) in BOUNDS.iter().enumerate() {
            assert_eq!(bound.parse::<f64>().unwrap(), f64::from(1 << exponent));
        }
    }
}
