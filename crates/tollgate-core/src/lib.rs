//! The words all of Tollgate speaks, and the arithmetic of limits.
//!
//! Everything here is a pure function of a limit, the small state kept for one key, a cost and
//! the time. There is no clock, no lock, no socket and no text format in this crate: a store
//! brings the state and the time, a front end brings the cost and shows the answer.
//!
//! Time counts in microseconds because that is what the finest shared clock (`TIME` of Redis)
//! gives: a decision is then the same to the tick whichever store takes it.

use std::time::Duration;

mod algorithm;
mod bucket;
mod calendar;
mod concurrency;
mod decision;
mod fixed_window;
mod glance;
mod group;
mod leaky_bucket;
mod limit;
mod rate;
mod sliding_counter;
mod sliding_log;
mod sliding_window;
mod state;
mod time;
mod timeline;
mod token_bucket;

pub use crate::{
    algorithm::Algorithm,
    bucket::{Fill, SmallFill},
    calendar::Window,
    concurrency::{Lease, Leases},
    decision::{Decision, Verdict, Wait},
    fixed_window::Tally,
    glance::Glance,
    group::{Judgement, judge},
    limit::{COST_MAX, Limit, LimitError},
    rate::{Rate, Unit},
    sliding_counter::TwoTallies,
    sliding_log::Log,
    sliding_window::SubTallies,
    state::State,
    time::{Clock, Time},
    timeline::Timeline,
};

/// One question to one limit: may `cost` pass at `now`?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The instant of the question.
    pub now: Time,
    /// How much the request takes; 0 looks without taking.
    pub cost: u64,
    /// Whether the caller would wait for its turn, and for how long at most.
    pub patience: Patience,
    /// Who holds the place, for limits on what is in flight at once.
    pub lease: u64,
}

/// What a caller does when there is no room at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Goes away refused; nothing is taken.
    None,
    /// Takes a place in the future, if it comes within this many microseconds.
    Micros(u64),
}

impl Patience {
    /// How long the caller waits at most.
    const fn longest(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Micros(most) => Duration::from_micros(most),
        }
    }
}
