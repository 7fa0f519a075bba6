//! From a request to an outcome.

mod batch;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use smallvec::SmallVec;
use tokio::{sync::Notify, time::Instant};
use tollgate_core::{Algorithm, COST_MAX, Decision, Patience};
use tollgate_rules::{Attributes, KeyBuf, Policy};
use tollgate_store::{Answer, Charge, NamedLimit, Store, StoreError, Take};

use self::batch::Batch;
use crate::{
    CannotDecide, Held, Outcome, Rules, Shown,
    place::{Asking, Place},
    queue::Queues,
};

/// Longer than any name, token or path worth counting by, and short enough to hash in passing.
pub const KEY_BYTES_MAX: usize = 4_096;

/// How many policies and limits a request has at most before a decision allocates.
const INLINE: usize = 4;

/// How soon a caller who waits for a place in flight looks again: where the store is shared, nobody
/// tells this engine that a place came free at another one.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Takes decisions: rules that can be swapped, on one store.
pub struct Engine {
    store: Arc<dyn Store>,
    rules: ArcSwap<Rules>,
    queues: Queues,
    released: Arc<Notify>,
    leases: AtomicU64,
}

impl Engine {
    /// An engine with its first rules.
    pub fn new(store: Arc<dyn Store>, rules: Rules) -> Self {
        // Leases of an earlier run may still be in the store: names go on from the time.
        let leases = AtomicU64::new(store.now().as_micros());
        let rules = ArcSwap::from_pointee(rules);
        Self { store, rules, queues: Queues::default(), released: Arc::default(), leases }
    }

    /// Names leases from this number on, one after the other. Where several engines share a store
    /// each needs numbers of its own: a place may be given back at another than it was taken at.
    #[must_use]
    pub fn naming_leases_from(mut self, first: u64) -> Self {
        // A lease of 0 would be none.
        self.leases = AtomicU64::new(first.max(1));
        self
    }

    /// The rules in force.
    pub fn rules(&self) -> Guard<Arc<Rules>> {
        self.rules.load()
    }

    /// Puts new rules in force for every decision from now on; levels are kept.
    pub fn replace(&self, rules: Rules) {
        let old = self.rules.load();
        self.rules.store(Arc::new(rules.succeeding(&old.all_limits(), self.store.now())));
    }

    /// Decides a request under several policies, all or nothing over those that are enforced. With
    /// the memory store the answer is there without waiting.
    pub async fn decide<A: Attributes + ?Sized>(
        &self,
        rules: &Arc<Rules>,
        policies: &[usize],
        attributes: &A,
    ) -> Result<Outcome, CannotDecide> {
        if let [index] = policies
            && let Some(limit) = lone_limit(rules, *index)
        {
            let mut key = KeyBuf::new();
            rules.policies()[*index].key.render(attributes, rules.ipv6_prefix(), &mut key);
            return self.take_lone(*index, limit, &key, 1).await;
        }
        let mut asked: SmallVec<[Asked<'_>; INLINE]> = SmallVec::new();
        for policy in policies.iter().map(|index| &rules.policies()[*index]) {
            if !policy.limits.is_empty() {
                let mut key = KeyBuf::new();
                policy.key.render(attributes, rules.ipv6_prefix(), &mut key);
                asked.push(Asked { policy, key });
            }
        }
        let lease = self.lease(&asked);
        let held = self.hold(rules, &asked, 1, lease);
        let all_enforced = asked.iter().all(|one| one.policy.enforce);
        let mut outcome = match all_enforced {
            true => self.take_all(rules, &asked, 1, lease).await?,
            false => self.take_mixed(rules, &asked, 1, lease).await?,
        };
        keep_held(&mut outcome, held, all_enforced);
        Ok(outcome)
    }

    /// Decides for one key of one policy.
    pub async fn check(
        &self,
        policy: &str,
        key: &[u8],
        cost: u64,
    ) -> Result<Outcome, CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, cost)?;
        self.check_asked(&rules, &asked, cost).await
    }

    /// The same under rules that the caller holds, with the policy as a place in them: for front
    /// ends that keep something ready for each policy.
    pub async fn check_under(
        &self,
        rules: &Arc<Rules>,
        policy: usize,
        key: &[u8],
        cost: u64,
    ) -> Result<Outcome, CannotDecide> {
        check_input(key, cost)?;
        if let Some(limit) = lone_limit(rules, policy) {
            return self.take_lone(policy, limit, key, cost).await;
        }
        let asked = Self::asked_of(&rules.policies()[policy], key, cost)?;
        self.check_asked(rules, &asked, cost).await
    }

    /// Decides for many keys, each on its own, in one step of the store. Asks are a policy's place, a
    /// key and a cost; outcomes come in the same order.
    pub async fn check_each(
        &self,
        rules: &Arc<Rules>,
        asks: &[(usize, &[u8], u64)],
    ) -> Result<Vec<Outcome>, CannotDecide> {
        // All of them before any is counted.
        asks.iter().try_for_each(|(_, key, cost)| check_input(key, *cost))?;
        let batch = Batch::of(self, rules, asks);
        let decisions = self.take_several(&batch.takes()).await?;
        Ok(batch.outcomes(decisions))
    }

    /// The short way of the commonest case, one limit that holds no places: nothing is gathered.
    async fn take_lone(
        &self,
        policy: usize,
        limit: &NamedLimit,
        key: &[u8],
        cost: u64,
    ) -> Result<Outcome, CannotDecide> {
        let charges = [Charge { limit, key, cost }];
        // Taken out by hand where it is there already: a poll would move it twice more.
        let decision = match self.store.take(Take::now(&charges)) {
            Answer::Ready(Some(decision)) => decision?,
            waiting => waiting.await?,
        };
        Ok(lone(policy, decision))
    }

    async fn check_asked(
        &self,
        rules: &Arc<Rules>,
        asked: &Asked<'_>,
        cost: u64,
    ) -> Result<Outcome, CannotDecide> {
        if asked.policy.limits.is_empty() {
            return Ok(Outcome::unlimited());
        }
        let one = std::slice::from_ref(asked);
        let lease = self.lease(one);
        let held = self.hold(rules, one, cost, lease);
        let mut outcome = self.take_all(rules, one, cost, lease).await?;
        keep_held(&mut outcome, held, asked.policy.enforce);
        Ok(outcome)
    }

    /// Waits until the key's turn comes, or refuses at once if that is later than `max_wait`.
    /// Dropping the future gives the place back.
    pub async fn acquire(
        &self,
        policy: &str,
        key: &[u8],
        cost: u64,
        max_wait: Duration,
    ) -> Result<(Outcome, Duration), CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, cost)?;
        if asked.policy.limits.is_empty() || !asked.policy.enforce {
            // Where nothing is refused nobody waits.
            return Ok((self.check_asked(&rules, &asked, cost).await?, Duration::ZERO));
        }
        let asked = std::slice::from_ref(&asked);
        let (policy, key) = (asked[0].policy.index, asked[0].key.clone());
        let place = Place { store: self.store.clone(), rules: rules.clone(), policy, key, cost };
        let started = Instant::now();
        loop {
            let left = max_wait.saturating_sub(started.elapsed());
            // Before the store is asked, so that no release falls between the two.
            let released = self.released.notified();
            let patience = Patience::Micros(u64::try_from(left.as_micros()).unwrap_or(u64::MAX));
            let lease = self.lease(asked);
            let held = self.hold(&rules, asked, cost, lease);
            let decision = Asking::new(&place, patience, lease, &self.queues).await?;
            let mut outcome = outcome_of(asked[0].policy, decision);
            keep_held(&mut outcome, held, true);
            if decision.allowed {
                place.wait(&self.queues, decision.wait).await;
                return Ok((outcome, started.elapsed()));
            }
            // Only a place in flight can come free sooner than is known.
            let retry = decision.retry_after.duration().filter(|retry| *retry <= left);
            let Some(retry) = retry.filter(|_| holds_places(asked[0].policy)) else {
                return Ok((outcome, started.elapsed()));
            };
            tokio::select! {
                () = tokio::time::sleep(retry.min(LOOK_EVERY)) => {}
                () = released => {}
            }
        }
    }

    /// Gives back to one key of one policy; the outcome shows the level after it.
    pub async fn refund(
        &self,
        policy: &str,
        key: &[u8],
        cost: u64,
    ) -> Result<Outcome, CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, cost)?;
        let charges = charges(&rules, [&asked], cost);
        if charges.is_empty() {
            return Ok(Outcome::unlimited());
        }
        let decision = self.store.refund(&charges).await?;
        self.released.notify_waiters();
        Ok(outcome_of(asked.policy, decision))
    }

    /// Frees the places that were kept under this lease.
    pub async fn release(&self, policy: &str, key: &[u8], lease: u64) -> Result<(), CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, 0)?;
        self.store.release(&charges(&rules, [&asked], 0), lease).await?;
        self.released.notify_waiters();
        Ok(())
    }

    /// What each limit of a policy says of a key, without changing anything.
    pub async fn inspect(
        &self,
        policy: &str,
        key: &[u8],
    ) -> Result<Vec<(Algorithm, Decision)>, CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, 0)?;
        let looks = charges(&rules, [&asked], 0);
        let takes: Vec<_> = looks.chunks(1).map(Take::now).collect();
        let decisions = self.take_several(&takes).await?;
        let algorithms = looks.iter().map(|look| look.limit.limit().algorithm());
        Ok(algorithms.zip(decisions).collect())
    }

    /// Forgets a key of a policy.
    pub async fn reset(&self, policy: &str, key: &[u8]) -> Result<(), CannotDecide> {
        let rules = self.rules.load_full();
        let asked = Self::asked(&rules, policy, key, 0)?;
        self.store.reset(&charges(&rules, [&asked], 0)).await?;
        self.released.notify_waiters();
        Ok(())
    }

    fn asked<'a>(
        rules: &'a Rules,
        policy: &str,
        key: &[u8],
        cost: u64,
    ) -> Result<Asked<'a>, CannotDecide> {
        let found = rules.policy(policy);
        let policy = found.ok_or_else(|| CannotDecide::UnknownPolicy(policy.to_owned()))?;
        Self::asked_of(policy, key, cost)
    }

    fn asked_of<'a>(policy: &'a Policy, key: &[u8], cost: u64) -> Result<Asked<'a>, CannotDecide> {
        check_input(key, cost)?;
        Ok(Asked { policy, key: KeyBuf::from_slice(key) })
    }

    /// Takes from all limits of these policies, which are all enforced, or from none. A single one
    /// may be in dry run: then it is counted and shown, and refuses nothing.
    async fn take_all(
        &self,
        rules: &Arc<Rules>,
        asked: &[Asked<'_>],
        cost: u64,
        lease: u64,
    ) -> Result<Outcome, CannotDecide> {
        let charges = charges(rules, asked, cost);
        if charges.is_empty() {
            return Ok(Outcome::unlimited());
        }
        let decision = self.store.take(Take { lease, ..Take::now(&charges) }).await?;
        if let [one] = asked {
            return Ok(outcome_of(one.policy, decision));
        }
        let shown = Some(shown(asked.iter(), decision));
        Ok(Outcome { allowed: decision.allowed, shown, ..Outcome::unlimited() })
    }

    /// Takes for a request some of whose policies are in dry run, in one step: those enforced
    /// together, the others each on its own. Those are counted like any other and refuse nothing.
    async fn take_mixed(
        &self,
        rules: &Arc<Rules>,
        asked: &[Asked<'_>],
        cost: u64,
        lease: u64,
    ) -> Result<Outcome, CannotDecide> {
        let enforced = || asked.iter().filter(|one| one.policy.enforce);
        let tried = || asked.iter().filter(|one| !one.policy.enforce);
        let mut groups: SmallVec<[_; INLINE]> = SmallVec::new();
        groups.push(charges(rules, enforced(), cost));
        groups.extend(tried().map(|one| charges(rules, [one], cost)));
        let asked = groups.iter().filter(|charges| !charges.is_empty());
        let takes: SmallVec<[_; INLINE]> =
            asked.map(|charges| Take { lease, ..Take::now(charges) }).collect();
        let mut decisions = self.take_several(&takes).await?.into_iter();
        let mut outcome = Outcome::unlimited();
        if !groups[0].is_empty()
            && let Some(decision) = decisions.next()
        {
            outcome.allowed = decision.allowed;
            outcome.shown = Some(shown(enforced(), decision));
        }
        let refused = tried().zip(decisions).filter(|(_, decision)| !decision.allowed);
        outcome.dry_run.extend(refused.map(|(one, _)| one.policy.index));
        Ok(outcome)
    }

    /// One answer for each.
    async fn take_several(&self, takes: &[Take<'_>]) -> Result<Vec<Decision>, CannotDecide> {
        if takes.is_empty() {
            return Ok(Vec::new());
        }
        let decisions = self.store.take_each(takes).await?;
        match decisions.len() == takes.len() {
            true => Ok(decisions),
            false => {
                Err(StoreError::Unavailable("it answered a part of a batch".to_owned()).into())
            }
        }
    }

    /// A name for the places that a request may hold; 0 where no limit counts what is in flight.
    fn lease(&self, asked: &[Asked<'_>]) -> u64 {
        let holds = asked.iter().any(|one| holds_places(one.policy));
        if holds { self.leases.fetch_add(1, Ordering::Relaxed) } else { 0 }
    }

    /// What frees those places again. It is made before they are taken, so that a caller who leaves
    /// in between loses none.
    fn hold(
        &self,
        rules: &Arc<Rules>,
        asked: &[Asked<'_>],
        cost: u64,
        lease: u64,
    ) -> Option<Box<Held>> {
        let (store, released) = (&self.store, &self.released);
        (lease > 0 && cost > 0)
            .then(|| Box::new(Held::new(store, released, rules, places(asked), lease)))
    }
}

/// One policy and the key it counts for this request.
#[derive(Clone)]
struct Asked<'a> {
    policy: &'a Policy,
    key: KeyBuf,
}

fn charges<'a>(
    rules: &'a Rules,
    asked: impl IntoIterator<Item = &'a Asked<'a>>,
    cost: u64,
) -> SmallVec<[Charge<'a>; INLINE]> {
    let limits = asked.into_iter().flat_map(|one| {
        let limits: &[NamedLimit] = rules.limits(one.policy.index);
        limits.iter().map(move |limit| Charge { limit, key: &one.key, cost })
    });
    limits.collect()
}

fn places<'a>(asked: &'a [Asked<'_>]) -> impl Iterator<Item = (usize, usize, KeyBuf)> + 'a {
    asked.iter().flat_map(|one| {
        let limits = 0..one.policy.limits.len();
        limits.map(|limit| (one.policy.index, limit, one.key.clone()))
    })
}

/// The limit of a policy that has just one, enforced and in the plain way.
fn lone_limit(rules: &Rules, policy: usize) -> Option<&NamedLimit> {
    let [limit] = rules.limits(policy) else { return None };
    let policy = &rules.policies()[policy];
    let plain = policy.enforce && !holds_places(policy);
    plain.then_some(limit)
}

/// What came of a policy with one limit.
fn lone(policy: usize, decision: Decision) -> Outcome {
    let shown = Some(Shown { policy, limit: 0, decision });
    Outcome { allowed: decision.allowed, shown, ..Outcome::unlimited() }
}

fn check_input(key: &[u8], cost: u64) -> Result<(), CannotDecide> {
    match key.len() {
        0 => Err(CannotDecide::EmptyKey),
        long if long > KEY_BYTES_MAX => Err(CannotDecide::LongKey(long)),
        _ if cost > COST_MAX => Err(CannotDecide::HighCost(cost)),
        _ => Ok(()),
    }
}

fn holds_places(policy: &Policy) -> bool {
    policy.limits.iter().any(|limit| limit.algorithm() == Algorithm::Concurrency)
}

/// Leaves the places with a request that passes. One that was refused has taken none, except
/// under policies in dry run: those are given back.
fn keep_held(outcome: &mut Outcome, held: Option<Box<Held>>, all_enforced: bool) {
    if outcome.allowed {
        outcome.held = held;
    } else if all_enforced {
        held.map(|held| held.keep());
    }
}

/// What came of one policy: in dry run it is shown, and refuses nothing.
fn outcome_of(policy: &Policy, decision: Decision) -> Outcome {
    let shown = Some(Shown { policy: policy.index, limit: decision.shown, decision });
    let mut outcome = Outcome { shown, ..Outcome::unlimited() };
    if policy.enforce {
        outcome.allowed = decision.allowed;
    } else if !decision.allowed {
        outcome.dry_run.push(policy.index);
    }
    outcome
}

/// Which policy and limit the store's number means.
fn shown<'a>(asked: impl Iterator<Item = &'a Asked<'a>>, decision: Decision) -> Shown {
    let mut limit = decision.shown;
    for one in asked {
        if limit < one.policy.limits.len() {
            return Shown { policy: one.policy.index, limit, decision };
        }
        limit -= one.policy.limits.len();
    }
    Shown { policy: 0, limit: 0, decision }
}
