//! What one worker prepares from the rules, so that a request finds it ready.
//!
//! Made anew when the rules are swapped, and only then; connections to upstreams that are still
//! named survive.

use std::{cell::Cell, rc::Rc, sync::Arc};

use tollgate_engine::Rules;
use tollgate_http::{LimitHeaders, QuotaExceeded, limit_headers};
use tollgate_rules::{Policy, Route};
use tollgate_telemetry::{Metrics, PolicyMetrics, RouteMetrics};

use crate::upstream::{Upstream, Upstreams};

/// The rules in force, as a worker needs them.
#[derive(Debug)]
pub(crate) struct Table {
    /// What it was made from.
    pub(crate) rules: Arc<Rules>,
    routes: Vec<RouteState>,
    /// For each policy its limits.
    limits: Vec<Vec<Prepared>>,
    /// Counts what found no route.
    pub(crate) no_route: Arc<RouteMetrics>,
}

/// One route, as a worker uses it.
#[derive(Debug)]
pub(crate) struct RouteState {
    upstreams: Vec<Rc<Upstream>>,
    next: Cell<usize>,
    /// Counts its answers.
    pub(crate) metrics: Arc<RouteMetrics>,
    /// Counts its policies, in the route's order.
    pub(crate) policies: Vec<(usize, Arc<PolicyMetrics>)>,
}

/// What the answers of one limit say.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// On every answer.
    pub(crate) headers: LimitHeaders,
    /// In the body of a refusal.
    pub(crate) quota: QuotaExceeded,
}

impl Table {
    pub(crate) fn new(
        rules: Arc<Rules>,
        metrics: &Metrics,
        headers: limit_headers::Settings,
        upstreams: &Upstreams,
    ) -> Self {
        let route = |route: &Route| RouteState {
            upstreams: route.upstreams.iter().map(|rule| upstreams.get(rule)).collect(),
            next: Cell::new(0),
            metrics: metrics.route(&route.path),
            policies: route
                .policies
                .iter()
                .map(|&place| (place, metrics.policy(&rules.policies()[place].id, &route.path)))
                .collect(),
        };
        let limits = |policy: &Policy| {
            let prepared = policy.limits.iter().map(|limit| Prepared {
                headers: LimitHeaders::new(&policy.id, limit, headers),
                quota: QuotaExceeded::new(&policy.id, limit),
            });
            prepared.collect()
        };
        Self {
            routes: rules.routes().iter().map(route).collect(),
            limits: rules.policies().iter().map(limits).collect(),
            no_route: metrics.route("none"),
            rules,
        }
    }

    /// The state of a route of these rules.
    pub(crate) fn route(&self, place: usize) -> &RouteState {
        &self.routes[place]
    }

    /// What one limit of a policy says.
    pub(crate) fn prepared(&self, policy: usize, limit: usize) -> &Prepared {
        &self.limits[policy][limit]
    }
}

impl RouteState {
    /// All upstreams of the route, beginning with the one whose turn it is.
    pub(crate) fn turn(&self) -> impl Iterator<Item = &Rc<Upstream>> {
        let first = self.next.get();
        self.next.set((first + 1) % self.upstreams.len().max(1));
        self.upstreams[first..].iter().chain(&self.upstreams[..first])
    }
}
