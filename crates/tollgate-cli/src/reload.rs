//! Putting a changed configuration in force while the program runs.
//!
//! The folder of the file is watched rather than the file, because editors and Kubernetes replace
//! files by renaming. Events only say that it is worth looking: what counts is whether the text
//! differs from the last one looked at. Policies and routes change at once; the rest is read at
//! start, and a change there is answered with a warning instead of silence.

use std::{path::PathBuf, sync::Arc, time::Duration};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tollgate_engine::{Engine, Rules};
use tollgate_rules::{Config, Mistake, StoreConfig};
use tollgate_telemetry::{AccessLog, Metrics};

use crate::source::Source;

/// A writer that is still at it writes again within this time.
const SETTLED: Duration = Duration::from_millis(50);

/// Some file systems send no events: then a change is seen this late.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Watches the folder of the configuration for as long as it lives.
pub(crate) struct Watch {
    changed: Arc<Notify>,
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Begins to watch; where that is not possible changes are still seen, only later.
    pub(crate) fn start(source: &Source) -> Self {
        let changed = Arc::new(Notify::new());
        // What changed between the first reading and now sent nobody an event.
        changed.notify_one();
        let watcher = source.path().map(|path| watcher(path.to_owned(), changed.clone()));
        let watcher = watcher.transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot watch the configuration; looking every two seconds instead");
            None
        });
        Self { changed, _watcher: watcher }
    }

    /// Waits until it is worth looking.
    pub(crate) async fn worth_looking(&self) {
        if tokio::time::timeout(LOOK_EVERY, self.changed.notified()).await.is_ok() {
            tokio::time::sleep(SETTLED).await;
        }
    }
}

fn watcher(path: PathBuf, changed: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            changed.notify_one();
        }
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    watcher.watch(folder.unwrap_or(std::path::Path::new(".")), RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Everything a reload touches.
pub(crate) struct Reload {
    pub(crate) source: Source,
    pub(crate) engine: Arc<Engine>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// The text last looked at, good or not: a mistake is told once.
    pub(crate) seen: String,
    /// What was read at start and holds until the next one.
    pub(crate) started: Fixed,
}

/// The parts of a configuration that only a start can change. Not to be shown: it may hold a
/// password.
#[derive(PartialEq)]
pub(crate) struct Fixed(String);

impl Fixed {
    /// Taken from a configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let Config {
            listen,
            store,
            gateway,
            client,
            headers,
            access_log,
            workers,
            drain,
            rules: _,
            hints: _,
        } = config;
        let url = match store {
            StoreConfig::Redis(redis) => redis.url.reveal(),
            StoreConfig::Memory(_) => "",
        };
        Self(format!(
            "{listen:?}{store:?}{url}{gateway:?}{client:?}{headers:?}{access_log:?}{workers:?}{drain:?}"
        ))
    }
}

/// Says what works, but hardly as it was meant.
pub(crate) fn tell(hints: &[Mistake]) {
    for hint in hints {
        tracing::warn!("{hint}");
    }
}

impl Reload {
    /// Looks at the file, and puts it in force if it has changed and is good.
    pub(crate) fn look(&mut self) {
        match self.source.text() {
            Ok(text) if text == self.seen => {}
            Ok(text) => self.apply(text),
            // Between a rename and the next the file may be gone for a moment.
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// Reads the file whether it has changed or not, as SIGHUP asks, and opens the log anew.
    pub(crate) fn ask(&mut self) {
        if let Some(log) = &self.access_log {
            log.reopen();
        }
        match self.source.text() {
            Ok(text) => self.apply(text),
            Err(error) => {
                self.metrics.config_reloads.failed.inc();
                tracing::error!(
                    "configuration not reloaded, the last good one stays in force: {error}"
                );
            }
        }
    }

    fn apply(&mut self, text: String) {
        match self.source.parse(&text) {
            Ok(config) => {
                tell(&config.hints);
                if Fixed::of(&config) != self.started {
                    tracing::warn!(
                        "only policies and routes are changed while running; the rest of the configuration \
                         takes effect with the next start"
                    );
                }
                let ipv6_prefix = self.engine.rules().ipv6_prefix();
                let (policies, routes) =
                    (config.rules.policies().len(), config.rules.routes().len());
                self.engine.replace(Rules::new(config.rules, ipv6_prefix));
                self.metrics.config_reloads.ok.inc();
                tracing::info!(policies, routes, "configuration reloaded");
            }
            Err(error) => {
                self.metrics.config_reloads.failed.inc();
                tracing::error!(
                    "configuration not reloaded, the last good one stays in force:\n{error}"
                );
            }
        }
        self.seen = text;
    }
}
