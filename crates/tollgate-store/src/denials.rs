//! Who was refused and when it may pass: until then the store need not be asked again.
//!
//! A refusal says how long the same request (same limits, keys and costs) cannot pass. Counted from
//! before the store was asked, that instant cannot be too late, however long the answer was on its
//! way: up to it the refusal is repeated from here, from it on the store decides. What is shown
//! counts from when the answer came, so that whoever waits as told is not too early either.
//!
//! Only what somebody gives back could let a request pass sooner. Refunds, resets and slices put
//! back by this node drop the refusals of their keys; a changed policy has other limits and never
//! meets the old ones. What other nodes or an operator with `DEL` give back is noticed after
//! [`KEPT_AT_MOST`]. Looks, patient requests, places in flight (which come free at any time) and
//! limits that charge refusals always go to the store.
//!
//! The table is bounded. Requests are told apart by 128 bits under a secret seed:
//! a flood can push entries out, which costs a round trip, and never makes a wrong answer. A hit
//! costs a hash per limit and one lock; nothing allocates.

mod table;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tollgate_core::{Algorithm, Clock, Decision, Patience, Time, Wait};

use self::table::{Denial, Generations, Table};
use crate::{
    Answer, Charge, Draw, Drawn, Holding, Level, Slices, Store, StoreError, Take, fingerprint::Seed,
};

/// How long a refusal is repeated at most without asking: an operator who deletes a key in the
/// store should see it pass soon, and one round trip in two seconds costs nobody anything.
const KEPT_AT_MOST: Duration = Duration::from_secs(2);

/// A store that is not asked what it has already refused.
pub struct Denials<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    seed: Seed,
    table: Table,
    generations: Generations,
    hits: AtomicU64,
}

/// A request that may be answered from here.
#[derive(Debug, Clone, Copy)]
struct Asked {
    id: u128,
    /// How often something was given back to its keys, before the store was asked.
    generation: u64,
    at: Time,
}

impl<S> Denials<S> {
    /// Remembers what `inner` refuses, by this process's own clock.
    pub fn new(inner: S, clock: Arc<dyn Clock>) -> Self {
        let (table, generations) = (Table::new(), Generations::new());
        Self { inner, clock, seed: Seed::random(), table, generations, hits: AtomicU64::new(0) }
    }

    /// How many requests were refused without asking the store.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// The store that is asked.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// What a request is known by, unless only the store can say whether it passes.
    fn asked(&self, take: &Take<'_>) -> Option<Asked> {
        if take.patience != Patience::None || take.charges.is_empty() {
            return None;
        }
        let (mut id, mut generation) = (0_u128, 0_u64);
        for charge in take.charges {
            let counts = charge.limit.counts_refused();
            let flight = charge.limit.limit().algorithm() == Algorithm::Concurrency;
            if charge.cost == 0 || counts || flight {
                return None;
            }
            let key = self.seed.wide(charge.key);
            generation = generation.wrapping_add(self.generations.of(key));
            id = mixed(id, key ^ charge.limit.identity(), charge.cost);
        }
        Some(Asked { id, generation, at: self.clock.now() })
    }

    /// The refusal of this request, as it is by now.
    fn refusal(&self, asked: &Asked) -> Option<Decision> {
        let denial = self.table.find(asked.id)?;
        let in_time = denial.asked <= asked.at && asked.at < denial.until;
        if !in_time || denial.generation != asked.generation {
            return None;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(aged(denial.decision, asked.at.since(denial.answered)))
    }

    fn learn(&self, asked: &Asked, decision: &Decision) {
        let lasts = match decision.retry_after {
            Wait::For(wait) => wait.min(KEPT_AT_MOST),
            Wait::Never => KEPT_AT_MOST,
        };
        if decision.allowed || lasts.is_zero() {
            return;
        }
        let Asked { id, generation, at } = *asked;
        self.table.put(Denial {
            id,
            generation,
            asked: at,
            until: at.after(lasts),
            answered: self.clock.now(),
            decision: *decision,
        });
    }

    /// Forgets the refusals of these keys now, and once more when the guard goes: what was refused
    /// while the call was under way may be older than what it gave back.
    fn forget<'a>(&'a self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> impl Drop {
        let bump = move || keys.clone().for_each(|key| self.generations.bump(self.seed.wide(key)));
        bump();
        Forgetting(bump)
    }
}

struct Forgetting<F: Fn()>(F);

impl<F: Fn()> Drop for Forgetting<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// One more charge in the number of a request. The key's part is secret, so nobody can choose two
/// requests with one number.
fn mixed(id: u128, charge: u128, cost: u64) -> u128 {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let cost = u128::from(cost).wrapping_mul(ODD);
    (id.rotate_left(43) ^ charge).wrapping_add(cost).wrapping_mul(ODD)
}

/// A refusal as it is this much later.
fn aged(decision: Decision, age: Duration) -> Decision {
    let retry_after = match decision.retry_after {
        Wait::For(wait) => Wait::For(wait.saturating_sub(age)),
        Wait::Never => Wait::Never,
    };
    let reset_after = decision.reset_after.saturating_sub(age);
    Decision { retry_after, reset_after, at: decision.at.after(age), ..decision }
}

impl<S: Store> Denials<S> {
    /// Asks for those that cannot be answered from here, in one step.
    async fn take_rest(
        &self,
        takes: &[Take<'_>],
        asked: Vec<Option<Asked>>,
        mut answers: Vec<Option<Decision>>,
    ) -> Result<Vec<Decision>, StoreError> {
        let open = |answers: &[Option<Decision>]| -> Vec<usize> {
            (0..takes.len()).filter(|at| answers[*at].is_none()).collect()
        };
        let open = open(&answers);
        let rest: Vec<_> = open.iter().map(|at| takes[*at]).collect();
        let decisions = self.inner.take_each(&rest).await?;
        for (at, decision) in open.into_iter().zip(decisions) {
            if let Some(asked) = &asked[at] {
                self.learn(asked, &decision);
            }
            answers[at] = Some(decision);
        }
        let decisions: Vec<_> = answers.into_iter().flatten().collect();
        match decisions.len() == takes.len() {
            true => Ok(decisions),
            false => Err(StoreError::Unavailable("it answered only a part of a batch".to_owned())),
        }
    }
}

impl<S: Store> Store for Denials<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        let Some(asked) = self.asked(&take) else { return self.inner.take(take) };
        if let Some(refusal) = self.refusal(&asked) {
            return Answer::ready(refusal);
        }
        self.inner
            .take(take)
            .then(move |answer| answer.inspect(|decision| self.learn(&asked, decision)))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        let asked: Vec<_> = takes.iter().map(|take| self.asked(take)).collect();
        let refusal = |asked: &Option<Asked>| asked.as_ref().and_then(|asked| self.refusal(asked));
        let answers: Vec<_> = asked.iter().map(refusal).collect();
        match answers.iter().flatten().count() {
            0 => self.inner.take_each(takes).then(move |answer| {
                answer.inspect(|decisions| {
                    for (asked, decision) in asked.iter().zip(decisions) {
                        asked.iter().for_each(|asked| self.learn(asked, decision));
                    }
                })
            }),
            all if all == takes.len() => Answer::ready(answers.into_iter().flatten().collect()),
            _ => Answer::Waiting(Box::pin(self.take_rest(takes, asked, answers))),
        }
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        let forgetting = self.forget(charges.iter().map(|charge| charge.key));
        self.inner.refund(charges).then(move |answer| {
            drop(forgetting);
            answer
        })
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.inner.release(charges, lease)
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        let forgetting = self.forget(charges.iter().map(|charge| charge.key));
        self.inner.reset(charges).then(move |answer| {
            drop(forgetting);
            answer
        })
    }

    fn now(&self) -> Time {
        self.inner.now()
    }
}

impl<S: Slices> Slices for Denials<S> {
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        let Some(asked) = self.asked(&Take::now(&[draw.charge])) else {
            return self.inner.draw(draw);
        };
        // Whoever still holds something must hear from the store how long it may spend it.
        if draw.left == 0
            && let Some(decision) = self.refusal(&asked)
        {
            let level = Level { at: decision.at, remaining: decision.remaining };
            return Answer::ready(Drawn { decision, slice: 0, lasts: Duration::ZERO, level });
        }
        self.inner
            .draw(draw)
            .then(move |answer| answer.inspect(|drawn| self.learn(&asked, &drawn.decision)))
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        let forgetting = self.forget(holdings.iter().map(|holding| holding.charge.key));
        self.inner.put_back(holdings).then(move |answer| {
            drop(forgetting);
            answer
        })
    }

    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        self.inner.reassert(holdings)
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}
