//! The reverse proxy that limits: from a client's connection to an upstream's answer.
//!
//! ```text
//! connection::serve   one client connection, request after request
//!   client            reads the next head, refuses what cannot be read in one way only
//!   exchange          one request: whose, which route, may it pass (tollgate-engine)
//!     forward         the request goes to an upstream, its answer comes back
//!     reply           or we answer ourselves: a problem document, a 429, the echo
//!     story           what is counted and logged of it
//! ```
//!
//! One task serves a client's connection and the upstream's with it: no channel lies between
//! the two, so a request costs no more wake-ups than it has packets. How a decision is reached
//! is not known here; how bytes become heads and bodies is in `h1`, how they move in `wire`.
//!
//! HTTP/1.1 is read and written by hand, on both sides. A general library must own what it
//! parses and repairs what it can; a proxy can forward lines as they came, and must refuse what
//! servers might read differently, with an answer that says why.

mod client;
mod connection;
mod date;
mod echo;
mod exchange;
mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod h1;
mod reply;
mod story;
mod table;
mod upstream;
mod wire;

pub use crate::gateway::{Context, Gateway, Settings};
