//! The addresses the program listens on, and who serves them.

use std::{io, sync::Arc, thread};

use anyhow::Result;
use tollgate_gateway::{Context, Gateway};
use tollgate_listen::{HttpServer, HttpSettings, Sockets, Workers};
use tollgate_rules::Config;
use tollgate_server::Api;

use crate::{quickstart, source::Source};

/// More connections than a decision service has clients; each costs a descriptor and a buffer.
const API_CONNECTIONS_MAX: usize = 10_000;

/// Bound sockets.
pub(crate) struct Listeners {
    gateway: Option<Sockets>,
    http: Option<Sockets>,
    workers: usize,
}

impl Listeners {
    /// Binds every address that is asked for, or none.
    pub(crate) fn bind(config: &Config) -> Result<Self> {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let workers = config.workers.unwrap_or_else(cores);
        let bind =
            |addr, most| Sockets::bind(addr, workers).map(|bound| bound.with_connections_max(most));
        let connections_max = config.gateway.max_connections;
        let gateway = config.listen.gateway.map(|addr| bind(addr, connections_max)).transpose()?;
        let http = config.listen.http.map(|addr| bind(addr, API_CONNECTIONS_MAX)).transpose()?;
        Ok(Self { gateway, http, workers })
    }

    /// Starts the threads that serve.
    pub(crate) fn serve(&self, gateway: Context, api: Arc<Api>) -> io::Result<Workers> {
        let (gateway_sockets, http_sockets) = (self.gateway.clone(), self.http.clone());
        Workers::start(self.workers, "worker", move |worker| {
            if let Some(sockets) = &gateway_sockets {
                worker.listen(sockets, Gateway::new(gateway.clone()));
            }
            if let Some(sockets) = &http_sockets {
                let service = api.service();
                worker.listen(
                    sockets,
                    HttpServer::new(HttpSettings::default(), move |_| service.clone()),
                );
            }
        })
    }

    /// Says where to go: to a newcomer at length, to an operator in the log.
    pub(crate) fn announce(&self, source: &Source) {
        if let (Source::Quickstart, Some(gateway), Some(http)) = (source, &self.gateway, &self.http)
        {
            println!("{}", quickstart::text(gateway.local_addr(), http.local_addr()));
        }
        let workers = self.workers;
        for (name, sockets) in [("gateway", &self.gateway), ("http", &self.http)] {
            if let Some(sockets) = sockets {
                tracing::info!(addr = %sockets.local_addr(), workers, "listening: {name}");
            }
        }
    }
}
