//! Any bytes as a request and as an upstream's answer: head and body end where they end however
//! the bytes arrive, and what is accepted reads the same when it is sent on.

/// Reads the bytes as both.
pub fn read(bytes: &[u8]) {
    tollgate_gateway::fuzzing::read(bytes);
}
