//! What Tollgate tells about itself: every metric's name and labels, the logs, the access log.
//!
//! Others emit, this crate names. Handles are made when a configuration is loaded, so that
//! counting on the way of a request needs no map, no lock and no text; labels can come from the
//! configuration alone, because a request never gets to name one.

pub mod access_log;
pub mod logs;
pub mod metrics;
mod timestamp;

pub use crate::{
    access_log::AccessLog,
    metrics::{Counter, Exposition, Histogram, Metrics, PolicyMetrics, RouteMetrics},
};
