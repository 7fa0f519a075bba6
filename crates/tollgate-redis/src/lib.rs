//! A store on Redis or Valkey, shared by a fleet.
//!
//! Read, compute and write are one script on the server, by the server's own clock. Concurrent
//! requests of a node share a call. What holds when the server cannot be asked is not known here:
//! every call then says so, in time.

mod apart;
mod ask;
mod background;
mod base;
mod breaker;
mod call;
mod config;
mod dial;
mod exchange;
mod fault;
mod heartbeat;
mod lane;
mod link;
mod names;
mod observer;
mod offset;
mod probe;
mod redirect;
mod request;
mod script;
mod server;
mod store;
mod topology;

pub use crate::{
    config::{Arrangement, Host, Login, RedisConfig, RedisUrl, RedisUrlError, TlsFiles},
    dial::RedisStartError,
    fault::ErrorKind,
    observer::{Observer, RedisStats},
    store::RedisStore,
};
