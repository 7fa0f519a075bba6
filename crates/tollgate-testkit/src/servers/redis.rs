//! One Redis server that keeps nothing, with whatever a test wants to be odd about it.

use std::{
    io,
    net::SocketAddr,
    ops::{Deref, DerefMut},
};

use super::{Recipe, Server, StartError, TlsFiles};
use crate::{
    resp_client::RespClient,
    wait::{PATIENCE, wait_until},
};

const CONFIG: &str = "\
bind 127.0.0.1
port {port0}
dir {folder}
save \"\"
appendonly no
repl-diskless-sync-delay 0
repl-ping-replica-period 1
";

const TLS: &str = "\
tls-port {port1}
tls-cert-file {folder}/server.pem
tls-key-file {folder}/server.key
tls-ca-cert-file {folder}/ca.pem
";

/// Starts an empty Redis.
pub fn redis() -> Result<Redis, StartError> {
    RedisOptions::new().start()
}

/// What is particular about a Redis.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    program: Option<&'static str>,
    password: Option<String>,
    lines: String,
    tls: bool,
    more_addrs: usize,
}

impl RedisOptions {
    /// Nothing in particular.
    pub fn new() -> Self {
        Self::default()
    }

    /// The oldest Redis that must work, 6.2; without TLS.
    pub fn oldest() -> Self {
        Self { program: Some("redis-server-6.2"), ..Self::default() }
    }

    /// Valkey in its place; without TLS.
    pub fn valkey() -> Self {
        Self { program: Some("valkey-server"), ..Self::default() }
    }

    /// One more line of configuration.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push_str(line);
        self.lines.push('\n');
        self
    }

    /// The default user needs this password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.line(&format!("requirepass {password}")).line(&format!("masterauth {password}"))
    }

    /// One more user, with what it may do: `~ratelimit:* +@all`.
    #[must_use]
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        self.line(&format!("user {name} on >{password} {rules}"))
    }

    /// A second address that speaks TLS, with certificates of its own.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self.line("tls-auth-clients no")
    }

    /// The same, for clients that have a certificate too.
    #[must_use]
    pub fn tls_with_client_certificates(mut self) -> Self {
        self.tls = true;
        self.line("tls-auth-clients yes")
    }

    /// Refuses to write beyond so many bytes.
    #[must_use]
    pub fn memory_max(self, bytes: u64) -> Self {
        self.line(&format!("maxmemory {bytes}")).line("maxmemory-policy noeviction")
    }

    /// Follows another server, and refuses to be written.
    #[must_use]
    pub fn replica_of(self, addr: SocketAddr) -> Self {
        self.line(&format!("replicaof {} {}", addr.ip(), addr.port()))
    }

    /// Allows the DEBUG command.
    #[must_use]
    pub fn debug_commands(self) -> Self {
        self.line("enable-debug-command local")
    }

    /// Further free addresses for lines that name `{port1}` and so on. Not together with TLS.
    #[must_use]
    pub(super) fn more_addrs(mut self, count: usize) -> Self {
        self.more_addrs = count;
        self
    }

    pub(super) fn program_name(&self) -> &str {
        self.program.unwrap_or("redis-server")
    }

    pub(super) fn required_password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) -> Result<Redis, StartError> {
        let recipe = Recipe {
            program: self.program_name(),
            arguments: &["{config}"],
            config_name: "redis.conf",
            addrs: 1 + usize::from(self.tls) + self.more_addrs,
            core: None,
        };
        let mut tls = None;
        let config = format!("{CONFIG}{}{}", if self.tls { TLS } else { "" }, self.lines);
        let server = recipe.start_prepared(&config, |folder| {
            if self.tls {
                tls = Some(TlsFiles::make(folder)?);
            }
            Ok(())
        })?;
        Ok(Redis { server, tls, password: self.password.clone() })
    }
}

/// A running Redis; it ends when dropped.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    tls: Option<TlsFiles>,
    password: Option<String>,
}

impl Redis {
    /// `redis://` with the default user's password.
    pub fn url(&self) -> String {
        self.url_through(self.addr())
    }

    /// The same, through a link in front of it.
    pub fn url_through(&self, addr: SocketAddr) -> String {
        match &self.password {
            Some(password) => format!("redis://:{password}@{addr}"),
            None => format!("redis://{addr}"),
        }
    }

    /// `rediss://`, if it was started with TLS.
    pub fn tls_url(&self) -> String {
        let url = self.url_through(self.addrs[1]);
        url.replacen("redis://", "rediss://", 1)
    }

    /// Its certificates, if it was started with TLS.
    pub fn tls_files(&self) -> &TlsFiles {
        self.tls.as_ref().expect("this server was started without TLS")
    }

    /// A connection as the default user.
    pub fn client(&self) -> io::Result<RespClient> {
        let mut client = RespClient::open(self.addr())?;
        if let Some(password) = &self.password {
            client.command(&["AUTH", password])?.fine();
        }
        Ok(client)
    }

    /// One command on a connection of its own, which must succeed.
    #[track_caller]
    pub fn ask(&self, command: &str) -> String {
        self.client().unwrap().ask(command).unwrap().fine().text()
    }

    /// What `INFO` says about `name`.
    pub fn info(&self, name: &str) -> Option<String> {
        let text = self.client().ok()?.ask("INFO").ok()?.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::to_owned)
    }

    /// Waits until it follows its master without a gap.
    pub fn wait_until_in_sync(&self) {
        let in_sync = || self.info("master_link_status").as_deref() == Some("up");
        wait_until(PATIENCE, in_sync).unwrap();
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Redis {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}
