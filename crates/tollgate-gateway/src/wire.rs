//! Bytes on their way in, out and through.
//!
//! Buffers are lent by the worker while a request needs them, the last one given back first:
//! idle connections hold none, and busy ones share a few that stay in the cache.

pub(crate) mod buffers;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod pump;
