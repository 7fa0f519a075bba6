//! The programs that are measured, and the one way of measuring them.
//!
//! What is measured runs on core 0; the load and the upstream share core 1, so that they cost
//! the other nothing but its turn. Every program has one worker, keeps its connections, and writes
//! no access log.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use tollgate_testkit::{
    cpu::{Core, cpu_time},
    load::Load,
    servers::{self, Recipe, Server, StartError},
};

use crate::rounds::{Side, skipped};

const MEASURED: Core = Core(0);
const BESIDE: Core = Core(1);
const CONNECTIONS: usize = 64;
/// A second or two of work: long against the scheduler's steps, short enough for many rounds.
const REQUESTS: u64 = 60_000;
const TIME_MAX: Duration = Duration::from_secs(60);

/// A server to be measured, under the name it is reported by.
pub(crate) type Contestant = (&'static str, Result<Server, StartError>);

/// An nginx that answers everything with 1 KB.
pub(crate) fn upstream() -> anyhow::Result<Server> {
    let config = include_str!("../peers/upstream.nginx.conf").replace("{body}", &"x".repeat(1024));
    servers::nginx(&config, Some(BESIDE)).context("the upstream must run")
}

pub(crate) fn nginx(config: &str) -> Contestant {
    ("nginx", servers::nginx(config, Some(MEASURED)))
}

pub(crate) fn haproxy(config: &str) -> Contestant {
    ("haproxy", servers::haproxy(config, Some(MEASURED)))
}

pub(crate) fn envoy(config: &str) -> Contestant {
    ("envoy", servers::envoy(config, Some(MEASURED)))
}

/// throttlecrab's own server, over HTTP only.
pub(crate) fn throttlecrab() -> Contestant {
    let recipe = Recipe {
        program: "throttlecrab-server",
        arguments: &[
            "--http",
            "--http-host",
            "127.0.0.1",
            "--http-port",
            "{port0}",
            "--log-level",
            "error",
        ],
        config_name: "unused",
        addrs: 1,
        core: Some(MEASURED),
    };
    ("throttlecrab", recipe.start(""))
}

/// Our program as `make build` leaves it.
pub(crate) fn tollgate(config: &str) -> anyhow::Result<Server> {
    let program = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/tollgate"));
    ensure!(program.is_file(), "{} is missing: run `make build`", program.display());
    servers::tollgate(&program, config, 1, Some(MEASURED)).context("tollgate must run")
}

/// A configuration with the upstream's address in it.
pub(crate) fn in_front_of(upstream: &Server, config: &str) -> String {
    let addr = upstream.addr();
    config
        .replace("{upstream}", &addr.to_string())
        .replace("{upstream_port}", &addr.port().to_string())
}

/// Those contestants that run; the others are reported as skipped.
pub(crate) fn present(
    benchmark: &str,
    contestants: impl IntoIterator<Item = Contestant>,
) -> Vec<(&'static str, Server)> {
    let mut running = Vec::new();
    for (name, started) in contestants {
        match started {
            Ok(server) => running.push((name, server)),
            Err(error) => skipped(&format!("{benchmark}-{name}"), error),
        }
    }
    running
}

/// The request that proxies get.
pub(crate) fn get_request() -> Vec<u8> {
    b"GET /bench HTTP/1.1\r\nHost: bench.invalid\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
        .to_vec()
}

/// A side of a comparison: microseconds of processor time per request of this server, all of
/// which must have the status.
pub(crate) fn cpu_side<'a>(
    name: &str,
    server: &'a Server,
    requests: &'a [Vec<u8>],
    status: u16,
) -> Side<'a> {
    Side::new(name, move || cpu_per_request(server, requests, status))
}

fn cpu_per_request(server: &Server, requests: &[Vec<u8>], status: u16) -> anyhow::Result<f64> {
    BESIDE.pin_current_thread()?;
    let load = Load {
        addr: server.addr(),
        connections: CONNECTIONS,
        requests,
        count: REQUESTS,
        time_max: TIME_MAX,
    };
    let before = cpu_time(server.process.id())?;
    let report = load.run()?;
    let used = cpu_time(server.process.id())? - before;
    let right = report.statuses.get(&status).copied().unwrap_or(0);
    // The very first request may still pass where all others are refused.
    ensure!(
        report.errors == 0 && right + 1 >= REQUESTS,
        "of {REQUESTS} requests {right} got {status}: {:?}, {} errors; the server said:\n{}",
        report.statuses,
        report.errors,
        server.process.output()
    );
    Ok(used.as_nanos() as f64 / 1_000.0 / report.answered() as f64)
}
