//! What is counted and logged of one request.

use std::{net::IpAddr, rc::Rc};

use tokio::time::Instant;
use tollgate_core::Time;
use tollgate_engine::Outcome;
use tollgate_http::{CorrelationId, correlation_id};
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
    /// A made id; without it the client's own is kept.
    made_id: Option<CorrelationId>,
    /// Only taken if there is a log to write to.
    began: Option<(Time, Instant)>,
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
    pub(crate) fn begin(gateway: &Gateway, table: Rc<Table>, client: IpAddr) -> Self {
        let logs = gateway.context.access_log.is_some();
        Self {
            table,
            client,
            made_id: None,
            began: logs.then(|| (gateway.context.clock.now(), Instant::now())),
            status: 0,
            bytes: 0,
            route: None,
            policy: None,
            limited: false,
            dry_run_limited: false,
            upstream: None,
        }
    }

    /// Keeps the caller's correlation id if it is sane, makes one if not.
    pub(crate) fn identify(&mut self, request: Option<&Request>) {
        let given = request.and_then(|request| request.known(Name::CorrelationId));
        if !given.is_some_and(correlation_id::is_sane) {
            self.made_id = Some(CorrelationId::make());
        }
    }

    /// The correlation id.
    pub(crate) fn id<'a>(&'a self, request: &'a Request) -> &'a str {
        match &self.made_id {
            Some(id) => id.as_str(),
            None => {
                let given = request.known(Name::CorrelationId).unwrap_or_default();
                std::str::from_utf8(given).unwrap_or_default()
            }
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
                correlation_id: match (&self.made_id, request) {
                    (Some(id), _) => id.as_str(),
                    (None, Some(request)) => self.id(request),
                    (None, None) => "",
                },
            });
        }
    }
}
