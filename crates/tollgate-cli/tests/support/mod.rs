//! The built program, run as a user would.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test file is a crate that uses its own part of this, and fails by panicking"
)]

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tollgate_testkit::{
    http_client::{Response, exchange, post_json},
    process::Process,
    wait::PATIENCE,
};

/// A running `tollgate` with its configuration in a folder of its own.
pub struct Tollgate {
    pub process: Process,
    pub gateway: SocketAddr,
    pub http: SocketAddr,
    pub folder: TempDir,
}

/// A policy called `p` with these limits on the echo at `/`, and both listeners.
pub fn config(limits: &str) -> String {
    config_with(limits, "", "")
}

/// The same with more lines in the policy, and more sections.
pub fn config_with(limits: &str, policy: &str, more: &str) -> String {
    format!(
        "listen: {{gateway: 127.0.0.1:0, http: 127.0.0.1:0}}\n\
         policies:\n  - id: p\n    limits: [{limits}]\n{policy}\
         routes:\n  - id: 550e8400-e29b-41d4-a716-446655440000\n    path: /\n    \
         upstreams: [\"builtin:echo\"]\n    policies: [p]\n{more}"
    )
}

impl Tollgate {
    /// Starts it and waits until it listens.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, config)
    }

    pub fn start_in(folder: TempDir, config: &str) -> Self {
        let path = folder.path().join("tollgate.yaml");
        std::fs::write(&path, config).unwrap();
        let mut process = Process::start(command(&["run", "-c", path.to_str().unwrap()])).unwrap();
        let gateway = listening(&mut process, "gateway");
        let http = listening(&mut process, "http");
        Self { process, gateway, http, folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("tollgate.yaml")
    }

    /// Replaces the configuration as an editor does: beside, then by renaming.
    pub fn rewrite(&self, config: &str) {
        let beside = self.folder.path().join("tollgate.yaml.new");
        std::fs::write(&beside, config).unwrap();
        std::fs::rename(beside, self.path()).unwrap();
    }

    pub fn wait_for(&mut self, text: &str) {
        self.process.wait_for_output(PATIENCE, text).unwrap();
    }

    /// A GET through the gateway.
    pub fn get(&self, path: &str) -> Response {
        self.get_with(path, "")
    }

    /// The same with more header lines, each ended by `\r\n`.
    pub fn get_with(&self, path: &str, lines: &str) -> Response {
        exchange(self.gateway, format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n"))
            .unwrap()
    }

    /// The status of so many requests, one after the other.
    pub fn statuses(&self, count: usize) -> Vec<u16> {
        (0..count).map(|_| self.get("/").status).collect()
    }

    pub fn check(&self, key: &str, cost: u64) -> Value {
        let body = format!(r#"{{"policy":"p","key":"{key}","cost":{cost}}}"#);
        let answer = post_json(self.http, "/v1/check", &body).unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub fn metrics(&self) -> String {
        tollgate_testkit::http_client::get(self.http, "/metrics").unwrap().text()
    }

    /// Asks it to stop, waits, and returns its exit code.
    pub fn stop(mut self) -> (Option<i32>, String, TempDir) {
        self.process.signal(rustix::process::Signal::TERM).unwrap();
        let status = self.process.wait_for_end(PATIENCE).unwrap();
        (status.code(), self.process.output(), self.folder)
    }
}

/// The address in the line that says what is listened on.
pub fn listening(process: &mut Process, name: &str) -> SocketAddr {
    let line = format!("listening: {name} addr=");
    let found = |process: &Process| {
        let output = process.output();
        let addr = output.split_once(&line)?.1.split_whitespace().next()?;
        // The rest of the line may still be on its way.
        output.split_once(&line)?.1.contains(' ').then(|| addr.parse().unwrap())
    };
    process.wait_for(Duration::from_secs(20), found).unwrap()
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("TOLLGATE_LOG");
    // The documentation shows a password where it belongs, in the environment.
    command.env("REDIS_PASSWORD", "secret");
    command
}

/// Runs it to its end: exit code, standard output, standard error.
pub fn finish(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

pub fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("tollgate.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
