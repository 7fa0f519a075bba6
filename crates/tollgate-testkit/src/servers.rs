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
mod redis_cluster;
mod redis_sentinel;
mod tls_files;
mod tollgate;

pub use self::{
    envoy::envoy,
    haproxy::haproxy,
    nginx::nginx,
    redis::{Redis, RedisOptions, redis},
    redis_cluster::{RedisCluster, SlotMove, slot_of},
    redis_sentinel::RedisSentinel,
    tls_files::TlsFiles,
    tollgate::tollgate,
};

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
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
    /// What was started, so that it can be started again.
    command: Vec<OsString>,
}

impl Server {
    /// Where it listens first.
    pub fn addr(&self) -> SocketAddr {
        self.addrs[0]
    }

    /// Stops it in the middle of whatever it does: its sockets stay open and nobody answers.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP).unwrap();
    }

    /// Lets it go on from where it was frozen.
    pub fn thaw(&self) {
        self.process.signal(Signal::CONT).unwrap();
    }

    /// Ends it as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same addresses and in the same folder; ends it before, if it runs.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.restart_without_waiting()?;
        Ok(wait_until_accepting(&mut self.process, &self.addrs)?)
    }

    /// The same, without waiting for it to accept connections.
    pub fn restart_without_waiting(&mut self) -> Result<(), StartError> {
        self.process.kill();
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        self.process = Process::start(command)?;
        Ok(())
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
        self.start_prepared(config, |_| Ok(()))
    }

    /// The same, after `prepare` has put further files into the server's folder.
    fn start_prepared(
        &self,
        config: &str,
        mut prepare: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<Server, StartError> {
        let program = find(self.program)?;
        let mut started = self.attempt(&program, config, &mut prepare);
        for _ in 1..ATTEMPTS {
            if !started.as_ref().is_err_and(port_was_taken) {
                break;
            }
            started = self.attempt(&program, config, &mut prepare);
        }
        started
    }

    /// Starts it on these addresses, for servers whose neighbours must know them beforehand.
    fn start_on(&self, addrs: Vec<SocketAddr>, config: &str) -> Result<Server, StartError> {
        self.attempt_on(addrs, &find(self.program)?, config, &mut |_| Ok(()))
    }

    fn attempt(
        &self,
        program: &Path,
        config: &str,
        prepare: &mut impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<Server, StartError> {
        self.attempt_on(free_addrs(self.addrs)?, program, config, prepare)
    }

    fn attempt_on(
        &self,
        addrs: Vec<SocketAddr>,
        program: &Path,
        config: &str,
        prepare: &mut impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<Server, StartError> {
        let folder = tempfile::Builder::new().prefix("tollgate-test-").tempdir()?;
        let path = folder.path().join(self.config_name);
        let fill = |text: &str| fill(text, &addrs, folder.path(), &path);
        fs::write(&path, fill(config))?;
        prepare(folder.path())?;
        let mut command = Command::new(program);
        command.args(self.arguments.iter().map(|argument| fill(argument)));
        if let Some(core) = self.core {
            command = core.pin(&command);
        }
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words = words.map(OsStr::to_owned).collect();
        let mut process = Process::start(command)?;
        wait_until_accepting(&mut process, &addrs)?;
        Ok(Server { addrs, process, folder, command: words })
    }
}

fn wait_until_accepting(process: &mut Process, addrs: &[SocketAddr]) -> Result<(), ProcessError> {
    process.wait_for(PATIENCE, |_| addrs.iter().all(accepts).then_some(()))
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
