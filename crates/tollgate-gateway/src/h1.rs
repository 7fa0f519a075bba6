//! HTTP/1.1 as bytes: what a message's head says and where its body ends.
//!
//! Both sides of the gateway read with this, so a message that two parsers could understand
//! differently is refused here instead of passed on. Heads stay the bytes they arrived as: a
//! [`head::Lines`] only knows where each line begins and which of the names that matter to a proxy
//! it carries. Forwarding then is copying lines, without a map in between.
//!
//! Nothing here opens a socket, waits or answers.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod head;
pub(crate) mod name;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tokens;

#[cfg(test)]
mod tests;
