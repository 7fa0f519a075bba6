//! Taking one decision.
//!
//! A front end brings a request's attributes or a policy's name and a key; the engine finds the
//! limits, asks the store once for all of them, and says what came of it. It does not know who
//! asked in which protocol, nor which store it was given. A refusal is an answer; only what could
//! not be decided at all is an error.

mod engine;
mod lease;
mod outcome;
mod place;
mod queue;
mod rules;

pub use crate::{
    engine::{Engine, KEY_BYTES_MAX},
    lease::Held,
    outcome::{CannotDecide, Outcome, Shown},
    rules::Rules,
};
