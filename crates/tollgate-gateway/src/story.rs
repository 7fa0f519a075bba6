//! What is counted and logged of one request.

use std::{net::IpAddr, rc::Rc};

use tokio::time::Instant;
use tollgate_core::Time;
use tollgate_engine::Outcome;
use tollgate_http::CorrelationId;
use tollgate_telemetry::access_log::Entry;

use crate::{
    gateway::Gateway,
    h1::{name::Name, request::Request},
    table::Table,
    upstream::Upstream,
};

/// What is known of a request so far.
pub(crate) struct Story {
    table: Rc<Table>,
    /// Whose it is.
    pub(crate) client: IpAddr,
    /// By which it is found in other logs.
    pub(crate) id: CorrelationId,
    /// Only taken if there is a log to write to.
    began: Option<(Time, Instant)>,
    /// When the decision was there; also when the upstream's time began, if nothing lies between.
    pub(crate) decided_at: Option<Instant>,
    /// The status of the answer; 0 while there is none.
    status: u16,
    /// Bytes of the answer's body.
    pub(crate) bytes: u64,
    /// The route it takes.
    pub(crate) route: Option<usize>,
    /// The policy whose limit is shown.
    policy: Option<usize>,
    limited: bool,
    dry_run_limited: bool,
    /// Where it was sent.
    pub(crate) upstream: Option<Rc<Upstream>>,
}

/// Answers that never were: the client left first. Known as 499 since nginx.
const CLIENT_LEFT: u16 = 499;

impl Story {
    /// Begins with a request that was read, or with something that is none.
    pub(crate) fn begin(
        gateway: &Gateway,
        table: Rc<Table>,
        client: IpAddr,
        request: Option<&Request>,
    ) -> Self {
        let id = request.and_then(|request| request.known(Name::CorrelationId));
        let logs = gateway.context.access_log.is_some();
        Self {
            table,
            client,
            id: CorrelationId::of_value(id),
            began: logs.then(|| (gateway.context.clock.now(), Instant::now())),
            decided_at: None,
            status: 0,
            bytes: 0,
            route: None,
            policy: None,
            limited: false,
            dry_run_limited: false,
            upstream: None,
        }
    }

    /// Remembers and counts what was decided.
    pub(crate) fn decided(&mut self, route: usize, outcome: &Outcome) {
        self.policy = outcome.shown.map(|shown| shown.policy);
        self.limited = !outcome.allowed;
        self.dry_run_limited = !outcome.dry_run.is_empty();
        for (place, metrics) in &self.table.route(route).policies {
            metrics.requests.inc();
            if self.limited && self.policy == Some(*place) {
                metrics.limited.inc();
            }
            if self.dry_run_limited && outcome.dry_run.contains(place) {
                metrics.dry_run_limited.inc();
            }
        }
    }

    /// Counts the answer. That is done before a byte of it is sent, so that whoever has it and
    /// looks at the counters finds it there.
    pub(crate) fn answered(&mut self, status: u16) {
        self.status = status;
        let metrics = self.route.map(|route| &self.table.route(route).metrics);
        metrics.unwrap_or(&self.table.no_route).count(status);
    }

    /// Logs the request, whose answer has ended one way or the other.
    pub(crate) fn end(&mut self, gateway: &Gateway, request: Option<&Request>) {
        if self.status == 0 {
            self.answered(CLIENT_LEFT);
        }
        if let (Some(log), Some((at, began))) = (&gateway.context.access_log, self.began) {
            let rules = &self.table.rules;
            log.write(&Entry {
                at_micros: at.as_micros(),
                client: self.client,
                method: request.map_or("", |request| request.method().as_str()),
                path: request.map_or("", Request::path),
                status: self.status,
                bytes: self.bytes,
                duration: began.elapsed(),
                route: self.route.map(|route| &*rules.routes()[route].path),
                policy: self.policy.map(|policy| &*rules.policies()[policy].id),
                limited: self.limited,
                dry_run_limited: self.dry_run_limited,
                upstream: self.upstream.as_ref().map(|upstream| &*upstream.authority),
                correlation_id: self.id.as_str(),
            });
        }
    }
}
