//! A request whose counters lie in several slots of a cluster.
//!
//! All limits of one client share a slot, so this happens only where a request is counted under
//! several keys, say per user and per address. Redis decides in one step only within a slot. So
//! such a request is taken part by part, and what was taken is given back when a later part refuses
//! or cannot be asked. For that moment others may be refused who would have passed; nobody passes
//! who should not.

use std::{cmp::Reverse, sync::Arc};

use tollgate_core::Decision;

use crate::{ErrorKind, ask, base::Base, call::Outcome, fault::Fault, request::Request};

/// Takes from all parts or from none. It runs to its end whether or not somebody still waits.
pub(crate) async fn take(base: &Arc<Base>, request: Request) -> Result<Outcome, Fault> {
    let base = Arc::clone(base);
    let runtime = tokio::runtime::Handle::try_current();
    let runtime = runtime.unwrap_or_else(|_| base.background.clone());
    let taking = runtime.spawn(async move { part_by_part(&base, &request).await });
    let lost = || Fault::new(ErrorKind::Connection, "the runtime it was asked on has ended");
    taking.await.unwrap_or_else(|_| Err(lost())).map(Outcome::Decided)
}

/// Everything but a take: each part by itself, and one answer for all.
pub(crate) async fn each(base: &Arc<Base>, request: Request) -> Result<Outcome, Fault> {
    let parts: Vec<_> = request.slots().iter().map(|slot| request.within(*slot)).collect();
    let mut all = Outcome::Done;
    for pending in ask::many(base, parts).await {
        all = match (all, pending.outcome().await?) {
            (Outcome::Decided(one), Outcome::Decided(other)) => {
                Outcome::Decided(together(one, other))
            }
            (_, outcome) => outcome,
        };
    }
    Ok(all)
}

async fn part_by_part(base: &Arc<Base>, request: &Request) -> Result<Decision, Fault> {
    let mut taken: Vec<Request> = Vec::new();
    let mut all: Option<Decision> = None;
    for slot in request.slots() {
        let part = request.within(slot);
        let decision = match ask::one(base, part.clone()).await {
            Ok(Outcome::Decided(decision)) => decision,
            Ok(_) => return Err(Fault::new(ErrorKind::Other, "no decision came back")),
            Err(fault) => {
                give_back(base, taken).await;
                return Err(fault);
            }
        };
        all = Some(all.map_or(decision, |all| together(all, decision)));
        if !decision.allowed {
            give_back(base, taken).await;
            break;
        }
        taken.push(part);
    }
    all.ok_or_else(|| Fault::new(ErrorKind::Other, "nothing was asked"))
}

/// Gives back what earlier parts took. What cannot be given back is lost, never spent twice.
async fn give_back(base: &Arc<Base>, taken: Vec<Request>) {
    let undoing: Vec<_> = taken.iter().map(Request::undoing).collect();
    ask::many(base, undoing).await;
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

const fn least(decision: &Decision) -> (u64, Reverse<std::time::Duration>) {
    (decision.remaining, Reverse(decision.reset_after))
}
