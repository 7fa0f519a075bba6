//! The decision service over HTTP.
//!
//! A request is matched by hand: there are ten paths, most traffic goes to one of them, and a
//! router would cost more than what it routes to. [`Api::answer`] takes a request and gives a
//! response whoever serves the connection; [`Api::service`] is the same for hyper.
//!
//! Errors of every kind are problem documents (RFC 9457) with a correlation id, and leave all
//! counters as they were. A refusal by a limit is no error: it is the answer, with status 200.

mod body;
mod decisions;
mod endpoint;
mod input;
mod keys;
mod output;
mod percent;
mod prepared;
mod reply;
mod waiters;

use std::{convert::Infallible, rc::Rc, sync::Arc};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::ACCEPT};
use http_body::Body;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    service::{Service, service_fn},
};
use tollgate_engine::Engine;
use tollgate_http::CorrelationId;
use tollgate_telemetry::{Exposition, Metrics};

use self::{
    endpoint::Endpoint,
    prepared::Prepared,
    reply::{Failure, Reply, respond},
    waiters::Waiters,
};
use crate::Readiness;

/// The API's description (OpenAPI 3.1), as `/openapi.json` shows it.
pub const fn openapi() -> &'static str {
    include_str!("api/openapi.json")
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Bounds of the API.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// How many callers may wait in `/v1/acquire` at once; more are answered with 503.
    pub waiters_max: usize,
}

impl Default for ApiSettings {
    fn default() -> Self {
        // A waiter costs about as much as its connection, some kilobytes.
        Self { waiters_max: 10_000 }
    }
}

/// The decision service, ready to be asked by any number of threads.
pub struct Api {
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    waiters: Waiters,
    prepared: ArcSwap<Prepared>,
}

impl Api {
    /// A service that decides by `engine` and shows `metrics` and `readiness`.
    pub fn new(
        engine: Arc<Engine>,
        metrics: Arc<Metrics>,
        readiness: Readiness,
        settings: &ApiSettings,
    ) -> Arc<Self> {
        let prepared = Prepared::new(Guard::into_inner(engine.rules()), &metrics);
        let prepared = ArcSwap::from_pointee(prepared);
        let waiters = Waiters::new(settings.waiters_max);
        Arc::new(Self { engine, metrics, readiness, waiters, prepared })
    }

    /// The service for the connections of one thread. It stays there, so that a request costs no
    /// write to memory that other threads use.
    pub fn service(
        self: &Arc<Self>,
    ) -> impl Service<
        Request<Incoming>,
        Response = Response<Full<Bytes>>,
        Error = Infallible,
        Future: 'static,
    > + Clone
    + use<> {
        let api = Rc::new(Arc::clone(self));
        service_fn(move |request| {
            let api = Rc::clone(&api);
            async move { Ok(api.answer(request).await) }
        })
    }

    /// Answers one request. Dropping the future is hanging up.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let id = CorrelationId::of(request.headers());
        let answer = if request.uri().path() == "/v1/check" && request.method() == Method::POST {
            self.check(request.into_body()).await
        } else {
            // On the heap, so that the future of a check stays small.
            Box::pin(self.serve(request)).await
        };
        respond(answer, &id)
    }

    async fn serve<B>(&self, request: Request<B>) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let Some(endpoint) = Endpoint::of(head.uri.path()) else {
            let detail = "Nothing is served at this path; GET / lists what is.";
            return Err(Failure::new(StatusCode::NOT_FOUND, detail));
        };
        if !endpoint.serves(&head.method) {
            return Err(Failure::wrong_method(endpoint.allow()));
        }
        match endpoint {
            Endpoint::Check => self.check(body).await,
            Endpoint::Batch => self.batch(body).await,
            Endpoint::Acquire => self.acquire(body).await,
            Endpoint::Refund => self.refund(body).await,
            Endpoint::Key { policy, key } if head.method == Method::DELETE => {
                self.forget_key(policy, key).await
            }
            Endpoint::Key { policy, key } => self.show_key(policy, key).await,
            Endpoint::Metrics => {
                let accept = head.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
                Ok(self.show_metrics(Exposition::accepted(accept)))
            }
            Endpoint::Health => Ok(Reply::text(TEXT, "alive\n")),
            Endpoint::Ready => match self.readiness.obstacle() {
                None => Ok(Reply::text(TEXT, "ready\n")),
                Some(obstacle) => Err(Failure::busy(obstacle)),
            },
            Endpoint::OpenApi => Ok(Reply::text("application/json", openapi())),
            Endpoint::Index => Ok(Reply::text(TEXT, include_str!("api/index.txt"))),
        }
    }

    fn show_metrics(&self, exposition: Exposition) -> Reply {
        // Policies nobody has asked yet are on the page too, from the first scrape on.
        drop(self.prepared());
        Reply::text(exposition.content_type(), self.metrics.encode(exposition))
    }

    /// What is ready for the rules in force. Made anew by the first who asks after a change; two
    /// who ask at once make the same.
    fn prepared(&self) -> Guard<Arc<Prepared>> {
        let prepared = self.prepared.load();
        let rules = self.engine.rules();
        if Arc::ptr_eq(&prepared.rules, &rules) {
            return prepared;
        }
        let prepared = Arc::new(Prepared::new(Guard::into_inner(rules), &self.metrics));
        self.prepared.store(Arc::clone(&prepared));
        Guard::from_inner(prepared)
    }
}
