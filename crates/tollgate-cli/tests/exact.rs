//! Never one too many: four programs, a million decisions, the same keys everywhere.
//!
//! Most keys hold a number that does not grow back while the test runs, so that what passes can
//! be counted to the last one; those that do grow back are judged by the history checker.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod support;

use std::{collections::HashMap, net::SocketAddr, thread, time::Duration};

use support::{command, listening};
use tempfile::TempDir;
use tollgate_core::{Rate, Time, Unit};
use tollgate_testkit::{
    history::{Admission, check_bucket, check_window},
    http_client::{Connection, json_request},
    process::Process,
    servers::redis,
    stopwatch::Stopwatch,
};

const NODES: usize = 4;
/// Each node is asked by two clients at once, so that decisions share calls within it, too.
const CALLERS: usize = 2;
const BATCHES: usize = 125;

/// Policies whose keys pass `HELD` times, with so many keys each.
const HOLDING: [&str; 5] = ["bucket", "window", "log", "counter", "strict"];
const HOLDING_KEYS: usize = 160;
const HELD: usize = 500;

/// Policies that grow back: so many a second, from a few keys.
const ROLLING: [&str; 3] = ["rolling_bucket", "rolling_log", "rolling_strict"];
const ROLLING_KEYS: usize = 2;
const ROLLING_RATE: u64 = 50;
/// So often between two batches.
const ROLLING_TURNS: usize = 17;

const POLICIES: &str = "
policies:
  - {id: bucket, limits: [{algorithm: token_bucket, rate: 500/year, burst: 500}]}
  - {id: window, limits: [{algorithm: fixed_window, rate: 500/year}]}
  - {id: log, limits: [{algorithm: sliding_log, rate: 500/day}]}
  - {id: counter, limits: [{algorithm: sliding_counter, rate: 500/day}]}
  - {id: strict, limits: [{algorithm: sliding_window, rate: 500/day}]}
  - {id: once, limits: [{algorithm: token_bucket, rate: 1/year, burst: 1}]}
  - {id: rolling_bucket, limits: [{algorithm: token_bucket, rate: 50/s, burst: 50}]}
  - {id: rolling_log, limits: [{algorithm: sliding_log, rate: 50/s}]}
  - {id: rolling_strict, limits: [{algorithm: sliding_window, rate: 50/s}]}
";

struct Node {
    process: Process,
    http: SocketAddr,
    _folder: TempDir,
}

fn start(url: &str) -> Node {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.yaml");
    // Nothing may be decided by the fallback: an answer that never comes would show.
    let text = format!(
        "listen: {{http: 127.0.0.1:0}}\nworkers: 1\n\
         store: {{kind: redis, url: \"{url}\", timeout: 20s, on_failure: {{mode: allow}}}}{POLICIES}"
    );
    std::fs::write(&path, text).unwrap();
    let mut process = Process::start(command(&["run", "-c", path.to_str().unwrap()])).unwrap();
    let http = listening(&mut process, "http");
    Node { process, http, _folder: folder }
}

/// What a batch asks for: all held keys, and some that pass once.
fn asked_in(batch: usize) -> Vec<(&'static str, String)> {
    let held = HOLDING
        .iter()
        .flat_map(|policy| (0..HOLDING_KEYS).map(move |key| (*policy, key.to_string())));
    let once = (0..100).map(|key| ("once", format!("{batch}-{key}")));
    held.chain(once).collect()
}

/// All rolling keys, so few at once that it is known quite well when each was decided.
fn rolling() -> Vec<(&'static str, String)> {
    let keys = |policy| (0..ROLLING_KEYS).map(move |key: usize| (policy, key.to_string()));
    ROLLING.into_iter().flat_map(keys).collect()
}

fn body(asked: &[(&str, String)]) -> String {
    let checks =
        asked.iter().map(|(policy, key)| format!(r#"{{"policy":"{policy}","key":"{key}"}}"#));
    format!(r#"{{"checks":[{}]}}"#, checks.collect::<Vec<_>>().join(","))
}

/// Whether each of a batch may pass. Read by hand: a million answers are much to parse.
fn verdicts(text: &str) -> Vec<bool> {
    text.split(r#""allowed":"#).skip(1).map(|rest| rest.starts_with("true")).collect()
}

type Passed = HashMap<(&'static str, String), Vec<Admission>>;

fn call(addr: SocketAddr, caller: usize, watch: Stopwatch) -> Passed {
    let mut passed = Passed::new();
    let mut connection = Connection::open(addr).unwrap();
    // Everybody goes through the same batches; the two clients of a node from different ends.
    for turn in 0..BATCHES {
        let batch = if caller.is_multiple_of(2) { turn } else { BATCHES - 1 - turn };
        ask(&mut connection, addr, asked_in(batch), watch, &mut passed);
        for _ in 0..ROLLING_TURNS {
            ask(&mut connection, addr, rolling(), watch, &mut passed);
        }
    }
    passed
}

fn ask(
    connection: &mut Connection,
    addr: SocketAddr,
    asked: Vec<(&'static str, String)>,
    watch: Stopwatch,
    passed: &mut Passed,
) {
    let request = json_request(addr, "/v1/check/batch", &body(&asked));
    let sent = now(watch);
    let answer = connection.exchange(request).unwrap();
    let answered = now(watch);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let verdicts = verdicts(&answer.text());
    assert_eq!(verdicts.len(), asked.len());
    for (key, _) in asked.into_iter().zip(verdicts).filter(|(_, allowed)| *allowed) {
        passed.entry(key).or_default().push(Admission { sent, answered, cost: 1 });
    }
}

fn now(watch: Stopwatch) -> Time {
    Time::from_micros(u64::try_from(watch.elapsed().as_micros()).unwrap())
}

fn passed_everywhere(nodes: &[Node]) -> Passed {
    let watch = Stopwatch::start();
    let addrs = nodes.iter().flat_map(|node| [node.http; CALLERS]).enumerate();
    let all: Vec<Passed> = thread::scope(|scope| {
        let callers: Vec<_> =
            addrs.map(|(caller, addr)| scope.spawn(move || call(addr, caller, watch))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let mut passed = Passed::new();
    for (key, admissions) in all.into_iter().flatten() {
        passed.entry(key).or_default().extend(admissions);
    }
    passed
}

fn judge(passed: &Passed) {
    let count = |policy, key: String| passed.get(&(policy, key)).map_or(0, Vec::len);
    for policy in HOLDING {
        for key in 0..HOLDING_KEYS {
            assert_eq!(count(policy, key.to_string()), HELD, "{policy} {key}");
        }
    }
    for batch in 0..BATCHES {
        for key in 0..100 {
            assert_eq!(count("once", format!("{batch}-{key}")), 1, "once {batch}-{key}");
        }
    }
    for policy in ROLLING {
        for key in 0..ROLLING_KEYS {
            let admissions = &passed[&(policy, key.to_string())];
            assert!(admissions.len() as u64 > ROLLING_RATE, "{policy} never grew back");
            let checked = match policy {
                "rolling_bucket" => {
                    check_bucket(admissions, Rate::per(ROLLING_RATE, Unit::Second), ROLLING_RATE)
                }
                _ => check_window(admissions, Duration::from_secs(1), ROLLING_RATE),
            };
            checked.unwrap_or_else(|violation| panic!("{policy} {key}: {violation:?}"));
        }
    }
}

// covers: B9
#[test]
fn a_million_decisions_of_four_nodes_are_never_one_too_many() {
    let each = asked_in(0).len() + ROLLING_TURNS * rolling().len();
    assert!(NODES * CALLERS * BATCHES * each >= 1_000_000);
    let server = redis().unwrap();
    let nodes: Vec<_> = (0..NODES).map(|_| start(&server.url())).collect();
    judge(&passed_everywhere(&nodes));
    for node in &nodes {
        let output = node.process.output();
        assert!(!output.contains("Distributed rate limiting disabled"), "{output}");
    }
}
