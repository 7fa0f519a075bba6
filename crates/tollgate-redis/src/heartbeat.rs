//! Saying that this node lives, and hearing how many others do.
//!
//! Every second a node writes its name and the store's time into one sorted set. The same call is
//! what probes a server: it is a script that writes, as decisions are, so a server that answers but
//! cannot decide (a replica, out of memory, still loading) is not taken for healthy. Servers of a
//! cluster that do not keep that set write a key of their own for it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use redis::{Cmd, Value};
use tokio::time::{MissedTickBehavior, interval};
use tollgate_core::Time;

use crate::{
    ErrorKind, base::Base, fault::Fault, names::slot, probe, script::Clock, server::Server,
};

const PERIOD: Duration = Duration::from_secs(1);

/// Two missed beats can be a busy machine; after three a node counts as gone.
const LIVE_MICROS: u64 = 3_000_000;

/// A node's name is kept a little longer, for an operator to see who is gone.
const KEPT_MICROS: u64 = 60_000_000;

const SCRIPT: &str = "\
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3] / 1000)
return {now, redis.call('ZCOUNT', KEYS[1], now - ARGV[2], now + ARGV[2])}
";

const PROBE: &str = "\
redis.call('SET', KEYS[1], now, 'PX', 10000)
return {now, 0}
";

const REDIS_TIME: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
";

/// Beats until this node leaves the fleet.
pub(crate) async fn keep_beating(base: Arc<Base>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if base.left.load(Ordering::Acquire) {
            return;
        }
        for (server, _) in base.topology.servers() {
            // One whose breaker is open is being probed already.
            if server.breaker.refusal().is_some() {
                continue;
            }
            let generation = server.breaker.generation();
            let beaten = match beat(&base, &server).await {
                // Somebody may have closed an idle connection; on a new one it is heard.
                Err(fault) if fault.is_lost() => beat(&base, &server).await,
                beaten => beaten,
            };
            match beaten {
                Ok(()) => {
                    server.breaker.succeed();
                    probe::check_eviction(&base, &server).await;
                }
                Err(fault) => base.failed(&server, &fault, generation),
            }
        }
    }
}

/// One beat, or where the set is kept elsewhere a probe.
pub(crate) async fn beat(base: &Arc<Base>, server: &Arc<Server>) -> Result<(), Fault> {
    let link = base.background_lane().link(server);
    let key = key(base);
    if base.topology.route(slot(key.as_bytes())).is_ok_and(|keeper| !Arc::ptr_eq(&keeper, server)) {
        let Some(key) = probe_key(base, server) else { return Ok(()) };
        return link.ask(&script(base, PROBE, &key)).await.map(drop);
    }
    let mut command = script(base, SCRIPT, &key);
    command.arg(&*base.node).arg(LIVE_MICROS).arg(KEPT_MICROS);
    let asked = base.clock.now();
    let reply = link.ask(&command).await?;
    let heard = base.clock.now();
    let Ok((there, live)) = redis::from_redis_value::<(u64, usize)>(reply) else {
        return Err(Fault::new(ErrorKind::Other, "not an answer to a heartbeat"));
    };
    base.offset.note(asked, Time::from_micros(there), heard);
    base.fleet.store(live.max(1), Ordering::Relaxed);
    base.met.send_if_modified(|met| !std::mem::replace(met, true));
    Ok(())
}

/// Says that this node is gone, so that others take over its share at once.
pub(crate) async fn say_goodbye(base: &Arc<Base>) {
    if base.left.swap(true, Ordering::AcqRel) {
        return;
    }
    let key = key(base);
    let Ok(server) = base.topology.route(slot(key.as_bytes())) else { return };
    if server.breaker.refusal().is_none() {
        let mut command = redis::cmd("ZREM");
        let _: Result<Value, _> =
            base.background_lane().link(&server).ask(command.arg(key).arg(&*base.node)).await;
    }
}

fn key(base: &Base) -> String {
    format!("{}:nodes", base.config.prefix)
}

/// A key that lies in a slot of this server.
fn probe_key(base: &Base, server: &Arc<Server>) -> Option<String> {
    let keys = (0_u32..).map(|number| format!("{}:probe:{number}", base.config.prefix));
    let here = |key: &String| {
        base.topology.route(slot(key.as_bytes())).is_ok_and(|keeper| Arc::ptr_eq(&keeper, server))
    };
    keys.take(PROBE_TRIES).find(here)
}

/// Enough to hit a server that keeps one slot in a thousand.
const PROBE_TRIES: usize = 16_384;

fn script(base: &Base, text: &str, key: &str) -> Cmd {
    let clock = match &base.time {
        Clock::Key(name) => format!("local now = tonumber(redis.call('GET', '{name}'))\n"),
        Clock::RedisTime => REDIS_TIME.to_owned(),
    };
    let mut command = redis::cmd("EVAL");
    command.arg(clock + text).arg(1).arg(key);
    command
}
