//! What a script saw of a counter when it decided, and the verdict that follows from it.

use tollgate_core::{Ask, Glance, Limit, State, Tally, Time, TwoTallies, Verdict};

use super::{BadReply, numbers::BucketNumbers};
use crate::script::Kind;

/// The numbers of a reply, one after the other.
pub(super) struct Numbers<I>(pub(super) I);

impl<I: Iterator<Item = Result<i64, BadReply>>> Numbers<I> {
    pub(super) fn signed(&mut self) -> Result<i64, BadReply> {
        self.0.next().unwrap_or_else(|| Err(BadReply("it is too short".to_owned())))
    }

    pub(super) fn next(&mut self) -> Result<u64, BadReply> {
        let number = self.signed()?;
        u64::try_from(number).map_err(|_| BadReply(format!("{number} is below zero")))
    }

    fn time(&mut self) -> Result<Time, BadReply> {
        self.next().map(Time::from_micros)
    }

    fn glance(&mut self) -> Result<Glance, BadReply> {
        Ok(Glance { used: self.next()?, turn: self.time()?, free: self.time()? })
    }
}

/// A state, or as much of it as a verdict needs, and the instant that was now for it.
pub(super) struct Seen {
    state: What,
    at: Time,
}

enum What {
    State(State),
    Glance(Glance),
}

impl Seen {
    /// Reads what this kind of limit tells.
    pub(super) fn read<I: Iterator<Item = Result<i64, BadReply>>>(
        numbers: &mut Numbers<I>,
        kind: Kind,
        limit: &Limit,
        now: Time,
    ) -> Result<Self, BadReply> {
        let state = |state, at: Time| Self { state: What::State(state), at: at.max(now) };
        Ok(match (kind, limit) {
            (Kind::Narrow, _) => state(filled(limit, now, numbers.signed()?.into()), now),
            (Kind::Wide, _) => {
                let (whole, rest) = (i128::from(numbers.signed()?), i128::from(numbers.next()?));
                let parts = BucketNumbers::of(limit).map_or(1, |numbers| numbers.period);
                state(filled(limit, now, whole * i128::from(parts) + rest), now)
            }
            (Kind::FixedWindow, Limit::FixedWindow(window)) => {
                let start = Time::from_secs(numbers.next()?);
                let ahead = numbers.next()?.saturating_mul(limit.capacity());
                let count = ahead.saturating_add(numbers.next()?);
                state(State::Tally(Tally { index: window.window().index(start), count }), start)
            }
            (Kind::SlidingCounter, _) => {
                let start = Time::from_secs(numbers.next()?);
                let period = limit.rate().map_or(1, |rate| rate.period_micros());
                let (current, previous) = (numbers.next()?, numbers.next()?);
                let index = start.as_micros() / period;
                state(State::TwoTallies(TwoTallies { index, current, previous }), start)
            }
            (Kind::Concurrency, _) => Self { state: What::Glance(numbers.glance()?), at: now },
            _ => {
                let at = numbers.time()?;
                Self { state: What::Glance(numbers.glance()?), at }
            }
        })
    }

    /// What the limit says to `ask`.
    pub(super) fn verdict(&self, limit: &Limit, ask: Ask) -> Verdict {
        let ask = Ask { now: self.at, ..ask };
        match &self.state {
            What::State(state) => limit.check(state, ask),
            What::Glance(glance) => {
                limit.check_glance(*glance, ask).unwrap_or_else(|| limit.check(&limit.fresh(), ask))
            }
        }
    }
}

/// A bucket with this level in parts of a token.
fn filled(limit: &Limit, now: Time, level: i128) -> State {
    match limit {
        Limit::TokenBucket(bucket) | Limit::LeakyBucket(bucket) if bucket.flow().0 > 0 => {
            State::Fill(bucket.fill(now, level))
        }
        _ => limit.fresh(),
    }
}
