//! Leases: many nodes on one store, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failover;
mod faults;
mod fleet;
mod life;
mod numbers;
mod skew;
mod together;
mod under_way;
