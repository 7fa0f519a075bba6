//! The decision service over HTTP, asked in process and over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acquire;
mod batch;
mod check;
mod keys;
mod openapi;
mod operation;
mod page;
mod refund;
mod service;
mod sockets;
mod wrong_input;
