//! Front ends of the decision service: each decodes a question, asks the engine, encodes the
//! answer.
//!
//! So far there is one, the HTTP API: [`Api`]. How limits are computed, where counters live and
//! how connections are accepted is for others to know.
//!
//! ```no_run
//! # use std::{sync::Arc, time::Duration};
//! # use tollgate_engine::Engine;
//! # use tollgate_listen::{HttpServer, HttpSettings, Sockets, Workers};
//! # use tollgate_server::{Api, ApiSettings, Readiness};
//! # use tollgate_telemetry::Metrics;
//! # fn serve(engine: Arc<Engine>, metrics: Arc<Metrics>) -> Result<(), Box<dyn std::error::Error>> {
//! let readiness = Readiness::default();
//! let api = Api::new(engine, metrics, readiness.clone(), &ApiSettings::default());
//! let sockets = Sockets::bind("127.0.0.1:8082".parse()?, 2)?;
//! let workers = Workers::start(2, "http", move |worker| {
//!     let service = api.service();
//!     let server = HttpServer::new(HttpSettings::default(), move |_peer| service.clone());
//!     worker.listen(&sockets, server);
//! })?;
//! readiness.ready();
//! // … until the program is told to stop:
//! readiness.draining();
//! workers.stop(Duration::from_secs(30));
//! # Ok(()) }
//! ```

mod api;
mod readiness;

pub use crate::{
    api::{Api, ApiSettings, openapi},
    readiness::Readiness,
};
