//! What the tests of Tollgate stand on. Nothing that is shipped depends on it.
//!
//! For other programs on loopback: [`process`], [`servers`], [`ports`], [`wait`]. For talking to
//! them: [`http_client`] byte by byte, [`load`] in great numbers. For measuring: [`cpu`],
//! [`stopwatch`].

pub mod cpu;
pub mod http_client;
pub mod load;
pub mod ports;
pub mod process;
pub mod response;
pub mod servers;
pub mod stopwatch;
pub mod wait;
