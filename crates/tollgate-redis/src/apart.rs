//! A request whose counters cannot be asked in one step.
//!
//! In a cluster, Redis decides in one step only within a slot. All limits of one client share a
//! slot, so a request is apart only where it is counted under several keys, say per user and per
//! address; and, for a moment, while its slot moves from one server to another, counter by counter.
//! It is then taken part by part, and what was taken is given back when a later part refuses or
//! cannot be asked. For that moment others may be refused who would have passed; nobody passes who
//! should not.

use std::{cmp::Reverse, iter, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use tollgate_core::Decision;

use crate::{
    ErrorKind, ask,
    base::Base,
    call::Outcome,
    fault::Fault,
    request::{Action, Request},
};

/// The parts of a request that lie in one slot each.
pub(crate) fn by_slot(request: &Request) -> Vec<Request> {
    request.slots().iter().map(|slot| request.within(*slot)).collect()
}

/// Each counter by itself, where that makes sense and there are several.
pub(crate) fn by_counter(request: &Request) -> Option<Vec<Request>> {
    let parts = matches!(
        request.action,
        Action::Take { .. } | Action::Refund { .. } | Action::Release { .. }
    );
    let part = |item| Request { action: request.action.clone(), items: iter::once(item).collect() };
    (parts && request.items.len() > 1).then(|| request.items.iter().cloned().map(part).collect())
}

/// Asks all parts. It goes on to its end whether or not somebody still waits.
pub(crate) async fn ask(base: &Arc<Base>, parts: Vec<Request>) -> Result<Outcome, Fault> {
    let takes = parts.iter().any(|part| matches!(part.action, Action::Take { .. }));
    if !takes {
        return each(base, parts).await;
    }
    let base = Arc::clone(base);
    let runtime = Handle::try_current().unwrap_or_else(|_| base.background.clone());
    let taking = runtime.spawn(async move { one_by_one(&base, parts).await });
    taking.await.unwrap_or_else(|_| Err(ask::runtime_ended())).map(Outcome::Decided)
}

/// All parts at once, and one answer for all.
async fn each(base: &Arc<Base>, parts: Vec<Request>) -> Result<Outcome, Fault> {
    let mut all = Outcome::Done;
    for pending in ask::many(base, parts.into_iter().map(Box::new)).await {
        all = match (all, pending.outcome().await?) {
            (Outcome::Decided(one), Outcome::Decided(other)) => {
                Outcome::Decided(together(one, other))
            }
            (_, outcome) => outcome,
        };
    }
    Ok(all)
}

/// One part after the other, all or nothing.
async fn one_by_one(base: &Arc<Base>, parts: Vec<Request>) -> Result<Decision, Fault> {
    let mut taken: Vec<Request> = Vec::new();
    let mut all: Option<Decision> = None;
    for part in parts {
        let decision = match ask::one(base, Box::new(part.clone())).await {
            Ok(Outcome::Decided(decision)) => placed(decision, &part),
            Ok(_) => return Err(Fault::new(ErrorKind::Other, "no decision came back")),
            Err(fault) => {
                give_back(base, &taken).await;
                return Err(fault);
            }
        };
        all = Some(all.map_or(decision, |all| together(all, decision)));
        if !decision.allowed {
            give_back(base, &taken).await;
            break;
        }
        taken.push(part);
    }
    all.ok_or_else(|| Fault::new(ErrorKind::Other, "nothing was asked"))
}

/// Gives back what earlier parts took. What cannot be given back is lost, never spent twice.
async fn give_back(base: &Arc<Base>, taken: &[Request]) {
    let undoing = taken.iter().map(|part| Box::new(part.undoing()));
    ask::many(base, undoing).await;
}

/// With the place of the limit among all that the caller asked.
fn placed(decision: Decision, part: &Request) -> Decision {
    match part.items.as_slice() {
        [item] => Decision { shown: item.position, ..decision },
        _ => decision,
    }
}

/// One answer for two parts: who refuses longest is shown, else who has least left.
fn together(one: Decision, other: Decision) -> Decision {
    let shown = match (one.allowed, other.allowed) {
        (true, false) => other,
        (false, true) => one,
        (false, false) if other.retry_after > one.retry_after => other,
        (true, true) if least(&other) < least(&one) => other,
        _ => one,
    };
    let wait = if shown.allowed { one.wait.max(other.wait) } else { shown.wait };
    Decision { wait, ..shown }
}

const fn least(decision: &Decision) -> (u64, Reverse<Duration>) {
    (decision.remaining, Reverse(decision.reset_after))
}
