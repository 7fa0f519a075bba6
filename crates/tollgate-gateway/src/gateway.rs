//! One worker's gateway: everything its connections share.

use std::{
    cell::{Cell, RefCell},
    net::{IpAddr, SocketAddr},
    rc::{Rc, Weak},
    sync::Arc,
};

use tokio::net::TcpStream;
use tollgate_core::Clock;
use tollgate_engine::Engine;
use tollgate_http::{ClientAddr, client_addr, limit_headers};
use tollgate_listen::{Serve, Watch};
use tollgate_rules::{ClientConfig, ForwardHeader, GatewayConfig, HeaderConfig, ResetForm, Take};
use tollgate_telemetry::{AccessLog, Metrics};

use crate::{
    connection,
    date::DateCache,
    table::Table,
    upstream::{SWEEP_EVERY, Upstreams},
    wire::buffers::Buffers,
};

/// What every worker's gateway is made from.
#[derive(Clone)]
pub struct Context {
    /// Takes the decisions.
    pub engine: Arc<Engine>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Writes a line for each request, if wanted.
    pub access_log: Option<Arc<AccessLog>>,
    /// Tells the time of day, for dates and logs.
    pub clock: Arc<dyn Clock>,
    /// Time-outs, bounds and forms.
    pub settings: Settings,
}

/// The parts of a configuration that the gateway follows.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time-outs and bounds.
    pub gateway: GatewayConfig,
    /// Whose address a request is limited by.
    pub client: ClientConfig,
    /// Which rate limit headers an answer carries.
    pub headers: HeaderConfig,
}

/// The gateway of one worker.
pub struct Gateway {
    pub(crate) context: Context,
    pub(crate) client_addr: ClientAddr,
    pub(crate) buffers: Buffers,
    pub(crate) upstreams: Upstreams,
    pub(crate) date: DateCache,
    /// Whether the last decision failed; said once, not for every request.
    pub(crate) undecided: Cell<bool>,
    table: RefCell<Rc<Table>>,
}

impl Gateway {
    /// A gateway for one worker; must be made on its thread.
    pub fn new(context: Context) -> Self {
        let upstreams = Upstreams::default();
        let rules = Arc::clone(&context.engine.rules());
        let headers = header_settings(&context.settings.headers);
        let table = Rc::new(Table::new(rules, &context.metrics, headers, &upstreams));
        Self {
            client_addr: client_addr(&context.settings.client),
            buffers: Buffers::default(),
            date: DateCache::default(),
            undecided: Cell::default(),
            table: RefCell::new(table),
            upstreams,
            context,
        }
    }

    /// What is prepared from the rules in force; a pointer is compared, and that is all unless
    /// the rules were swapped.
    pub(crate) fn table(&self) -> Rc<Table> {
        let rules = self.context.engine.rules();
        let mut table = self.table.borrow_mut();
        if !Arc::ptr_eq(&rules, &table.rules) {
            let headers = header_settings(&self.context.settings.headers);
            let metrics = &self.context.metrics;
            *table = Rc::new(Table::new(Arc::clone(&rules), metrics, headers, &self.upstreams));
            self.upstreams.retain_used();
        }
        Rc::clone(&table)
    }

    /// Begins to look after kept connections, for as long as the gateway lives.
    fn sweep(self: &Rc<Self>) {
        async fn sweep(gateway: Weak<Gateway>) {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                let Some(gateway) = gateway.upgrade() else { return };
                gateway.upstreams.sweep();
            }
        }
        if !self.upstreams.sweeping.replace(true) {
            tokio::task::spawn_local(sweep(Rc::downgrade(self)));
        }
    }

    /// The time-outs and bounds.
    pub(crate) fn config(&self) -> &GatewayConfig {
        &self.context.settings.gateway
    }

    /// Whether what this peer says about others is believed.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.client_addr.trusts(peer)
    }
}

impl Serve for Gateway {
    async fn connection(self: Rc<Self>, stream: TcpStream, peer: SocketAddr, watch: Watch) {
        self.sweep();
        connection::serve(&self, stream, peer.ip(), &watch).await;
    }
}

fn header_settings(config: &HeaderConfig) -> limit_headers::Settings {
    limit_headers::Settings {
        reset: match config.reset {
            ResetForm::Unix => limit_headers::Reset::Unix,
            ResetForm::Delta => limit_headers::Reset::Delta,
        },
        ietf: config.ietf,
        retry_after: config.retry_after,
    }
}

fn client_addr(config: &ClientConfig) -> ClientAddr {
    let source = match config.header {
        ForwardHeader::XForwardedFor => client_addr::Source::XForwardedFor,
        ForwardHeader::Forwarded => client_addr::Source::Forwarded,
    };
    let take = match config.take {
        Take::Rightmost => client_addr::Take::Rightmost,
        Take::Leftmost => client_addr::Take::Leftmost,
    };
    ClientAddr::new(&config.trusted, source, take)
}
