//! The whole configuration as the program uses it: every value checked, every default filled.
//!
//! Defaults stand in the `Default` of each section, each with its reason, so that a section
//! left out of a file and a section written as `{}` mean the same.

mod redis;
mod redis_url;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;

pub use self::{
    redis::{OnFailure, RedisConfig, Share, TlsFiles},
    redis_url::{RedisUrl, RedisUrlError},
};
use crate::{Mistake, RuleSet};

/// Everything one configuration asks for.
#[derive(Debug)]
pub struct Config {
    /// Which listeners to open.
    pub listen: Listen,
    /// Where levels are kept.
    pub store: StoreConfig,
    /// Time-outs and bounds of the reverse proxy.
    pub gateway: GatewayConfig,
    /// Whose address a request is limited by.
    pub client: ClientConfig,
    /// Which rate limit headers an answer carries.
    pub headers: HeaderConfig,
    /// One line per request; `None` writes none.
    pub access_log: Option<AccessLog>,
    /// Threads that serve; `None` takes one per core.
    pub workers: Option<usize>,
    /// How long requests in flight may take to finish once the program is told to stop.
    pub drain: Duration,
    /// Policies and routes.
    pub rules: RuleSet,
    /// What works, but hardly as it was meant; by line.
    pub hints: Vec<Mistake>,
}

/// Addresses to listen on; one that is not named is not opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listen {
    /// The reverse proxy.
    pub gateway: Option<SocketAddr>,
    /// Decision API, metrics and health.
    pub http: Option<SocketAddr>,
}

/// Where levels are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In this process.
    Memory(MemoryConfig),
    /// In Redis or Valkey, for a fleet to share.
    Redis(RedisConfig),
}

/// How much the memory store may hold; whichever bound comes first holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// The most keys; `None` leaves it to `max_bytes`.
    pub max_keys: Option<u64>,
    /// The most bytes; `None` leaves it to `max_keys`. One of the two is always there.
    pub max_bytes: Option<u64>,
    /// What happens to a new key at the bound.
    pub at_bound: AtBound,
    /// The file that levels are saved to on shutdown and loaded from at start.
    pub save: Option<PathBuf>,
}

/// What happens to a new key when the memory store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtBound {
    /// The key closest to full gives way.
    Evict,
    /// The new key is refused.
    Refuse,
}

/// Time-outs and bounds of the reverse proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// How long opening a connection to an upstream may take.
    pub connect_timeout: Duration,
    /// How long an upstream may take to begin its answer.
    pub response_timeout: Duration,
    /// How long a client may take to send its request head.
    pub header_timeout: Duration,
    /// How long a body may be silent, in either direction.
    pub body_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// The largest request head.
    pub max_header_bytes: usize,
    /// The largest request body; `None` sets no bound.
    pub max_body_bytes: Option<u64>,
    /// The most client connections at once.
    pub max_connections: usize,
    /// Whether `/API` is another path than `/api`.
    pub path_case_sensitive: bool,
}

/// Whose address a request is limited by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Peers whose forwarding header is believed.
    pub trusted: Vec<IpNet>,
    /// The header they write.
    pub header: ForwardHeader,
    /// Which of the header's addresses counts.
    pub take: Take,
    /// How many leading bits of an IPv6 address name one client.
    pub ipv6_prefix: u8,
}

/// The header in which proxies tell whom they speak for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Which address of a forwarding header counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The last one that is no trusted proxy.
    Rightmost,
    /// The first one, which a caller can forge unless the outermost proxy overwrites the header.
    Leftmost,
}

/// Which rate limit headers an answer carries beside the `X-RateLimit-*` triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderConfig {
    /// What `X-RateLimit-Reset` counts.
    pub reset: ResetForm,
    /// Whether `RateLimit` and `RateLimit-Policy` of the IETF draft are sent.
    pub ietf: bool,
    /// Whether a refusal also carries `X-RateLimit-Retry-After`.
    pub retry_after: bool,
}

/// What `X-RateLimit-Reset` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetForm {
    /// The instant, in seconds since 1970.
    Unix,
    /// Seconds from now.
    Delta,
}

/// One line per request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// How a line is written.
    pub format: AccessLogFormat,
    /// The file to append to; `None` writes to standard output.
    pub path: Option<PathBuf>,
}

/// How a line of the access log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// One JSON object.
    Json,
    /// One line for people.
    Text,
}

/// Long enough for a slow answer, short enough for an impatient supervisor: Kubernetes and
/// most init systems wait at least this long before they kill.
pub(crate) const DRAIN: Duration = Duration::from_secs(30);

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            max_keys: None,
            // Some ten million keys, and still only a part of the smallest usual machine.
            max_bytes: Some(512 << 20),
            // Under a flood of unique keys, evicting the fullest bucket costs its owner nothing;
            // refusing would turn away new but honest clients.
            at_bound: AtBound::Evict,
            save: None,
        }
    }
}

impl Default for StoreConfig {
    /// Nothing to install.
    fn default() -> Self {
        Self::Memory(MemoryConfig::default())
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            // One lost SYN is sent again after a second; two lost mean another upstream.
            connect_timeout: Duration::from_secs(2),
            // Longer than almost any honest answer; people have left by then.
            response_timeout: Duration::from_secs(30),
            // A head is a few packets; slower is an attack that holds connections open.
            header_timeout: Duration::from_secs(10),
            // Counts silence, not length: a large upload over a poor link still passes.
            body_timeout: Duration::from_secs(30),
            // Browsers keep theirs about as long; longer only holds descriptors.
            idle_timeout: Duration::from_secs(60),
            // Four times what browsers send with a page of cookies.
            max_header_bytes: 32 << 10,
            // Bodies stream through, so their length costs no memory here; the upstream knows.
            max_body_bytes: None,
            // A quarter of a gigabyte at worst, with buffers of some 20 KiB each.
            max_connections: 10_000,
            // RFC 3986 says so, and most upstreams agree.
            path_case_sensitive: true,
        }
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            // Whoever is not named could have invented the header.
            trusted: Vec::new(),
            // What nearly every proxy writes.
            header: ForwardHeader::XForwardedFor,
            // All left of our own proxies is whatever the caller chose to send.
            take: Take::Rightmost,
            // The smallest network one customer is given; within it addresses are free.
            ipv6_prefix: 64,
        }
    }
}

impl Default for HeaderConfig {
    fn default() -> Self {
        Self {
            // What most clients of these headers expect.
            reset: ResetForm::Unix,
            // A draft: off until asked for.
            ietf: false,
            // `Retry-After` says the same.
            retry_after: false,
        }
    }
}
