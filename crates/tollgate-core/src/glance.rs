//! What a verdict needs to know of a state that is too large to be handed about.
//!
//! A store that keeps logs, sub-windows or leases elsewhere looks at them there, and tells what it
//! saw in these three numbers. The verdict on them is the same code as the verdict on the state.

use crate::Time;

/// A state of a sliding log, a strict sliding window or a limit on what is in flight, as one request
/// sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// How much is taken.
    pub used: u64,
    /// The earliest instant at which there is room for the request; for a look, for one of cost 1.
    /// It does not matter for a cost above the capacity.
    pub turn: Time,
    /// From when on nothing is taken any more.
    pub free: Time,
}
