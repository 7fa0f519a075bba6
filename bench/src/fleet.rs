//! A fleet's store on Redis against what people use: a pool of connections and a short script.
//!
//! Redis has core 0 for itself; the callers, both sides', share core 1 in one single-threaded
//! runtime, as a worker of the gateway does. Redis keeps nothing on disk.

mod bytes;
mod callers;
mod exact;
mod latency;
mod leased;
mod node;
mod pool;
mod server;

pub(crate) use self::{
    bytes::compare as bytes,
    exact::compare as exact,
    latency::compare as latency,
    leased::{compare_cpu as leased_cpu, compare_speed as leased_speed},
};
