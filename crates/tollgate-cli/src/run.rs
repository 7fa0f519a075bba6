//! Wiring: from a configuration to a program that serves until it is told to stop.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use tollgate_engine::{Engine, Rules};
use tollgate_gateway::{Context, Settings};
use tollgate_rules::{AccessLogFormat, Config};
use tollgate_server::{Api, ApiSettings, Readiness};
use tollgate_store::SystemClock;
use tollgate_telemetry::{AccessLog, Metrics, access_log::Format};

use crate::{
    listeners::Listeners,
    reload::{self, Fixed, Reload, Watch},
    signals::{Asked, Signals},
    source::{Read, Source},
    stores::{Opened, Stores},
};

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(source: &Source, read: Read) -> Result<()> {
    let Read { config, text } = read;
    let started = Fixed::of(&config);
    reload::tell(&config.hints);
    let metrics = Arc::new(Metrics::new());
    metrics.set_version(env!("CARGO_PKG_VERSION"));
    let clock = SystemClock::start();
    let listeners = Listeners::bind(&config)?;
    let access_log = access_log(&config, &metrics)?;
    let Opened { stores, saved } = Stores::open(&config.store, clock, &metrics)?;
    let store = stores.store();

    let settings =
        Settings { gateway: config.gateway, client: config.client, headers: config.headers };
    let rules = Rules::new(config.rules, settings.client.ipv6_prefix);
    let rules = rules.succeeding(&saved, store.now());
    let engine = Arc::new(Engine::new(store, rules).naming_leases_from(anywhere()));
    let readiness = Readiness::default();
    let api = Api::new(engine.clone(), metrics.clone(), readiness.clone(), &ApiSettings::default());
    let gateway = Context {
        engine: engine.clone(),
        metrics: metrics.clone(),
        access_log: access_log.clone(),
        clock: Arc::new(clock),
        settings,
    };

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the first line that invites a signal.
    let signals = runtime.block_on(async { Signals::catch() })?;
    // Before anybody is told that the program runs, and may change its file.
    let watch = Watch::start(source);
    runtime.block_on(stores.settle());
    let workers = listeners.serve(gateway, api)?;
    readiness.ready();
    listeners.announce(source);

    let (source, engine_of_reload) = (source.clone(), engine.clone());
    let reload =
        Reload { source, engine: engine_of_reload, metrics, access_log, seen: text, started };
    runtime.block_on(until_stopped(signals, watch, reload, &stores));

    tracing::info!("stopping: no new connections; requests in flight may finish");
    readiness.draining();
    let report = workers.stop(config.drain);
    tracing::info!(finished = report.finished, aborted = report.aborted, "connections drained");
    runtime.block_on(stores.close(&engine))
}

async fn until_stopped(mut signals: Signals, watch: Watch, mut reload: Reload, stores: &Stores) {
    let mut tending = std::pin::pin!(stores.tend());
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Stop => return,
                Asked::Reload => reload.ask(),
            },
            () = watch.worth_looking() => reload.look(),
            () = &mut tending => {}
        }
    }
}

/// A number that no other node begins at, nor near it: a caller behind a load balancer gives a place
/// back at another node than it was taken at, so their names must never be the same.
fn anywhere() -> u64 {
    RandomState::new().build_hasher().finish() >> 1
}

fn access_log(config: &Config, metrics: &Metrics) -> Result<Option<Arc<AccessLog>>> {
    let Some(wanted) = &config.access_log else { return Ok(None) };
    let format = match wanted.format {
        AccessLogFormat::Json => Format::Json,
        AccessLogFormat::Text => Format::Text,
    };
    let log = AccessLog::start(format, wanted.path.clone(), metrics.access_log_dropped.clone());
    let log = log.with_context(|| match &wanted.path {
        Some(path) => format!("cannot write the access log to {}", path.display()),
        None => "cannot write the access log".to_owned(),
    })?;
    Ok(Some(Arc::new(log)))
}
