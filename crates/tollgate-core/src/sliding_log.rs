//! Sliding log: the times of everything accepted; exact, at a word or two per request.
//!
//! A request counts for one whole window after it: taken at `t`, it is gone at `t + window`.
//! Callers with patience are written down at the time at which they will go on.

use std::{collections::VecDeque, time::Duration};

use crate::{Ask, Glance, Rate, Time, Verdict, Wait, fixed_window::share, limit::Meter};

/// `count` in any window, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingLog {
    rate: Rate,
}

/// What was accepted and still counts, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The sum of all costs, so that a decision does not add up the log.
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: u64,
    cost: u64,
}

impl Log {
    /// A log of these times (in microseconds) and costs.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut entries: Vec<_> = pairs.into_iter().map(|(at, cost)| Entry { at, cost }).collect();
        entries.sort_by_key(|entry| entry.at);
        let total = entries.iter().map(|entry| entry.cost).sum();
        Self { entries: entries.into(), total }
    }

    /// The times (in microseconds) and costs, oldest first.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.entries.iter().map(|entry| (entry.at, entry.cost))
    }

    /// How many bytes the log holds on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

impl SlidingLog {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.rate.count
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    const fn gone_at(&self, entry: Entry) -> u64 {
        entry.at.saturating_add(self.rate.period_micros())
    }

    /// What still counts at `now`.
    fn live<'a>(&self, log: &'a Log, now: Time) -> impl Iterator<Item = Entry> + 'a {
        let limit = *self;
        log.entries
            .iter()
            .copied()
            .skip_while(move |entry| limit.gone_at(*entry) <= now.as_micros())
    }

    /// How much of it there is. Only what is gone since the last take is walked over.
    fn used(&self, log: &Log, now: Time) -> u64 {
        let gone = log.entries.iter().take_while(|entry| self.gone_at(**entry) <= now.as_micros());
        log.total - gone.map(|entry| entry.cost).sum::<u64>()
    }

    /// When `excess` of what is in the log will have gone.
    fn freed_at(&self, log: &Log, now: Time, mut excess: u64) -> Time {
        for entry in self.live(log, now) {
            if excess <= entry.cost {
                return Time::from_micros(self.gone_at(entry)).max(now);
            }
            excess -= entry.cost;
        }
        now
    }

    /// The earliest instant at which `cost` more has room.
    fn turn(&self, log: &Log, now: Time, cost: u64) -> Time {
        match (self.used(log, now) + cost).saturating_sub(self.count()) {
            0 => now,
            excess => self.freed_at(log, now, excess),
        }
    }

    /// What `ask` sees of a log.
    pub(crate) fn glance(&self, log: &Log, ask: Ask) -> Glance {
        let turn = self.turn(log, ask.now, ask.cost);
        Glance { used: self.used(log, ask.now), turn, free: self.idle_at(log) }
    }

    /// Whether `ask` passes.
    pub(crate) fn verdict(&self, glance: Glance, ask: Ask) -> Verdict {
        let remaining = self.count().saturating_sub(glance.used);
        let reset = glance.free.since(ask.now);
        if ask.cost > self.count() || self.count() == 0 {
            return Verdict::never(remaining, reset);
        }
        let wait = glance.turn.since(ask.now);
        if wait > ask.patience.longest() {
            return Verdict::refuse(remaining, Wait::For(wait), reset);
        }
        let gone = glance.turn.after(Duration::from_micros(self.rate.period_micros()));
        let reset = if ask.cost == 0 { reset } else { reset.max(gone.since(ask.now)) };
        Verdict { wait, ..Verdict::pass(remaining.saturating_sub(ask.cost), reset) }
    }

    fn forget(&self, log: &mut Log, now: Time) {
        let gone = |entry: &mut Entry| self.gone_at(*entry) <= now.as_micros();
        while let Some(entry) = log.entries.pop_front_if(gone) {
            log.total -= entry.cost;
        }
        // A burst long ago must not hold its memory for ever.
        if log.entries.capacity() > 16 && log.entries.len() * 4 < log.entries.capacity() {
            log.entries.shrink_to(log.entries.len() * 2);
        }
    }

    fn write(log: &mut Log, at: Time, cost: u64) {
        let at = at.as_micros();
        log.total += cost;
        match log.entries.back_mut() {
            Some(last) if last.at == at => last.cost += cost,
            Some(last) if last.at > at => {
                let place = log.entries.partition_point(|entry| entry.at <= at);
                log.entries.insert(place, Entry { at, cost });
            }
            _ => log.entries.push_back(Entry { at, cost }),
        }
    }
}

impl Meter for SlidingLog {
    type State = Log;

    fn check(&self, log: &Log, ask: Ask) -> Verdict {
        self.verdict(self.glance(log, ask), ask)
    }

    fn spend(&self, log: &mut Log, ask: Ask) {
        self.forget(log, ask.now);
        let turn = self.turn(log, ask.now, ask.cost);
        Self::write(log, turn, ask.cost);
    }

    fn charge(&self, log: &mut Log, ask: Ask) {
        self.forget(log, ask.now);
        if self.count() == 0 {
            return;
        }
        Self::write(log, ask.now, ask.cost.min(self.count()));
        // Only the newest `count` can ever matter; the rest would be memory for an attacker.
        let mut excess = log.total.saturating_sub(self.count());
        while let Some(oldest) = log.entries.front_mut().filter(|_| excess > 0) {
            let dropped = oldest.cost.min(excess);
            oldest.cost -= dropped;
            log.total -= dropped;
            excess -= dropped;
            if oldest.cost == 0 {
                log.entries.pop_front();
            }
        }
    }

    fn refund(&self, log: &mut Log, now: Time, mut cost: u64) {
        self.forget(log, now);
        while let Some(newest) = log.entries.back_mut().filter(|_| cost > 0) {
            let returned = newest.cost.min(cost);
            newest.cost -= returned;
            log.total -= returned;
            cost -= returned;
            if newest.cost == 0 {
                log.entries.pop_back();
            }
        }
    }

    fn idle_at(&self, log: &Log) -> Time {
        Time::from_micros(log.entries.back().map_or(0, |entry| self.gone_at(*entry)))
    }

    fn carry(&self, old: &Self, log: &Log, now: Time) -> Log {
        // Of each entry the same share, rounded up in total and not one by one.
        let (mut before, mut given) = (0, 0);
        let pairs = old.live(log, now).map(|entry| {
            before += entry.cost;
            let cost = share(before, old.count(), self.count()) - given;
            given += cost;
            (entry.at, cost)
        });
        Log::from_pairs(pairs.filter(|(_, cost)| *cost > 0))
    }
}
