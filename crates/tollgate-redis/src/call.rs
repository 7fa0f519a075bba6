//! One script call for a batch of requests, and what its reply means.
//!
//! The script decides and writes. It answers with the state that each decision met; what is shown
//! to the caller is worked out from that by the same code as in memory, so it cannot differ.

mod arguments;
mod mixed;
mod numbers;
mod seen;
mod takes;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tollgate_core::{Ask, Decision, Judgement, Patience, Time, Verdict};
use tollgate_store::{Drawn, Level};

use self::{
    arguments::Arguments,
    mixed::Mixed,
    seen::{Numbers, Seen},
    takes::Takes,
};
use crate::{
    request::{Action, Item, Request},
    script::{Kind, Parts, Script, Scripts},
};

/// A call that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    requests: &'a [&'a Request],
    script: Arc<Script>,
    keys: Vec<&'a [u8]>,
    arguments: Arguments,
    form: Form,
}

/// In which form the script answers.
#[derive(Debug)]
enum Form {
    /// A level for each request, in this order.
    Takes(Vec<usize>),
    /// What it saw of each item, kind by kind, and more, request by request.
    Mixed(Vec<Kind>),
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Of a take or a refund.
    Decided(Decision),
    /// Of a draw.
    Drawn(Drawn),
    /// Of everything else.
    Done,
}

/// What a call brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// When it was decided, by the script's clock.
    pub(crate) now: Time,
    /// One for each request, in their order.
    pub(crate) outcomes: Vec<Outcome>,
}

/// Redis answered something that the script does not say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an answer of the script: {0}")]
pub(crate) struct BadReply(String);

impl<'a> Call<'a> {
    /// The call for these requests, which are carried out in this order, each on its own.
    pub(crate) fn new(scripts: &Scripts, requests: &'a [&'a Request]) -> Self {
        if let Some(Takes { keys, arguments, order }) = Takes::of(requests) {
            let script = scripts.of(Parts::Takes);
            return Self { requests, script, keys, arguments, form: Form::Takes(order) };
        }
        let Mixed { keys, arguments, parts, kinds } = Mixed::of(requests);
        Self { requests, script: scripts.of(parts), keys, arguments, form: Form::Mixed(kinds) }
    }

    /// The script, for when the server does not know it.
    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    /// The command that runs it.
    pub(crate) fn command(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*self.script.sha1).arg(self.keys.len());
        for key in &self.keys {
            command.arg(*key);
        }
        for argument in self.arguments.iter() {
            command.arg(argument);
        }
        command
    }

    /// What the reply means for each request.
    pub(crate) fn read(&self, reply: Value) -> Result<Reply, BadReply> {
        let Value::Array(values) = reply else { return Err(BadReply(format!("{reply:?}"))) };
        let mut numbers = Numbers(values.into_iter().map(|value| match value {
            Value::Int(number) => Ok(number),
            other => Err(BadReply(format!("{other:?}"))),
        }));
        let now = Time::from_micros(numbers.next()?);
        let outcomes = match &self.form {
            Form::Takes(order) => self.read_takes(numbers, now, order)?,
            Form::Mixed(kinds) => {
                let mut kinds = &**kinds;
                let read = |request: &&Request| {
                    let own;
                    (own, kinds) = kinds.split_at(request.items.len());
                    read(&mut numbers, now, request, own)
                };
                self.requests.iter().map(read).collect::<Result<_, _>>()?
            }
        };
        Ok(Reply { now, outcomes })
    }

    fn read_takes<I: Iterator<Item = Result<i64, BadReply>>>(
        &self,
        mut numbers: Numbers<I>,
        now: Time,
        order: &[usize],
    ) -> Result<Vec<Outcome>, BadReply> {
        let mut outcomes = vec![Outcome::Done; self.requests.len()];
        for at in order {
            let Some(item) = self.requests[*at].items.first() else { continue };
            let seen = Seen::read(&mut numbers, Kind::Narrow, &item.limit, now)?;
            let verdict = seen.verdict(&item.limit, ask(item.cost, Patience::None, now));
            let decision = Decision::of_one(item.limit.capacity(), verdict, now);
            outcomes[*at] = Outcome::Decided(decision);
        }
        Ok(outcomes)
    }
}

/// Reads what came of one request of a long call.
fn read<I: Iterator<Item = Result<i64, BadReply>>>(
    numbers: &mut Numbers<I>,
    now: Time,
    request: &Request,
    kinds: &[Kind],
) -> Result<Outcome, BadReply> {
    let (patience, look) = match request.action {
        Action::Take { patience, .. } => (patience, false),
        Action::Refund { .. } => (Patience::None, true),
        Action::Draw { .. } => (Patience::None, false),
        _ => return Ok(Outcome::Done),
    };
    let mut judgement = Judgement::OPEN;
    let mut last = Verdict::UNLIMITED;
    for (item, kind) in request.items.iter().zip(kinds) {
        let seen = Seen::read(numbers, *kind, &item.limit, now)?;
        let cost = if look { 0 } else { item.cost };
        last = seen.verdict(&item.limit, ask(cost, patience, now));
        judgement.add(&item.limit, last);
    }
    if judgement.allowed() != (numbers.next()? == 1) {
        return Err(BadReply("it does not follow from what was seen".to_owned()));
    }
    let shown = request.items.get(judgement.shown()).map_or(0, |item: &Item| item.position);
    let decision = Decision { shown, ..judgement.decision(&ask(0, patience, now)) };
    let Action::Draw { .. } = request.action else { return Ok(Outcome::Decided(decision)) };
    let (slice, lasts) = (numbers.next()?, Duration::from_micros(numbers.next()?));
    let level = Level { at: now, remaining: last.remaining.saturating_sub(slice) };
    Ok(Outcome::Drawn(Drawn { decision, slice, lasts, level }))
}

const fn ask(cost: u64, patience: Patience, now: Time) -> Ask {
    Ask { now, cost, patience, lease: 0 }
}
