//! HTTP words without a server: what a front end says about limits, and what it reads of a request.
//!
//! Nothing here opens a socket, takes a decision or knows a web framework. Whatever depends on
//! the configuration alone is prepared when it is loaded ([`limit_headers::LimitHeaders`],
//! [`problem::QuotaExceeded`], [`client_addr::ClientAddr`]); a request then pays for the numbers
//! that change and no more.

pub mod client_addr;
pub mod correlation_id;
pub mod cors;
mod decimal;
mod json;
pub mod limit_headers;
pub mod problem;
mod seconds;
mod structured_field;

pub use crate::{
    client_addr::ClientAddr, correlation_id::CorrelationId, limit_headers::LimitHeaders,
    problem::QuotaExceeded,
};
