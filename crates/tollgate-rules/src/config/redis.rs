//! How a fleet shares its levels through Redis, and what holds while Redis is away.

use std::{path::PathBuf, time::Duration};

use super::{MemoryConfig, RedisUrl};

/// Levels in Redis or Valkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// Where it is.
    pub url: RedisUrl,
    /// What every key begins with.
    pub prefix: String,
    /// How long a decision waits for it.
    pub timeout: Duration,
    /// What holds while it does not answer.
    pub on_failure: OnFailure,
    /// Files for connections under TLS.
    pub tls: TlsFiles,
    /// How much each node remembers for the time that it must limit by itself.
    pub fallback: MemoryConfig,
}

/// What holds while the store does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Each node limits by itself, at a share of the policy.
    Local(Share),
    /// Everything passes.
    Allow,
    /// Nothing passes.
    Deny,
}

/// Which part of a policy one node gives while it limits by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// This part.
    Part {
        /// In millionths of the policy.
        millionths: u32,
    },
    /// The policy divided by the number of nodes last known.
    Fleet,
}

/// Files for TLS, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// Who vouches for the server; `None` asks the system's authorities.
    pub ca: Option<PathBuf>,
    /// Our own certificate, for a server that asks for one.
    pub cert: Option<PathBuf>,
    /// The key of our certificate.
    pub key: Option<PathBuf>,
}

impl RedisConfig {
    /// A gateway's users notice more than this; a Redis that needs longer is in trouble.
    pub(crate) const TIMEOUT: Duration = Duration::from_millis(50);
    /// What others use who keep limits in Redis.
    pub(crate) const PREFIX: &str = "ratelimit";
}

impl Default for OnFailure {
    /// Half of the policy: with two nodes the fleet's total stays what it was, and a lone client
    /// still gets enough to work with.
    fn default() -> Self {
        Self::Local(Share::default())
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::Part { millionths: 500_000 }
    }
}
