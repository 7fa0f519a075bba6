//! Many questions, each on its own, in one step of the store.

use std::{ops::Range, sync::Arc};

use tollgate_core::Decision;
use tollgate_rules::{KeyBuf, Policy};
use tollgate_store::{Charge, Take};

use super::{Asked, Engine, holds_places, keep_held, outcome_of};
use crate::{Held, Outcome, Rules};

/// What is asked, in a few vectors however many there are.
pub(super) struct Batch<'a> {
    charges: Vec<Charge<'a>>,
    questions: Vec<Question<'a>>,
}

struct Question<'a> {
    policy: &'a Policy,
    /// Which of the charges are its own; none where nothing limits it.
    charges: Range<usize>,
    lease: u64,
    held: Option<Box<Held>>,
}

impl<'a> Batch<'a> {
    pub(super) fn of(
        engine: &Engine,
        rules: &'a Arc<Rules>,
        asks: &'a [(usize, &'a [u8], u64)],
    ) -> Self {
        let mut charges = Vec::with_capacity(asks.len());
        let mut questions = Vec::with_capacity(asks.len());
        for (index, key, cost) in asks {
            let (policy, first) = (&rules.policies()[*index], charges.len());
            let limits = rules.limits(*index).iter();
            charges.extend(limits.map(|limit| Charge { limit, key, cost: *cost }));
            let (lease, held) = hold(engine, rules, policy, key, *cost);
            questions.push(Question { policy, charges: first..charges.len(), lease, held });
        }
        Self { charges, questions }
    }

    pub(super) fn takes(&self) -> Vec<Take<'_>> {
        let limited = self.questions.iter().filter(|one| !one.charges.is_empty());
        let take = |one: &Question<'_>| Take {
            lease: one.lease,
            ..Take::now(&self.charges[one.charges.clone()])
        };
        limited.map(take).collect()
    }

    /// What came of each, from the answers to [`Batch::takes`].
    pub(super) fn outcomes(self, decisions: Vec<Decision>) -> Vec<Outcome> {
        let mut decisions = decisions.into_iter();
        let outcome = |one: Question<'_>| {
            let decision = if one.charges.is_empty() { None } else { decisions.next() };
            let Some(decision) = decision else { return Outcome::unlimited() };
            let mut outcome = outcome_of(one.policy, decision);
            keep_held(&mut outcome, one.held, one.policy.enforce);
            outcome
        };
        self.questions.into_iter().map(outcome).collect()
    }
}

fn hold(
    engine: &Engine,
    rules: &Arc<Rules>,
    policy: &Policy,
    key: &[u8],
    cost: u64,
) -> (u64, Option<Box<Held>>) {
    if !holds_places(policy) {
        return (0, None);
    }
    let asked = [Asked { policy, key: KeyBuf::from_slice(key) }];
    let lease = engine.lease(&asked);
    (lease, engine.hold(rules, &asked, cost, lease))
}
