//! The Redis that both sides ask.

use std::time::Duration;

use anyhow::Context;
use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use tokio::runtime::Runtime;
use tollgate_testkit::{
    cpu::{Core, cpu_time},
    servers::{Recipe, Server, StartError},
};

use crate::rounds::skipped;

const MEASURED: Core = Core(0);
const BESIDE: Core = Core(1);
/// Longer than any pause of a shared machine: a round must not end because of one.
const PATIENCE: Duration = Duration::from_secs(5);
const CONFIG: &str = "\
bind 127.0.0.1
port {port0}
dir {folder}
save \"\"
appendonly no
";

/// A Redis on its own core, and the runtime of those who ask it.
pub(super) struct Bench {
    pub(super) runtime: Runtime,
    redis: Server,
}

impl Bench {
    /// Nothing, after saying so, where there is no Redis on this machine.
    pub(super) fn start(benchmark: &str) -> anyhow::Result<Option<Self>> {
        let recipe = Recipe {
            program: "redis-server",
            arguments: &["{config}"],
            config_name: "redis.conf",
            addrs: 1,
            core: Some(MEASURED),
        };
        let redis = match recipe.start(CONFIG) {
            Err(error @ StartError::NotInstalled(_)) => {
                skipped(benchmark, error);
                return Ok(None);
            }
            started => started.context("redis must run")?,
        };
        // Threads that are started from here on stay on this core as well.
        BESIDE.pin_current_thread()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Some(Self { runtime, redis }))
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.redis.addr())
    }

    /// A connection of redis-rs.
    pub(super) fn connect(&self) -> anyhow::Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let client = Client::open(self.url())?;
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        Ok(self.runtime.block_on(connecting)?)
    }

    /// The processor time that Redis has used so far.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        Ok(cpu_time(self.redis.process.id())?)
    }
}
