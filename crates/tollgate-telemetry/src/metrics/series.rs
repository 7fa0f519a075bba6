//! The handles given out so far, by their labels. Asked at load time and by the page only.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How many series of one kind stay although a reload removed what they count. Enough for any
/// configuration edited by people; a generator that renames everything must not fill the memory.
pub const SERIES_KEPT: usize = 4_096;

/// Sorted, so that the page is in the same order every time.
#[derive(Debug)]
pub(super) struct Series<K, V>(Mutex<BTreeMap<K, Arc<V>>>);

impl<K, V> Default for Series<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Default> Series<K, V> {
    /// The one handle for these labels.
    pub(super) fn handle(&self, labels: K) -> Arc<V> {
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if series.len() >= SERIES_KEPT && !series.contains_key(&labels) {
            series.retain(|_, handle| Arc::strong_count(handle) > 1);
        }
        Arc::clone(series.entry(labels).or_default())
    }

    pub(super) fn each(&self, mut show: impl FnMut(&K, &V)) {
        let series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (labels, handle) in &*series {
            show(labels, handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;

    #[test]
    fn the_same_labels_are_the_same_series() {
        let series = Series::<&str, Counter>::default();
        series.handle("a").inc();
        series.handle("a").inc();
        assert_eq!(series.handle("a").get(), 2);
        assert_eq!(series.handle("b").get(), 0);
    }

    #[test]
    fn what_is_in_use_is_never_dropped_and_the_rest_is_bounded() {
        let series = Series::<usize, u8>::default();
        let kept: Vec<_> = (0..10).map(|label| series.handle(label)).collect();
        for label in 10..3 * SERIES_KEPT {
            series.handle(label);
        }
        let mut labels = Vec::new();
        series.each(|label, _| labels.push(*label));
        assert!(labels.len() <= SERIES_KEPT);
        assert_eq!(labels[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        drop(kept);
    }
}
