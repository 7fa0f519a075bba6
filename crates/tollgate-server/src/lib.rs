//! Front ends of the decision service: each decodes a question, asks the engine, encodes the
//! answer.
//!
//! So far there is one, the HTTP API: [`Api`]. How limits are computed, where counters live and
//! how connections are accepted is for others to know.

mod api;
mod readiness;

pub use crate::{
    api::{Api, ApiSettings, openapi},
    readiness::Readiness,
};
