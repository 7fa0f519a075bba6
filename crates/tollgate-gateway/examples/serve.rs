//! The gateway alone, for profiling: `serve CONFIG WORKERS`.

use std::{env, fs, sync::Arc};

use tollgate_engine::{Engine, Rules};
use tollgate_gateway::{Context, Gateway, Settings};
use tollgate_listen::{Sockets, Workers};
use tollgate_store::{MemoryConfig, MemoryStore, SystemClock};
use tollgate_telemetry::Metrics;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("which configuration?")?;
    let workers = args.next().map_or(Ok(1), |count| count.parse())?;
    let config = tollgate_rules::read(&path, &fs::read_to_string(&path)?, &|_| None)?;
    let clock = Arc::new(SystemClock::start());
    let store = Arc::new(MemoryStore::new(MemoryConfig::default(), clock.clone()));
    let rules = Rules::new(config.rules, config.client.ipv6_prefix);
    let context = Context {
        engine: Arc::new(Engine::new(store, rules)),
        metrics: Arc::new(Metrics::new()),
        access_log: None,
        clock,
        settings: Settings {
            gateway: config.gateway,
            client: config.client,
            headers: config.headers,
        },
    };
    let addr = config.listen.gateway.ok_or("no gateway listener")?;
    let sockets = Sockets::bind(addr, workers)?;
    let _workers = Workers::start(workers, "gateway", move |worker| {
        worker.listen(&sockets, Gateway::new(context.clone()));
    })?;
    loop {
        std::thread::park();
    }
}
