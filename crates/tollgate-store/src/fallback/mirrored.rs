//! A store whose answers are written down for the day it does not answer.

use std::sync::Arc;

use tollgate_core::{Decision, Time};

use crate::{Answer, Charge, Draw, Drawn, Holding, Local, Slices, Store, Take};

/// A store, and what it was last heard to say. What is written down costs one lock in this node's
/// memory for each limit of an answer.
pub struct Mirrored<S> {
    inner: S,
    local: Arc<Local>,
}

impl<S> Mirrored<S> {
    /// Writes down in `local` what `inner` answers.
    pub const fn new(inner: S, local: Arc<Local>) -> Self {
        Self { inner, local }
    }

    /// The store that is asked.
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Store> Store for Mirrored<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        self.inner
            .take(take)
            .then(move |answer| answer.inspect(|decision| self.local.note(&take, decision)))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        self.inner.take_each(takes).then(move |answer| {
            answer.inspect(|decisions| {
                for (take, decision) in takes.iter().zip(decisions) {
                    self.local.note(take, decision);
                }
            })
        })
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        self.inner.refund(charges).then(move |answer| {
            answer.inspect(|decision| self.local.note_refund(charges, Some(decision)))
        })
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        // Who decides here in the store's place frees its own places: see `Fallback`.
        self.inner.release(charges, lease)
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        self.inner.reset(charges).then(move |answer| answer.inspect(|()| self.local.reset(charges)))
    }

    fn now(&self) -> Time {
        self.inner.now()
    }
}

impl<S: Slices> Slices for Mirrored<S> {
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        self.inner.draw(draw).then(move |answer| {
            answer.inspect(|drawn| {
                // What is left with all slices taken off: a slice is spent by now, or will be.
                let remaining = drawn.level.remaining.min(drawn.decision.remaining);
                let decision = Decision { remaining, ..drawn.decision };
                self.local.note(&Take::now(&[draw.charge]), &decision);
            })
        })
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        self.inner.put_back(holdings).then(move |answer| {
            answer.inspect(|()| {
                for holding in holdings {
                    self.local.note_refund(&[holding.charge], None);
                }
            })
        })
    }

    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        self.inner.reassert(holdings)
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}
