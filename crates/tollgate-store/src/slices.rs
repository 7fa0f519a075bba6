//! Taking ahead: a store that hands out slices for a node to spend by itself.
//!
//! A slice is debited before it is spent, so a crash loses it and nothing is spent twice. The store
//! keeps count of what the whole fleet holds, and grants no more than the limit's epsilon allows.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Decision, Time};

use crate::{Answer, Charge, Store};

/// One request, and what its node would like to hold beyond it.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// What the request takes, from a limit in leased mode.
    pub charge: Charge<'a>,
    /// How much the node would like to hold in all, for half a second of its use.
    pub want: u64,
    /// What it still holds from before. It is given back first, so that the request can have it; the
    /// answer says what the node holds now.
    pub left: u64,
}

/// What came of a [`Draw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The request's own answer.
    pub decision: Decision,
    /// What the node holds now, the request's own cost not counted.
    pub slice: u64,
    /// How long it may be spent, counted from before the store was asked.
    pub lasts: Duration,
    /// The level after it, for the day the store forgets.
    pub level: Level,
}

/// How much was left, by the store's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// When.
    pub at: Time,
    /// No more than this, with all slices debited.
    pub remaining: u64,
}

/// Some of a limit, for one key, with the level last seen.
#[derive(Debug, Clone, Copy)]
pub struct Holding<'a> {
    /// Limit and key; the cost is what is held.
    pub charge: Charge<'a>,
    /// The level when it was drawn.
    pub level: Level,
}

/// A store that hands out slices.
pub trait Slices: Store {
    /// Takes for a request, and as much ahead as the fleet may hold.
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn>;

    /// Gives back what this node holds and will not spend.
    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()>;

    /// Lowers each level to what was once seen of it, and counts what is held as held: after a
    /// failover the store may have forgotten both.
    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()>;

    /// Counts how often the store may have forgotten something, as far as is known.
    fn epoch(&self) -> u64;
}

impl<S: Slices + ?Sized> Slices for Arc<S> {
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        (**self).draw(draw)
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        (**self).put_back(holdings)
    }

    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        (**self).reassert(holdings)
    }

    fn epoch(&self) -> u64 {
        (**self).epoch()
    }
}
