//! Every metric by name: who counts it, and how it stands on the page.
//!
//! The page is written by us rather than by a metrics library, because the counting is: counters
//! and histograms are split over the cores, which a thread-per-core server needs and no library
//! at hand offers, and little was left for one to do.
//!
//! Series of routes and policies that a reload removed stay on the page, so that their last
//! requests are still scraped and a route that comes back goes on counting where it was. Above
//! [`SERIES_KEPT`] of them those no longer in use are dropped when the next one is added.

mod counter;
mod histogram;
mod page;
mod policy_metrics;
mod route_metrics;
mod series;
mod shared_store;
mod size_histogram;

use std::sync::{Arc, OnceLock};

pub use self::{
    counter::Counter,
    histogram::Histogram,
    page::Exposition,
    policy_metrics::PolicyMetrics,
    route_metrics::RouteMetrics,
    series::SERIES_KEPT,
    shared_store::{SharedStoreMetrics, SharedStoreReadings},
    size_histogram::SizeHistogram,
};
use self::{
    page::{Kind, Page},
    policy_metrics::PolicyLabels,
    series::Series,
};

/// All that is counted in one process.
#[derive(Default)]
pub struct Metrics {
    routes: Series<Box<str>, RouteMetrics>,
    policies: Series<PolicyLabels, PolicyMetrics>,
    /// How long decisions took.
    pub decision_duration: Histogram,
    /// How long upstreams took, from the request's first byte sent to the answer's head.
    pub upstream_duration: Histogram,
    /// Configurations that were read again.
    pub config_reloads: ConfigReloads,
    /// Lines of the access log that found no room in its queue.
    pub access_log_dropped: Counter,
    store: OnceLock<Box<dyn Fn() -> StoreReadings + Send + Sync>>,
    shared_store: OnceLock<SharedStore>,
    version: OnceLock<Box<str>>,
}

struct SharedStore {
    metrics: Arc<SharedStoreMetrics>,
    read: OnceLock<Box<dyn Fn() -> SharedStoreReadings + Send + Sync>>,
}

/// Configurations that were read again, by how it went.
#[derive(Debug, Default)]
pub struct ConfigReloads {
    /// It is in force now.
    pub ok: Counter,
    /// It was refused, and the last good one goes on serving.
    pub failed: Counter,
}

/// What a store in memory tells about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreReadings {
    /// Keys it holds.
    pub keys: u64,
    /// Bytes it holds.
    pub bytes: u64,
    /// Keys it dropped to make room, ever.
    pub evicted: u64,
    /// New keys it turned away for want of room, ever.
    pub refused: u64,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counters of the route with this path, as the configuration writes it.
    pub fn route(&self, path: &str) -> Arc<RouteMetrics> {
        self.routes.handle(path.into())
    }

    /// The counters of a policy (the tier) where it is asked (the endpoint), both as the
    /// configuration names them.
    pub fn policy(&self, tier: &str, endpoint: &str) -> Arc<PolicyMetrics> {
        self.policies.handle(PolicyLabels { tier: tier.into(), endpoint: endpoint.into() })
    }

    /// Has the store read whenever the page is. Only the first store counts.
    pub fn read_store(&self, readings: impl Fn() -> StoreReadings + Send + Sync + 'static) {
        // A second one would be a mistake of wiring that no user can make or mend.
        let _ = self.store.set(Box::new(readings));
    }

    /// The counters of a store that a fleet shares, whose errors are of these kinds; they are on
    /// the page once [`Metrics::read_shared_store`] has told how to read the rest. Only the first
    /// call names the kinds.
    pub fn shared_store(
        &self,
        error_kinds: impl IntoIterator<Item = &'static str>,
    ) -> Arc<SharedStoreMetrics> {
        let new = || SharedStore {
            metrics: Arc::new(SharedStoreMetrics::new(error_kinds)),
            read: OnceLock::new(),
        };
        Arc::clone(&self.shared_store.get_or_init(new).metrics)
    }

    /// Has the shared store read whenever the page is.
    pub fn read_shared_store(
        &self,
        readings: impl Fn() -> SharedStoreReadings + Send + Sync + 'static,
    ) {
        if let Some(store) = self.shared_store.get() {
            let _ = store.read.set(Box::new(readings));
        }
    }

    /// Shows which version is running.
    pub fn set_version(&self, version: &str) {
        let _ = self.version.set(version.into());
    }

    /// The page that `/metrics` shows.
    pub fn encode(&self, exposition: Exposition) -> String {
        let mut page = Page::new(exposition);
        self.write_requests(&mut page);
        self.write_durations(&mut page);
        self.write_store(&mut page);
        self.write_shared_store(&mut page);
        self.write_process(&mut page);
        page.finish()
    }

    fn write_requests(&self, page: &mut Page) {
        page.family("gateway_request", Kind::Counter, "Requests answered, by status and route.");
        self.routes.each(|path, route| {
            route.each(|status, count| {
                page.sample(&[("status", status), ("route_path", path)], count);
            });
        });
        self.write_policies(page, "ratelimit_requests", "Requests a limit was asked about.", |p| {
            &p.requests
        });
        self.write_policies(page, "ratelimit_requests_limited", "Requests refused.", |p| {
            &p.limited
        });
        let help = "Requests a policy in dry run would have refused.";
        self.write_policies(page, "ratelimit_requests_dry_run_limited", help, |p| {
            &p.dry_run_limited
        });
    }

    fn write_policies(
        &self,
        page: &mut Page,
        name: &'static str,
        help: &str,
        counter: fn(&PolicyMetrics) -> &Counter,
    ) {
        page.family(name, Kind::Counter, help);
        self.policies.each(|labels, policy| {
            let labels = [("tier", &*labels.tier), ("endpoint", &*labels.endpoint)];
            page.sample(&labels, counter(policy).get());
        });
    }

    fn write_durations(&self, page: &mut Page) {
        let help = "Time taken to decide, in seconds.";
        page.family("ratelimit_decision_duration_seconds", Kind::Histogram, help);
        self.decision_duration.write(page);
        let help = "Time until the upstream's answer began, in seconds.";
        page.family("gateway_upstream_duration_seconds", Kind::Histogram, help);
        self.upstream_duration.write(page);
    }

    fn write_store(&self, page: &mut Page) {
        let Some(read) = self.store.get() else { return };
        let readings = read();
        page.family("ratelimit_store_keys", Kind::Gauge, "Keys held in memory.");
        page.sample(&[], readings.keys);
        page.family("ratelimit_store_bytes", Kind::Gauge, "Bytes held in memory for keys.");
        page.sample(&[], readings.bytes);
        let help = "Keys dropped from memory to make room for others.";
        page.family("ratelimit_store_evicted", Kind::Counter, help);
        page.sample(&[], readings.evicted);
        let help = "New keys turned away because the memory for keys was full.";
        page.family("ratelimit_store_refused", Kind::Counter, help);
        page.sample(&[], readings.refused);
    }

    fn write_shared_store(&self, page: &mut Page) {
        let store = self.shared_store.get();
        if let Some((store, read)) = store.and_then(|store| Some((store, store.read.get()?))) {
            store.metrics.write(page, &read());
        }
    }

    fn write_process(&self, page: &mut Page) {
        let help = "Configurations read again, by result.";
        page.family("tollgate_config_reloads", Kind::Counter, help);
        page.sample(&[("result", "ok")], self.config_reloads.ok.get());
        page.sample(&[("result", "failed")], self.config_reloads.failed.get());
        let help = "Lines of the access log dropped because its queue was full.";
        page.family("tollgate_access_log_dropped", Kind::Counter, help);
        page.sample(&[], self.access_log_dropped.get());
        if let Some(version) = self.version.get() {
            page.family("tollgate_build", Kind::Info, "The version that is running.");
            page.sample(&[("version", version)], 1);
        }
    }
}

#[cfg(test)]
mod tests;
