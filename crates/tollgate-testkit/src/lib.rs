//! What the tests of Tollgate stand on. Nothing that is shipped depends on it.
//!
//! For limits: [`ManualClock`], slow obvious [`models`], the [`contract`] that every store keeps,
//! the [`history`] checker, and a [`remote_store`] that fails when told. For other programs on loopback: [`process`], [`servers`],
//! [`ports`], [`wait`], and a [`faulty_link`] in front of any of them. For talking to them:
//! [`http_client`] and [`resp_client`] byte by byte, [`load`] in great numbers. For measuring:
//! [`cpu`], [`stopwatch`].
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod clock;
pub mod contract;
pub mod cpu;
pub mod faulty_link;
pub mod history;
pub mod http_client;
pub mod load;
pub mod models;
pub mod ports;
pub mod process;
pub mod remote_store;
pub mod resp_client;
pub mod response;
pub mod servers;
pub mod slices;
pub mod stopwatch;
pub mod wait;

pub use crate::clock::{ManualClock, TokioClock};
