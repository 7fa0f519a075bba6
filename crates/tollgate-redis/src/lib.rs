//! A store on Redis or Valkey, shared by a fleet.
//!
//! Read, compute and write are one script on the server, by the server's own clock. Concurrent
//! requests of a node share a call. What holds when the server cannot be asked is not known here:
//! every call then says so, in time.

mod call;
mod names;
mod request;
mod script;
