//! Real servers on loopback, for as long as a test or a benchmark needs them.
//!
//! Each is a recipe: a program, its arguments and a configuration with places for free addresses.
//! The configuration lives in a folder of its own that goes away with the server. A port that
//! somebody else took in the meantime is the one thing that goes wrong by chance; then the server
//! is started again on others.

mod envoy;
mod haproxy;
mod nginx;
mod redis;
mod tollgate;

pub use self::{envoy::envoy, haproxy::haproxy, nginx::nginx, redis::redis, tollgate::tollgate};

use std::{
    env, fs, io,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    cpu::Core,
    ports::free_addrs,
    process::{Process, ProcessError},
    wait::PATIENCE,
};

const ATTEMPTS: usize = 3;

/// A server that answers on loopback; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it listens, in the order of the recipe.
    pub addrs: Vec<SocketAddr>,
    /// The program behind it.
    pub process: Process,
    /// Its configuration and whatever it writes.
    pub folder: TempDir,
}

impl Server {
    /// Where it listens first.
    pub fn addr(&self) -> SocketAddr {
        self.addrs[0]
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program is not on this machine.
    #[error("{0} is not installed; `scripts/install-tools test bench` installs it")]
    NotInstalled(String),
    /// Its folder or its ports could not be had.
    #[error("no folder or port for the server: {0}")]
    Place(#[from] io::Error),
    /// It ended, or never answered.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// How to start a server. In `arguments` and the configuration, `{addr0}`, `{port0}`, `{addr1}` …
/// stand for free addresses, `{folder}` for the server's own folder, `{config}` for the
/// configuration's path.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The program's name, or its path.
    pub program: &'a str,
    /// What it is called with.
    pub arguments: &'a [&'a str],
    /// How the configuration is named in its folder.
    pub config_name: &'a str,
    /// How many addresses it listens on.
    pub addrs: usize,
    /// The core it is kept on, if any.
    pub core: Option<Core>,
}

impl Recipe<'_> {
    /// Starts the server and waits until it accepts connections on every address.
    pub fn start(&self, config: &str) -> Result<Server, StartError> {
        let program = find(self.program)?;
        let mut started = self.attempt(&program, config);
        for _ in 1..ATTEMPTS {
            if !started.as_ref().is_err_and(port_was_taken) {
                break;
            }
            started = self.attempt(&program, config);
        }
        started
    }

    fn attempt(&self, program: &Path, config: &str) -> Result<Server, StartError> {
        let addrs = free_addrs(self.addrs)?;
        let folder = tempfile::Builder::new().prefix("tollgate-test-").tempdir()?;
        let path = folder.path().join(self.config_name);
        let fill = |text: &str| fill(text, &addrs, folder.path(), &path);
        fs::write(&path, fill(config))?;
        let mut command = Command::new(program);
        command.args(self.arguments.iter().map(|argument| fill(argument)));
        if let Some(core) = self.core {
            command = core.pin(&command);
        }
        let mut process = Process::start(command)?;
        process.wait_for(PATIENCE, |_| addrs.iter().all(accepts).then_some(()))?;
        Ok(Server { addrs, process, folder })
    }
}

fn fill(text: &str, addrs: &[SocketAddr], folder: &Path, config: &Path) -> String {
    let mut text = text
        .replace("{folder}", &folder.to_string_lossy())
        .replace("{config}", &config.to_string_lossy());
    for (index, addr) in addrs.iter().enumerate() {
        text = text.replace(&format!("{{addr{index}}}"), &addr.to_string());
        text = text.replace(&format!("{{port{index}}}"), &addr.port().to_string());
    }
    text
}

fn accepts(addr: &SocketAddr) -> bool {
    TcpStream::connect(addr).is_ok()
}

fn port_was_taken(error: &StartError) -> bool {
    let text = error.to_string().to_lowercase();
    text.contains("address already in use") || text.contains("cannot bind")
}

/// Debian keeps servers in sbin, which is not on everybody's path; our own tools are in .tools.
fn find(program: &str) -> Result<PathBuf, StartError> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([tools, "/usr/sbin".into(), "/sbin".into()]);
    let mut places = folders.map(|folder| folder.join(program));
    places.find(|place| place.is_file()).ok_or_else(|| StartError::NotInstalled(program.to_owned()))
}
