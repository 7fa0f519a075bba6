//! One batch of requests, there and back on an open connection.
//!
//! A call may touch one slot of a cluster only, so a batch becomes a call for each slot, all sent
//! in one go. A server that does not know a script was restarted or told to forget: it is told the
//! script again, and asked once more. Nothing was done by a call with an unknown script.

use std::{iter, ops::Range};

use redis::{Cmd, Pipeline, ServerError, ServerErrorKind, Value};
use smallvec::SmallVec;

use crate::{
    call::{Call, Outcome},
    dial::Connection,
    fault::Fault,
    link::Waiting,
    request::Request,
    script::Scripts,
};

/// What came of one call.
pub(crate) struct Answered {
    /// How many requests were in it.
    pub(crate) requests: usize,
    /// What came of each, or why none was carried out.
    pub(crate) outcomes: Result<Vec<Outcome>, Refused>,
}

/// Why a call was not carried out.
pub(crate) enum Refused {
    /// The server says so.
    Server(ServerError),
    /// The server says something that makes no sense.
    Nonsense(String),
}

/// Sends the batch, which is put in the order of the answers, and waits for all of them.
pub(crate) async fn exchange(
    mut connection: Connection,
    scripts: &Scripts,
    batch: &mut [Waiting],
) -> Result<Vec<Answered>, Fault> {
    let groups = groups(batch);
    let batch = &*batch;
    let requests: SmallVec<[&Request; 4]> = batch.iter().map(|waiting| &*waiting.request).collect();
    let calls: SmallVec<[_; 1]> = groups
        .iter()
        .map(|group| Sent {
            call: Call::new(scripts, &requests[group.clone()]),
            requests: group.len(),
            asking: batch[group.start].way.asking,
        })
        .collect();
    let mut replies = send(&mut connection, &calls, None).await?;
    if replies.iter().any(is_unknown_script) {
        tell_again(&mut connection, &calls, &mut replies).await?;
    }
    Ok(calls.into_iter().zip(replies).map(|(sent, reply)| sent.read(reply)).collect())
}

struct Sent<'a> {
    call: Call<'a>,
    requests: usize,
    asking: bool,
}

impl Sent<'_> {
    fn read(self, reply: Value) -> Answered {
        let outcomes = match reply {
            Value::ServerError(error) => Err(Refused::Server(error)),
            reply => match self.call.read(reply) {
                Ok(reply) if reply.outcomes.len() == self.requests => Ok(reply.outcomes),
                Ok(_) => Err(Refused::Nonsense("an answer is missing".to_owned())),
                Err(error) => Err(Refused::Nonsense(error.to_string())),
            },
        };
        Answered { requests: self.requests, outcomes }
    }
}

/// Sends calls, each with what has to go before it, and keeps the replies to the calls themselves.
async fn send(
    connection: &mut Connection,
    calls: &[Sent<'_>],
    before: Option<&[Cmd]>,
) -> Result<Vec<Value>, Fault> {
    if let ([Sent { call, asking: false, .. }], None) = (calls, before) {
        return Ok(vec![connection.send(&call.command()).await?]);
    }
    let mut pipeline = Pipeline::new();
    let mut kept = Vec::with_capacity(calls.len());
    for command in before.unwrap_or_default() {
        pipeline.add_command(command.clone());
    }
    for sent in calls {
        if sent.asking {
            pipeline.add_command(redis::cmd("ASKING"));
        }
        kept.push(pipeline.len());
        pipeline.add_command(sent.call.command());
    }
    let mut replies = connection.send_all(&pipeline).await?;
    replies.resize(pipeline.len(), Value::Nil);
    Ok(kept.into_iter().map(|at| std::mem::replace(&mut replies[at], Value::Nil)).collect())
}

/// Loads the scripts that were unknown and asks for their calls once more.
async fn tell_again(
    connection: &mut Connection,
    calls: &[Sent<'_>],
    replies: &mut [Value],
) -> Result<(), Fault> {
    for (sent, reply) in iter::zip(calls, replies).filter(|(_, reply)| is_unknown_script(reply)) {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&*sent.call.script().text);
        let again = std::slice::from_ref(sent);
        *reply = send(connection, again, Some(&[load])).await?.pop().unwrap_or(Value::Nil);
    }
    Ok(())
}

fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}

/// Puts requests of one slot together, in the order they came, and says which belong together.
fn groups(batch: &mut [Waiting]) -> SmallVec<[Range<usize>; 1]> {
    let together = |a: &Waiting, b: &Waiting| {
        !a.way.alone && !b.way.alone && (a.slot, a.way.asking) == (b.slot, b.way.asking)
    };
    if batch.windows(2).all(|two| together(&two[0], &two[1])) {
        return SmallVec::from_elem(0..batch.len(), 1);
    }
    batch.sort_by_key(|waiting| (waiting.slot, waiting.way.asking, waiting.way.alone));
    let mut groups: SmallVec<[Range<usize>; 1]> = SmallVec::new();
    for at in 0..batch.len() {
        match groups.last_mut() {
            Some(group) if together(&batch[group.start], &batch[at]) => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}
