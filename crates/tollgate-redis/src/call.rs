//! One script call for a batch of requests, and what its reply means.
//!
//! The script decides and writes. It answers with the state that each decision met; what is shown
//! to the caller is worked out from that by the same code as in memory, so it cannot differ.

use std::{collections::HashMap, sync::Arc};

use redis::{Cmd, Value};
use tollgate_core::{Ask, Decision, Judgement, Patience, State, Time};
use tollgate_store::Drawn;

use crate::{
    request::{Action, Request},
    script::{Parts, Script, Scripts},
};

/// A call that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    requests: &'a [&'a Request],
    script: Arc<Script>,
    keys: Vec<&'a [u8]>,
    args: Vec<u64>,
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
        let mut keys: Vec<&[u8]> = Vec::new();
        let mut places: HashMap<&[u8], u64> = HashMap::new();
        let mut args = vec![0];
        for item in requests.iter().flat_map(|request| &request.items) {
            let rate = item.limit.rate().map_or((0, 1), |rate| (rate.count, rate.period_micros()));
            args.extend([rate.1, rate.0, item.limit.capacity(), 60_000]);
            args[0] += 1;
        }
        let mut limit = 0;
        for item in requests.iter().flat_map(|request| &request.items) {
            limit += 1;
            let place = *places.entry(&item.name).or_insert_with(|| {
                keys.push(&item.name);
                keys.len() as u64
            });
            args.extend([place, limit, item.cost]);
        }
        Self { requests, script: scripts.of(Parts::default()), keys, args }
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
        for arg in &self.args {
            command.arg(*arg);
        }
        command
    }

    /// What the reply means for each request.
    pub(crate) fn read(&self, reply: Value) -> Result<Reply, BadReply> {
        let Value::Array(values) = reply else { return Err(BadReply(format!("{reply:?}"))) };
        let mut numbers = values.iter().map(|value| match value {
            Value::Int(number) => Ok(*number),
            other => Err(BadReply(format!("{other:?}"))),
        });
        let mut next = || numbers.next().unwrap_or_else(|| Err(BadReply("too short".into())));
        let now = Time::from_micros(u64::try_from(next()?).unwrap_or(0));
        let mut outcomes = Vec::with_capacity(self.requests.len());
        for request in self.requests {
            let mut judgement = Judgement::OPEN;
            let patience = match request.action {
                Action::Take { patience, .. } => patience,
                _ => Patience::None,
            };
            let mut ask = Ask { now, cost: 0, patience, lease: 0 };
            for item in &request.items {
                ask.cost = item.cost;
                let _level = next()?;
                let state: State = item.limit.fresh();
                judgement.add(&item.limit, item.limit.check(&state, ask));
            }
            outcomes.push(match request.decides() {
                true => Outcome::Decided(judgement.decision(&ask)),
                false => Outcome::Done,
            });
        }
        Ok(Reply { now, outcomes })
    }
}
