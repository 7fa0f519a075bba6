//! What a store that a fleet shares costs, and how it is.
//!
//! Every decision is counted once, by who made it: the store, this node from a slice it took ahead
//! or from a refusal it remembers, or the fallback. Round trips by the sum of these is what a
//! decision costs the store.

use std::time::Duration;

use super::{
    Counter, Histogram, SizeHistogram,
    page::{Kind, Page},
};

/// What is counted with every call to the store.
#[derive(Debug)]
pub struct SharedStoreMetrics {
    round_trip_duration: Histogram,
    batch_size: SizeHistogram,
    decisions: Counter,
    errors: Box<[(&'static str, Counter)]>,
}

/// What the store and what stands before it tell when the page is read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SharedStoreReadings {
    /// Whether it answers.
    pub up: bool,
    /// Since when the fallback decides, in seconds since 1970; `None` while it does not.
    pub fallback_since: Option<u64>,
    /// Decisions the fallback made, ever.
    pub fallback_decisions: u64,
    /// Decisions made from what was taken ahead, ever.
    pub slice_decisions: u64,
    /// Refusals given again without asking, ever.
    pub denial_cache_hits: u64,
    /// Keys of which something was taken ahead.
    pub slices: u64,
    /// How much is held of all of them.
    pub slice_tokens: u64,
    /// The store's clock less our own.
    pub clock_offset_seconds: f64,
    /// Live nodes, this one included.
    pub fleet_nodes: u64,
}

impl SharedStoreMetrics {
    /// Nothing counted yet; errors are told apart by these kinds.
    pub(super) fn new(error_kinds: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            round_trip_duration: Histogram::default(),
            batch_size: SizeHistogram::default(),
            decisions: Counter::default(),
            errors: error_kinds.into_iter().map(|kind| (kind, Counter::default())).collect(),
        }
    }

    /// Counts a call that was answered, with so many requests in it and so many decisions among
    /// them.
    pub fn round_trip(&self, took: Duration, requests: usize, decisions: usize) {
        self.round_trip_duration.observe(took);
        self.batch_size.observe(requests);
        self.decisions.add(decisions as u64);
    }

    /// Counts a call that failed. A kind that was not named at first is not counted.
    pub fn failed(&self, kind: &str) {
        if let Some((_, counter)) = self.errors.iter().find(|(name, _)| *name == kind) {
            counter.inc();
        }
    }

    pub(super) fn write(&self, page: &mut Page, readings: &SharedStoreReadings) {
        self.write_calls(page);
        self.write_decisions(page, readings);
        write_state(page, readings);
    }

    fn write_calls(&self, page: &mut Page) {
        let help = "Time until the store answered a call, in seconds.";
        page.family("tollgate_store_round_trip_duration_seconds", Kind::Histogram, help);
        self.round_trip_duration.write(page);
        page.family("tollgate_store_round_trips", Kind::Counter, "Calls the store answered.");
        page.sample(&[], self.round_trip_duration.count());
        let help = "Requests that shared a call to the store.";
        page.family("tollgate_store_batch_size", Kind::Histogram, help);
        self.batch_size.write(page);
        page.family("tollgate_store_errors", Kind::Counter, "Calls that failed, by kind.");
        for (kind, counter) in &self.errors {
            page.sample(&[("kind", kind)], counter.get());
        }
    }

    fn write_decisions(&self, page: &mut Page, readings: &SharedStoreReadings) {
        let help = "Decisions by who made them: the store, a slice taken ahead, a refusal remembered, \
                    the fallback.";
        page.family("tollgate_store_decisions", Kind::Counter, help);
        page.sample(&[("by", "store")], self.decisions.get());
        page.sample(&[("by", "slice")], readings.slice_decisions);
        page.sample(&[("by", "denial_cache")], readings.denial_cache_hits);
        page.sample(&[("by", "fallback")], readings.fallback_decisions);
    }
}

fn write_state(page: &mut Page, readings: &SharedStoreReadings) {
    let mut gauge = |name, help: &str, value: &dyn std::fmt::Display| {
        page.family(name, Kind::Gauge, help);
        page.sample(&[], value);
    };
    gauge("tollgate_store_up", "Whether the store answers.", &u8::from(readings.up));
    let active = u8::from(readings.fallback_since.is_some());
    gauge("tollgate_store_fallback_active", "Whether the fallback decides.", &active);
    let help = "Since when the fallback decides, in Unix seconds; 0 while it does not.";
    let since = readings.fallback_since.unwrap_or(0);
    gauge("tollgate_store_fallback_since_timestamp_seconds", help, &since);
    let help = "Keys of which this node holds a slice taken ahead.";
    gauge("tollgate_store_slices", help, &readings.slices);
    let help = "How much this node holds in slices, all keys together.";
    gauge("tollgate_store_slice_tokens", help, &readings.slice_tokens);
    let help = "The store's clock less this node's, in seconds.";
    gauge("tollgate_store_clock_offset_seconds", help, &readings.clock_offset_seconds);
    let help = "Live nodes that share the store, this one included.";
    gauge("tollgate_store_fleet_nodes", help, &readings.fleet_nodes);
}
