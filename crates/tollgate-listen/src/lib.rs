//! How connections reach the code that serves them, and how they are let go.
//!
//! One thread per core, each with a runtime of its own and its own listening socket on the same
//! address; the kernel spreads connections over the sockets. A connection never leaves its
//! thread, so what serves it needs no locks and no `Send`.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use {http_body_util::Full, hyper::{Request, Response, body::{Bytes, Incoming}}};
//! # use tollgate_listen::{HttpServer, HttpSettings, Sockets, Workers};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = Sockets::bind("127.0.0.1:0".parse()?, 2)?;
//! let workers = Workers::start(2, "http", {
//!     let sockets = sockets.clone();
//!     move |worker| {
//!         // Built on the thread it stays on, so it may hold `Rc` and `RefCell`.
//!         let server = HttpServer::new(HttpSettings::default(), |_peer| {
//!             hyper::service::service_fn(|_request: Request<Incoming>| async {
//!                 Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("hello")))
//!             })
//!         });
//!         worker.listen(&sockets, server);
//!     }
//! })?;
//! let report = workers.stop(Duration::from_secs(30));
//! # drop(report); Ok(()) }
//! ```
//!
//! What is said on a connection is for the [`Serve`] it is handed to: [`HttpServer`] for any
//! hyper service, or a protocol of one's own. Deciding, limiting and routing are not known here.

mod accept;
mod http_server;
mod sockets;
mod stall;
mod watch;
mod workers;

pub use crate::{
    accept::Serve,
    http_server::{HttpServer, HttpSettings},
    sockets::{BindError, Sockets, Tally},
    watch::{Elapsed, Watch},
    workers::{DrainReport, Worker, Workers},
};
