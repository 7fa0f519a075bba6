//! The endpoints that decide: check, batch, acquire, refund.

use std::{sync::Arc, time::Duration};

use arc_swap::Guard;
use bytes::Bytes;
use http_body::Body;
use tokio::time::Instant;

use super::{
    Api, body,
    input::{self, Ask, BodyError, Form},
    output::{ANSWER_BYTES, push_outcome, push_waited},
    prepared::{Prepared, PreparedPolicy, count},
    reply::{Failure, Reply, shortened},
};

/// A question is a few hundred bytes; a key alone can have 4 KiB, and 24 when all is escaped.
const BODY_BYTES_MAX: usize = 64 << 10;

/// A thousand questions of a kilobyte.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Mistakes shown of one batch: the next ones are likely the same.
const MISTAKES_SHOWN: usize = 5;

/// What a caller waits that does not say so: as long as a sidecar does.
const MAX_WAIT_MS_DEFAULT: u64 = 2_000;

impl Api {
    /// The fast path: what is asked before everything else.
    pub(super) async fn check<B>(&self, body: B) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = body::read(body, BODY_BYTES_MAX).await?;
        let ask = input::ask(Form::Check, &body)?;
        let prepared = self.prepared();
        let policy = find(&prepared, &ask)?;
        let mut out = Vec::with_capacity(ANSWER_BYTES);
        self.decide(&prepared, policy, &ask, &policy.check, &mut out).await?;
        Ok(Reply::json(out))
    }

    pub(super) async fn batch<B>(&self, body: B) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = body::read(body, BATCH_BYTES_MAX).await?;
        let checks = input::batch(&body)?;
        let prepared = Guard::into_inner(self.prepared());
        let policies = find_all(&prepared, &checks)?;
        let mut out = Vec::with_capacity(32 + checks.len() * ANSWER_BYTES);
        out.extend_from_slice(b"{\"results\":[");
        let started = Instant::now();
        let asks: Vec<_> = checks
            .iter()
            .zip(&policies)
            .map(|(ask, policy)| (policy.index, ask.key.as_bytes(), ask.cost()))
            .collect();
        let outcomes = self.engine.check_each(&prepared.rules, &asks).await?;
        self.metrics.decision_duration.observe(started.elapsed());
        for (at, ((ask, policy), outcome)) in checks.iter().zip(policies).zip(outcomes).enumerate()
        {
            if at > 0 {
                out.push(b',');
            }
            count(&policy.batch, ask.cost(), &outcome);
            push_outcome(&mut out, policy, outcome);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Ok(Reply::json(out))
    }

    async fn decide(
        &self,
        prepared: &Prepared,
        policy: &PreparedPolicy,
        ask: &Ask<'_>,
        metrics: &tollgate_telemetry::PolicyMetrics,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let (rules, key) = (&prepared.rules, ask.key.as_bytes());
        let outcome = self.engine.check_under(rules, policy.index, key, ask.cost()).await?;
        self.metrics.decision_duration.observe(started.elapsed());
        count(metrics, ask.cost(), &outcome);
        push_outcome(out, policy, outcome);
        out.push(b'}');
        Ok(())
    }

    /// Waits for the caller's turn. When the caller hangs up, this future is dropped, and with it
    /// the place in the queue or the lease.
    pub(super) async fn acquire<B>(&self, body: B) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = body::read(body, BODY_BYTES_MAX).await?;
        let ask = input::ask(Form::Acquire, &body)?;
        let prepared = Guard::into_inner(self.prepared());
        let policy = find(&prepared, &ask)?;
        let Some(_place) = self.waiters.enter() else {
            return Err(Failure::busy("Too many callers are waiting for their turn already."));
        };
        let max_wait = Duration::from_millis(ask.max_wait_ms.unwrap_or(MAX_WAIT_MS_DEFAULT));
        let turn = self.engine.acquire(&ask.policy, ask.key.as_bytes(), ask.cost(), max_wait);
        let (outcome, waited) = turn.await?;
        count(&policy.acquire, ask.cost(), &outcome);
        let mut out = Vec::with_capacity(ANSWER_BYTES);
        push_outcome(&mut out, policy, outcome);
        push_waited(&mut out, waited);
        out.push(b'}');
        Ok(Reply::json(out))
    }

    pub(super) async fn refund<B>(&self, body: B) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = body::read(body, BODY_BYTES_MAX).await?;
        let ask = input::ask(Form::Refund, &body)?;
        let prepared: Arc<Prepared> = Guard::into_inner(self.prepared());
        let policy = find(&prepared, &ask)?;
        let (id, key) = (&*ask.policy, ask.key.as_bytes());
        let outcome = match (ask.lease, ask.cost) {
            (None, _) => self.engine.refund(id, key, ask.cost()).await?,
            (Some(lease), None) => {
                self.engine.release(id, key, lease).await?;
                self.engine.refund(id, key, 0).await?
            }
            (Some(_), Some(_)) => {
                return Err(Failure::bad(
                    "The body has both `cost` and `lease`: a lease is given back whole.",
                ));
            }
        };
        let mut out = Vec::with_capacity(ANSWER_BYTES);
        push_outcome(&mut out, policy, outcome);
        out.push(b'}');
        Ok(Reply::json(out))
    }
}

fn find<'a>(prepared: &'a Prepared, ask: &Ask<'_>) -> Result<&'a PreparedPolicy, Failure> {
    prepared.policy(&ask.policy).ok_or_else(|| Failure::no_policy(&ask.policy))
}

/// The policies of all checks, or what is wrong with them: nothing is decided of a batch with a
/// mistake, so that it can be sent again as a whole.
fn find_all<'a>(
    prepared: &'a Prepared,
    checks: &[Ask<'_>],
) -> Result<Vec<&'a PreparedPolicy>, Failure> {
    let found: Vec<_> = checks.iter().map(|ask| prepared.policy(&ask.policy)).collect();
    let unknown = found.iter().zip(checks).enumerate().filter(|(_, (found, _))| found.is_none());
    let mistakes: Vec<_> = unknown
        .take(MISTAKES_SHOWN)
        .map(|(at, (_, ask))| {
            format!("checks[{at}]: there is no policy {:?}", shortened(&ask.policy))
        })
        .collect();
    if mistakes.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    Err(Failure::bad(format!("Nothing was decided. {}.", mistakes.join("; "))))
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        Self::bad(error.to_string())
    }
}
