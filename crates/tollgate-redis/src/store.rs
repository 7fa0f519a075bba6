//! The store itself: every call becomes a request, goes its thread's way, and comes back decided.

use std::{
    fmt::Write,
    sync::{Arc, atomic::Ordering},
    thread,
};

use tokio::runtime;
use tollgate_core::{Clock, Decision, Time};
use tollgate_store::{
    Answer, Charge, Draw, Drawn, Health, Holding, Slices, Store, StoreError, SystemClock, Take,
};

use crate::{
    ErrorKind, Observer, RedisConfig, RedisStartError, RedisStats, apart, ask, background,
    base::{Base, Parts},
    call::Outcome,
    dial::Dialer,
    fault::Fault,
    heartbeat,
    request::Request,
    script::{self, Scripts},
};

/// More holdings than this go in several calls: one call must not keep the server from others.
const HOLDINGS_MAX: usize = 128;

/// Counters on Redis. See the crate for how.
pub struct RedisStore {
    base: Arc<Base>,
}

impl RedisStore {
    /// Begins to use a Redis, which need not be there yet.
    pub fn start(
        config: RedisConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Arc<Self>, RedisStartError> {
        Self::start_with_clock(config, observer, Arc::new(SystemClock::start()))
    }

    /// The same on a node whose own clock is this one. Nothing is decided by it.
    pub fn start_with_clock(
        config: RedisConfig,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, RedisStartError> {
        Self::start_in_time(config, observer, clock, &script::Clock::RedisTime)
    }

    /// The same with scripts that have the time from elsewhere.
    pub(crate) fn start_in_time(
        config: RedisConfig,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
        time: &script::Clock,
    ) -> Result<Arc<Self>, RedisStartError> {
        let dialer = Dialer::new(&config)?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RedisStartError::Thread)?;
        let background = runtime.handle().clone();
        let parts = Parts { scripts: Scripts::new(time), time, clock, observer, background };
        let base = Arc::new(Base::new(config, dialer, node_id(), parts));
        let run = background::run(Arc::clone(&base));
        thread::Builder::new()
            .name("tollgate-redis".to_owned())
            .spawn(move || runtime.block_on(run))
            .map_err(RedisStartError::Thread)?;
        Ok(Arc::new(Self { base }))
    }

    /// Whether a store could be begun with this: reads the files it names, and asks nobody.
    pub fn check(config: &RedisConfig) -> Result<(), RedisStartError> {
        Dialer::new(config).map(drop)
    }

    /// Waits until the store has answered for the first time, which may be never.
    pub async fn ready(&self) {
        // The sender lives as long as this.
        let _ = self.base.met.subscribe().wait_for(|met| *met).await;
    }

    /// Says goodbye to the fleet, so that others take over this node's share at once. The store can
    /// still be used; dropping it says goodbye too, if the process lives long enough.
    pub async fn leave(&self) {
        let base = Arc::clone(&self.base);
        let leaving = async move { heartbeat::say_goodbye(&base).await };
        // It fails only with the background thread, which says goodbye when it ends.
        let _ = self.base.background.spawn(leaving).await;
    }

    /// How the store is, for those who wait for a change.
    pub fn health(&self) -> Health {
        self.base.health.clone()
    }

    /// How many nodes live, this one included, as last seen.
    pub fn fleet_size(&self) -> usize {
        self.base.fleet.load(Ordering::Relaxed)
    }

    /// What is known of the store and the fleet on it.
    pub fn stats(&self) -> RedisStats {
        RedisStats {
            clock_offset_micros: self.base.offset.micros(),
            fleet: self.fleet_size(),
            epoch: self.base.epoch(),
        }
    }

    /// This node's name in the fleet.
    pub fn node(&self) -> &str {
        &self.base.node
    }

    /// Whether its counters lie in several slots.
    fn is_apart(&self, request: &Request) -> bool {
        self.base.topology.is_cluster() && request.slots().len() > 1
    }

    async fn take_many(&self, requests: Vec<Request>) -> Result<Vec<Decision>, StoreError> {
        let mut decisions = Vec::with_capacity(requests.len());
        if requests.iter().any(|request| self.is_apart(request)) {
            for request in requests {
                decisions.push(decided(self.ask(Box::new(request)).await?)?);
            }
            return Ok(decisions);
        }
        for pending in ask::many(&self.base, requests.into_iter().map(Box::new)).await {
            decisions.push(decided(pending.outcome().await?)?);
        }
        Ok(decisions)
    }

    async fn ask(&self, request: Box<Request>) -> Result<Outcome, Fault> {
        match self.is_apart(&request) {
            true => apart::ask(&self.base, apart::by_slot(&request)).await,
            false => ask::one(&self.base, request).await,
        }
    }

    async fn done(&self, requests: Vec<Request>) -> Result<(), StoreError> {
        for request in requests {
            self.ask(Box::new(request)).await?;
        }
        Ok(())
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.base.close();
    }
}

impl Store for RedisStore {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        let request = Box::new(Request::take(&self.base.names, take));
        Answer::Waiting(Box::pin(async move { decided(self.ask(request).await?) }))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        let request = |take: &Take<'_>| Request::take(&self.base.names, *take);
        let requests = takes.iter().map(request).collect();
        Answer::Waiting(Box::pin(self.take_many(requests)))
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        let request = Box::new(Request::refund(&self.base.names, charges));
        Answer::Waiting(Box::pin(async move { decided(self.ask(request).await?) }))
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        let request = Box::new(Request::release(&self.base.names, charges, lease));
        Answer::Waiting(Box::pin(async move { Ok(self.ask(request).await.map(drop)?) }))
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        let request = Box::new(Request::reset(&self.base.names, charges));
        Answer::Waiting(Box::pin(async move { Ok(self.ask(request).await.map(drop)?) }))
    }

    fn now(&self) -> Time {
        self.base.offset.apply(self.base.clock.now())
    }
}

impl Slices for RedisStore {
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        let request = Box::new(Request::draw(&self.base.names, &self.base.node, draw));
        Answer::Waiting(Box::pin(async move {
            match ask::one(&self.base, request).await? {
                Outcome::Drawn(drawn) => Ok(drawn),
                _ => Err(unexpected()),
            }
        }))
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        let some = |some| Request::put_back(&self.base.names, &self.base.node, some);
        let requests = holdings.chunks(HOLDINGS_MAX).map(some).collect();
        Answer::Waiting(Box::pin(self.done(requests)))
    }

    fn reassert<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        let some = |some| Request::reassert(&self.base.names, &self.base.node, some);
        let requests = holdings.chunks(HOLDINGS_MAX).map(some).collect();
        Answer::Waiting(Box::pin(self.done(requests)))
    }

    fn epoch(&self) -> u64 {
        self.base.epoch()
    }
}

fn decided(outcome: Outcome) -> Result<Decision, StoreError> {
    match outcome {
        Outcome::Decided(decision) => Ok(decision),
        Outcome::Drawn(_) | Outcome::Done => Err(unexpected()),
    }
}

fn unexpected() -> StoreError {
    Fault::new(ErrorKind::Other, "the answer to another question").into()
}

/// A name that no other node has.
fn node_id() -> Arc<str> {
    let mut bytes = [0; 8];
    // Without randomness the time still differs; two nodes of one name would share their places.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = SystemClock::start().now().as_micros().to_le_bytes();
    }
    let hex = bytes.iter().fold(String::with_capacity(16), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.into()
}

#[cfg(test)]
mod tests;
