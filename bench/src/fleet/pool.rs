//! The peer: a pool of connections, on each one `EVALSHA` of the classic token bucket at a time.
//!
//! It has an easier life than in practice: every caller has a connection for itself, and the script
//! is given the caller's clock instead of asking Redis for its own.

use redis::{Cmd, aio::MultiplexedConnection};
use tollgate_core::{Clock, Unit};
use tollgate_store::SystemClock;

use super::{
    callers::{CALLERS, Limiter},
    server::Bench,
};

const TOKEN_BUCKET: &str = include_str!("../../peers/token_bucket.lua");
const WINDOW_LOG: &str = include_str!("../../peers/window_log.lua");
/// The prefix and policy that our keys have as well.
const NAME: &str = "ratelimit:550e8400-e29b-41d4-a716-446655440000:";

/// The numbers of a limit.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// Tokens in each of
    pub(super) rate: u64,
    /// these.
    pub(super) per: Unit,
    /// At once.
    pub(super) burst: u64,
}

/// The classic token bucket behind a pool.
pub(super) struct Pool {
    connections: Vec<MultiplexedConnection>,
    sha1: String,
    rate: f64,
    burst: u64,
    clock: SystemClock,
}

impl Pool {
    pub(super) fn open(bench: &Bench, numbers: Numbers) -> anyhow::Result<Self> {
        let connections = (0..CALLERS).map(|_| bench.connect()).collect::<Result<Vec<_>, _>>()?;
        let sha1 = load(bench, TOKEN_BUCKET)?;
        let rate = numbers.rate as f64 / numbers.per.seconds() as f64;
        Ok(Self { connections, sha1, rate, burst: numbers.burst, clock: SystemClock::start() })
    }
}

impl Limiter for Pool {
    async fn allows(&self, caller: usize, key: &[u8]) -> anyhow::Result<bool> {
        let mut connection = self.connections[caller].clone();
        let mut call = script_call(&self.sha1, key);
        call.arg(self.rate).arg(self.burst).arg(millis(self.clock)).arg(1);
        let (allowed, _remaining): (u8, i64) = call.query_async(&mut connection).await?;
        Ok(allowed == 1)
    }
}

/// The classic log of what passed.
pub(super) struct WindowLog {
    connection: MultiplexedConnection,
    sha1: String,
    limit: u64,
    window_millis: u64,
    clock: SystemClock,
}

impl WindowLog {
    pub(super) fn open(bench: &Bench, limit: u64, window_millis: u64) -> anyhow::Result<Self> {
        let connection = bench.connect()?;
        let sha1 = load(bench, WINDOW_LOG)?;
        Ok(Self { connection, sha1, limit, window_millis, clock: SystemClock::start() })
    }
}

impl Limiter for WindowLog {
    async fn allows(&self, caller: usize, key: &[u8]) -> anyhow::Result<bool> {
        let mut call = script_call(&self.sha1, key);
        let now = millis(self.clock);
        // Two requests in one millisecond must not be one: the usual way is a number behind it.
        let member = format!("{now}-{caller:02}");
        call.arg(self.limit).arg(self.window_millis).arg(now).arg(member);
        let mut connection = self.connection.clone();
        let (allowed, _remaining): (u8, i64) = call.query_async(&mut connection).await?;
        Ok(allowed == 1)
    }
}

fn load(bench: &Bench, script: &str) -> anyhow::Result<String> {
    let mut connection = bench.connect()?;
    let mut command = redis::cmd("SCRIPT");
    command.arg("LOAD").arg(script);
    Ok(bench.runtime.block_on(command.query_async(&mut connection))?)
}

fn script_call(sha1: &str, key: &[u8]) -> Cmd {
    let mut call = redis::cmd("EVALSHA");
    call.arg(sha1).arg(1).arg([NAME.as_bytes(), key].concat());
    call
}

fn millis(clock: SystemClock) -> u64 {
    clock.now().as_micros() / 1_000
}
