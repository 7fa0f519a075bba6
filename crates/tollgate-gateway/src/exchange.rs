//! One request: whose it is, which route it takes, whether it may pass.

use std::{net::IpAddr, rc::Rc};

use http::{Method, StatusCode};
use tokio::time::Instant;
use tollgate_engine::Outcome;
use tollgate_http::client_addr::Source;
use tollgate_listen::Watch;
use tollgate_rules::{Attributes, RouteMatch};

use crate::{
    client::{After, Client},
    forward,
    gateway::Gateway,
    h1::{
        body::Framing,
        name::Name,
        request::{Refusal, Request},
    },
    reply::Reply,
    story::Story,
    table::Table,
};

/// Serves the request that the client has sent.
pub(crate) async fn serve(gateway: &Gateway, client: &mut Client, watch: &Watch) -> After {
    let table = gateway.table();
    let whose = whose(gateway, client);
    let mut story = Story::begin(gateway, Rc::clone(&table), whose, Some(&client.request));
    let after = match judge(gateway, &table, &client.request, &mut story).await {
        Ok((route, outcome)) => {
            let shown = outcome.shown.as_ref();
            let shown =
                shown.map(|shown| (table.prepared(shown.policy, shown.limit), &shown.decision));
            // The outcome lives until the answer has ended, and with it the places it holds.
            forward::forward(gateway, client, watch, &mut story, table.route(route), shown).await
        }
        Err(reply) => reply.send(gateway, client, watch, &mut story).await,
    };
    story.end(gateway, Some(&client.request));
    after
}

/// Answers what is not passed on, and ends the connection: nobody knows what follows on it.
pub(crate) async fn refuse(
    gateway: &Gateway,
    client: &mut Client,
    watch: &Watch,
    refusal: Refusal,
) -> After {
    // What was read of it is not to be trusted in any way.
    client.request = Request::new();
    client.request.keep_alive = false;
    let mut story = Story::begin(gateway, gateway.table(), client.peer.to_canonical(), None);
    let reply = Reply::detailed(gateway, refusal.status, refusal.detail, &story);
    reply.send(gateway, client, watch, &mut story).await;
    story.end(gateway, None);
    After::Linger
}

/// The client's address. Headers are only looked at if the peer may speak for others.
fn whose(gateway: &Gateway, client: &Client) -> IpAddr {
    let request = &client.request;
    let header = match gateway.client_addr.source() {
        Source::XForwardedFor => Name::XForwardedFor,
        Source::Forwarded => Name::Forwarded,
    };
    gateway.client_addr.of_lines(client.peer, || {
        let lines = request.lines().filter(move |line| line.known == header);
        lines.map(|line| line.value(request.bytes()))
    })
}

/// The route a request may take, or the answer it gets instead.
async fn judge(
    gateway: &Gateway,
    table: &Rc<Table>,
    request: &Request,
    story: &mut Story,
) -> Result<(usize, Outcome), Reply> {
    let asks_for = preflight(request);
    let method = asks_for.as_ref().unwrap_or(request.method());
    let route = match table.rules.matches(method, request.host(), request.path()) {
        RouteMatch::Found(route) => route,
        RouteMatch::WrongMethod(allowed) => {
            return Err(Reply::wrong_method(gateway, &allowed, story));
        }
        RouteMatch::None => return Err(Reply::problem(gateway, StatusCode::NOT_FOUND, story)),
        RouteMatch::BadPath => {
            let detail = "The path can be read in more than one way.";
            return Err(Reply::detailed(gateway, StatusCode::BAD_REQUEST, detail, story));
        }
    };
    story.route = Some(route.index);
    // A browser asks by itself whether a page may ask; nobody is charged for that.
    if route.policies.is_empty() || asks_for.is_some() {
        return Ok((route.index, passed()));
    }
    let outcome = decide(gateway, table, &route.policies, request, story).await;
    story.decided(route.index, &outcome);
    match outcome.shown.filter(|_| !outcome.allowed) {
        Some(shown) => {
            let prepared = table.prepared(shown.policy, shown.limit);
            Err(Reply::limited(gateway, prepared, &shown.decision, request, story))
        }
        None => Ok((route.index, outcome)),
    }
}

async fn decide(
    gateway: &Gateway,
    table: &Rc<Table>,
    policies: &[usize],
    request: &Request,
    story: &mut Story,
) -> Outcome {
    let view = View { request, ip: story.client };
    let began = Instant::now();
    let decided = gateway.context.engine.decide(&table.rules, policies, &view).await;
    let ended = Instant::now();
    story.decided_at = Some(ended);
    gateway.context.metrics.decision_duration.observe(ended - began);
    let failed = decided.is_err();
    let changed = gateway.undecided.replace(failed) != failed;
    match decided {
        Ok(outcome) => {
            if changed {
                tracing::info!("requests are limited again");
            }
            outcome
        }
        Err(cause) => {
            // Better to serve too much than nothing, as long as there is no setting for it.
            if changed {
                tracing::warn!(%cause, "requests pass without a limit: no decision can be taken");
            }
            passed()
        }
    }
}

fn passed() -> Outcome {
    Outcome { allowed: true, shown: None, dry_run: Default::default(), held: None }
}

/// The method that a browser asks about before it sends the real request. A question has no body:
/// what goes by uncounted should at least be small.
fn preflight(request: &Request) -> Option<Method> {
    let has_body = !matches!(request.framing, Framing::Empty | Framing::Length(0));
    if request.method() != Method::OPTIONS || request.known(Name::Origin).is_none() || has_body {
        return None;
    }
    let asked = request.known(Name::AccessControlRequestMethod)?;
    Method::from_bytes(asked).ok()
}

/// A request, as key templates look at it.
struct View<'a> {
    request: &'a Request,
    ip: IpAddr,
}

impl Attributes for View<'_> {
    fn ip(&self) -> IpAddr {
        self.ip
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.request.only_header(name.as_bytes())
    }

    fn host(&self) -> Option<&str> {
        self.request.host()
    }

    fn method(&self) -> &str {
        self.request.method().as_str()
    }

    fn path(&self) -> &str {
        self.request.path()
    }

    fn query(&self) -> Option<&str> {
        self.request.query()
    }
}
