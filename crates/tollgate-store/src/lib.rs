//! Where the state of limits lives: the `Store` trait and the store in this process's memory.
//!
//! A store decides by its own clock and in one step: read, compute, write. It knows limits by a
//! name and keys as bytes, and nothing of policies, routes or protocols.

mod answer;
mod clock;
mod denials;
mod fallback;
mod fingerprint;
mod health;
mod leases;
mod memory;
mod named_limit;
mod share;
mod slices;
mod store;

pub use crate::{
    answer::Answer,
    clock::{StoreClock, SystemClock},
    denials::Denials,
    fallback::{Fallback, FallbackStats, Local, Mirrored, OnFailure},
    health::{Condition, Health},
    leases::{LeaseStats, Leases},
    memory::{AtBound, Bound, LoadError, MemoryConfig, MemoryStats, MemoryStore},
    named_limit::{Mode, NamedLimit},
    share::Share,
    slices::{Draw, Drawn, Holding, Level, Slices},
    store::{Charge, Store, StoreError, Take},
};
