//! Several nodes on one store, and what an outage of it may look like from outside.
//!
//! Clients keep asking all the time. Whether the nodes count together is told by what they answer:
//! of a fresh key that may pass once, asked for at every node, exactly one request passes if they
//! do, and one at each node if each is on its own.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test file is a crate that uses its own part of this, and fails by panicking"
)]

use std::{
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tollgate_core::{Rate, Time, Unit};
use tollgate_testkit::{
    cpu::{waited_for_core, waited_for_cores},
    history::{Admission, check_bucket},
    http_client::{Connection, get, json_request},
    process::Process,
    stopwatch::Stopwatch,
    wait::{PATIENCE, wait_until},
};

use crate::support::{command, listening};

/// How long a decision waits for the store. Longer than the 50 ms of the default, so that a busy
/// machine is not taken for an outage, and still short against what is to be found out.
pub const TIMEOUT: Duration = Duration::from_millis(250);

/// The latest that an answer may come, not counting what client and node waited for a core that
/// others had: the time-out, and what an unoptimised program does before and after it. Who waited
/// twice for the store would come later.
pub const LATEST: Duration = Duration::from_millis(350);

/// How soon after the store all nodes must count together again.
pub const RETURN: Duration = Duration::from_secs(1);

/// Until the breaker opens, three calls may time out, each with all who wait at that moment.
const SLOW_MAX: usize = 3 * (CALLERS + 1);

const CALLERS: usize = 2;
const PURSE: u64 = 120;
const STEADY: u64 = 100;

const DISABLED: &str = "Distributed rate limiting disabled: Redis unavailable";
const RESTORED: &str = "Distributed rate limiting restored";

/// `wide` never refuses; `steady` is asked for more than it gives; `purse` is filled once a year, so
/// that what was given can be counted; `pair` is a purse of two limits; `ahead` is spent in slices;
/// `one` passes once.
const POLICIES: &str = "
policies:
  - {id: wide, limits: [{algorithm: token_bucket, rate: 1000000/s, burst: 1000000}]}
  - {id: steady, limits: [{algorithm: token_bucket, rate: 100/s, burst: 100}]}
  - {id: purse, limits: [{algorithm: token_bucket, rate: 120/year, burst: 120}]}
  - {id: pair, limits: [{algorithm: token_bucket, rate: 120/year, burst: 120}, {algorithm: sliding_log, rate: 1000/day}]}
  - {id: ahead, mode: leased, epsilon: 0.02, limits: [{algorithm: sliding_log, rate: 500/s}]}
  - {id: one, limits: [{algorithm: token_bucket, rate: 1/year, burst: 1}]}
";

/// One outage at a time: answers are timed, and the machine has few cores. Servers are started
/// before, while another test runs.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nodes that share a store.
pub struct Fleet {
    pub nodes: Vec<Node>,
    /// Makes keys that nobody has asked for yet.
    pub fresh_key: Box<dyn Fn(u64) -> String + Sync>,
    fresh: AtomicU64,
    watch: Stopwatch,
}

/// One running program.
pub struct Node {
    process: Process,
    http: SocketAddr,
    connection: Mutex<Connection>,
    /// How much of its output is of no interest any more.
    past: AtomicUsize,
    _folder: TempDir,
}

/// What is done to the store, and what is to be seen of it.
pub struct Outage<'a> {
    pub begin: &'a mut dyn FnMut(),
    pub end: &'a mut dyn FnMut(),
    /// What the log may name as the cause.
    pub causes: &'a [&'a str],
    /// Whether the store still knows its levels afterwards.
    pub keeps_levels: bool,
    /// Whether it lasts until it is ended, and not until others mend it.
    pub lasts: bool,
}

impl Fleet {
    /// Starts nodes on the store at `url`, and waits until they count together.
    pub fn start(nodes: usize, url: &str) -> Self {
        let fleet = Self::start_alone(nodes, &format!("url: \"{url}\""));
        wait_until(PATIENCE, || fleet.is_shared()).unwrap();
        fleet
    }

    /// Starts nodes on the store with these settings, be it there or not.
    pub fn start_alone(nodes: usize, store: &str) -> Self {
        let start = |_| Node::start(store);
        let nodes = (0..nodes).map(start).collect();
        let fresh_key = Box::new(|number| format!("fresh-{number}"));
        Self { nodes, fresh_key, fresh: AtomicU64::new(0), watch: Stopwatch::start() }
    }

    /// Whether all nodes count together.
    pub fn is_shared(&self) -> bool {
        let key = self.new_key();
        let asked = self.nodes.iter().map(|node| node.check("one", &key, 1));
        asked.filter(is_allowed).count() == 1
    }

    fn waited(&self) -> Duration {
        self.nodes.iter().map(Node::waited).sum()
    }

    /// A key that nobody has asked for yet.
    pub fn new_key(&self) -> String {
        (self.fresh_key)(self.fresh.fetch_add(1, Ordering::Relaxed))
    }

    /// How often each node has said so, since the past was forgotten.
    pub fn said(&self, text: &str) -> Vec<usize> {
        self.nodes.iter().map(|node| node.output().matches(text).count()).collect()
    }

    /// From now on only what nodes say later counts.
    pub fn forget_the_past(&self) {
        for node in &self.nodes {
            node.past.store(node.process.output().len(), Ordering::Relaxed);
        }
    }

    /// Waits until every node has said so, so many times.
    pub fn wait_until_said(&self, text: &str, times: usize) {
        let all = || self.said(text).iter().all(|said| *said >= times);
        let waited = wait_until(PATIENCE, all);
        assert!(waited.is_ok(), "not said {times} times: {text}\n{}", self.output());
    }

    /// What all nodes have logged.
    pub fn output(&self) -> String {
        let outputs = self.nodes.iter().map(Node::output);
        outputs.collect::<Vec<_>>().join("----\n")
    }

    /// No outage so far.
    pub fn assert_never_disabled(&self) {
        let none = vec![0; self.nodes.len()];
        assert_eq!(self.said(DISABLED), none, "{}", self.output());
    }

    /// Waits until every node has noticed that the store is gone.
    pub fn wait_until_disabled(&self, times: usize) {
        self.wait_until_said(DISABLED, times);
    }

    /// Waits until every node has noticed that the store is back.
    pub fn wait_until_restored(&self, times: usize) {
        self.wait_until_said(RESTORED, times);
    }

    /// Waits until every node knows of so many.
    pub fn wait_until_nodes_seen(&self, nodes: usize) {
        let knows = |node: &Node| node.metric("tollgate_store_fleet_nodes") == nodes as f64;
        let all = wait_until(PATIENCE, || self.nodes.iter().all(knows));
        assert!(all.is_ok(), "not {nodes} nodes are known: {}", self.output());
    }

    /// The shared bucket gave exactly the policy, all the time.
    #[track_caller]
    pub fn assert_never_too_many(&self, seen: &[Seen]) {
        let steady = seen.iter().filter(|one| one.steady).filter_map(Seen::admission);
        check_bucket(&steady.collect::<Vec<_>>(), Rate::per(STEADY, Unit::Second), STEADY).unwrap();
    }

    /// Each node may have been without the store for a moment, and then said so once.
    #[track_caller]
    pub fn assert_told_once_at_most(&self) {
        wait_until(PATIENCE, || self.said(DISABLED) == self.said(RESTORED)).unwrap();
        assert!(self.said(DISABLED).iter().all(|times| *times <= 1), "{}", self.output());
    }

    /// Exactly so many outages were told of, each once, as it began and as it ended.
    #[track_caller]
    pub fn assert_told(&self, times: usize) {
        let expected = vec![times; self.nodes.len()];
        assert_eq!(self.said(DISABLED), expected, "{}", self.output());
        assert_eq!(self.said(RESTORED), expected, "{}", self.output());
    }

    /// Has the fleet live through an outage with clients that never stop asking.
    #[track_caller]
    pub fn lives_through(&self, outage: &mut Outage<'_>) {
        self.forget_the_past();
        let purse = self.new_key();
        let left = self.spend_half(&purse);
        let (seen, course) = self.under_traffic(|running| {
            running.wait_for_more(100);
            let began = self.watch.elapsed();
            (outage.begin)();
            self.wait_until_disabled(1);
            let mut given = 0;
            if outage.lasts {
                running.wait_for_more(100);
                given = self.spend_locally(&purse, &left);
            }
            (outage.end)();
            let waited = self.waited();
            let returned = Stopwatch::start();
            wait_until(PATIENCE, || self.is_shared()).unwrap();
            let took = returned.elapsed();
            let waited = self.waited() - waited;
            self.wait_until_restored(1);
            let back = self.watch.elapsed();
            running.wait_for_more(100);
            Course { began, back, took, waited, given }
        });
        self.assert_told(1);
        self.assert_cause(outage.causes);
        let took = course.took.saturating_sub(course.waited);
        assert!(took <= RETURN, "back only {took:?} after the store");
        assert_in_time(&seen, self.nodes.len());
        self.assert_total(&seen, &course, outage.keeps_levels);
        // Nothing was taken from the store while it was away, and nothing forgotten.
        let rest = if outage.keeps_levels { PURSE / 2 } else { PURSE };
        assert_eq!(self.take_all("purse", &purse, PURSE + 1), rest, "left in the store");
        assert!(course.given <= self.nodes.len() as u64 * PURSE / 2, "the ceiling of the fallback");
    }

    /// Takes half of what a purse holds, at all nodes in turn; gives what each last saw.
    fn spend_half(&self, purse: &str) -> Vec<u64> {
        let each = PURSE / 2 / self.nodes.len() as u64;
        let take = |node: &Node| {
            let last = (0..each).map(|_| node.check("purse", purse, 1)).last().unwrap();
            assert!(is_allowed(&last), "{last}");
            last["remaining"].as_u64().unwrap()
        };
        self.nodes.iter().map(take).collect()
    }

    /// Without the store every node gives half of what it last saw there, and no more.
    fn spend_locally(&self, purse: &str, left: &[u64]) -> u64 {
        let give = |(node, left): (&Node, &u64)| {
            let given = (0..PURSE).filter(|_| is_allowed(&node.check("purse", purse, 1))).count();
            let given = given as u64;
            assert!(given.abs_diff(left / 2) <= 1, "{given} given of {left} last seen");
            given
        };
        self.nodes.iter().zip(left).map(give).sum()
    }

    /// Asks so often at all nodes in turn; gives how many passed.
    pub fn take_all(&self, policy: &str, key: &str, times: u64) -> u64 {
        let asked = (0..times).zip(self.nodes.iter().cycle());
        asked.filter(|(_, node)| is_allowed(&node.check(policy, key, 1))).count() as u64
    }

    /// Runs something while clients keep asking; gives what they saw.
    pub fn under_traffic<T>(&self, run: impl FnOnce(&Running<'_>) -> T) -> (Vec<Seen>, T) {
        let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
        let running = Running { fleet: self, stop: &stop, answered: &answered };
        thread::scope(|scope| {
            let call = |(turn, node)| scope.spawn(move || running.keep_asking(node, turn));
            let callers = (0..CALLERS).flat_map(|_| self.nodes.iter()).enumerate();
            let callers: Vec<_> = callers.map(call).collect();
            let result = {
                // Also when it panics: the callers would wait for it for ever.
                let _stop = StopAtEnd(&stop);
                run(&running)
            };
            let seen = callers.into_iter().flat_map(|caller| caller.join().unwrap());
            (seen.collect(), result)
        })
    }

    /// What the shared bucket may have given: exactly the policy while the store was there, and the
    /// share of each node beside it while it was not.
    fn assert_total(&self, seen: &[Seen], course: &Course, keeps_levels: bool) {
        let rate = Rate::per(STEADY, Unit::Second);
        let steady = |from: Duration, to: Duration| -> Vec<Admission> {
            let within = |one: &&Seen| one.steady && one.sent >= from && one.answered <= to;
            seen.iter().filter(within).filter_map(Seen::admission).collect()
        };
        let end = self.watch.elapsed();
        check_bucket(&steady(Duration::ZERO, course.began), rate, STEADY).unwrap();
        check_bucket(&steady(course.back, end), rate, STEADY).unwrap();
        let share = u32::try_from(self.nodes.len()).unwrap();
        let bucket = |span: Duration| STEADY as f64 * (1.0 + span.as_secs_f64());
        let stores = if keeps_levels { 1.0 } else { 2.0 };
        let ceiling = bucket(end)
            + (stores - 1.0) * STEADY as f64
            + f64::from(share) * 0.5 * bucket(course.back - course.began);
        let total = steady(Duration::ZERO, end).len();
        assert!(total as f64 <= ceiling, "{total} admitted, at most {ceiling} may be");
    }

    #[track_caller]
    fn assert_cause(&self, causes: &[&str]) {
        for node in &self.nodes {
            let output = node.output();
            let line = output.lines().rfind(|line| line.contains(DISABLED)).unwrap();
            let named = causes.iter().any(|cause| line.contains(cause));
            assert!(named, "none of {causes:?} in: {line}");
            assert!(line.contains("limiting locally at 50 % of policy"), "{line}");
        }
    }
}

/// When things happened, as the clients' watch shows it.
struct Course {
    began: Duration,
    back: Duration,
    /// How long after the store the fleet was back.
    took: Duration,
    /// How long its nodes waited for a core meanwhile.
    waited: Duration,
    /// What was given of the purse meanwhile.
    given: u64,
}

/// Nobody was left without an answer, or waited for longer than the time-out, and only the first few
/// waited for it at all.
#[track_caller]
pub fn assert_in_time(seen: &[Seen], nodes: usize) {
    let failed: Vec<_> = seen.iter().filter_map(|one| one.failed.as_ref()).collect();
    assert!(failed.is_empty(), "{} of {} failed: {:?}", failed.len(), seen.len(), failed[0]);
    let latest = seen.iter().max_by_key(|one| one.took()).unwrap();
    assert!(latest.took() <= LATEST, "an answer after {:?}: {latest:?}", latest.took());
    let slow = seen.iter().filter(|one| one.took() >= TIMEOUT * 9 / 10).count();
    assert!(slow <= SLOW_MAX * nodes, "{slow} of {} waited for a dead store", seen.len());
}

impl Node {
    fn start(store: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tollgate.yaml");
        let millis = TIMEOUT.as_millis();
        let config = format!(
            "listen: {{http: 127.0.0.1:0}}\nworkers: 1\n\
             store: {{kind: redis, timeout: {millis}ms, {store}}}\n{POLICIES}"
        );
        std::fs::write(&path, config).unwrap();
        let mut process = Process::start(command(&["run", "-c", path.to_str().unwrap()])).unwrap();
        let http = listening(&mut process, "http");
        let connection = Mutex::new(Connection::open(http).unwrap());
        Self { process, http, connection, past: AtomicUsize::new(0), _folder: folder }
    }

    /// The value of a series on its metrics page.
    pub fn metric(&self, series: &str) -> f64 {
        let page = get(self.http, "/metrics").unwrap().text();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in:\n{page}")).parse().unwrap()
    }

    /// How long it and this thread have waited for a core so far.
    fn waited(&self) -> Duration {
        waited_for_cores(self.process.id()).unwrap() + waited_for_core().unwrap()
    }

    fn output(&self) -> String {
        self.process.output().split_off(self.past.load(Ordering::Relaxed))
    }

    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// One decision.
    #[track_caller]
    pub fn check(&self, policy: &str, key: &str, cost: u64) -> Value {
        let mut connection = self.connection.lock().unwrap();
        ask(&mut connection, self.http, &check(policy, key, cost)).unwrap()
    }
}

pub fn is_allowed(answer: &Value) -> bool {
    answer["allowed"].as_bool().unwrap()
}

fn check(policy: &str, key: &str, cost: u64) -> String {
    format!(r#"{{"policy":"{policy}","key":"{key}","cost":{cost}}}"#)
}

fn ask(connection: &mut Connection, addr: SocketAddr, check: &str) -> Result<Value, String> {
    let request = json_request(addr, "/v1/check", check);
    let answer = connection.exchange(request).map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("{}: {}", answer.status, answer.text()));
    }
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}

/// One answer, as its client saw it.
#[derive(Debug)]
pub struct Seen {
    sent: Duration,
    answered: Duration,
    /// How long client and node waited for a core meanwhile.
    waited: Duration,
    allowed: bool,
    steady: bool,
    failed: Option<String>,
}

impl Seen {
    /// How long it took, not counting what nobody but the machine is to blame for.
    fn took(&self) -> Duration {
        (self.answered - self.sent).saturating_sub(self.waited)
    }

    fn admission(&self) -> Option<Admission> {
        let time = |span: Duration| Time::from_micros(u64::try_from(span.as_micros()).unwrap());
        let (sent, answered) = (time(self.sent), time(self.answered));
        self.allowed.then_some(Admission { sent, answered, cost: 1 })
    }
}

/// Clients that keep asking.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    fleet: &'a Fleet,
    stop: &'a AtomicBool,
    answered: &'a AtomicU64,
}

impl Running<'_> {
    /// Waits until so many more were answered for each client there is.
    #[track_caller]
    pub fn wait_for_more(&self, each: u64) {
        let clients = (self.fleet.nodes.len() * CALLERS) as u64;
        let until = self.answered.load(Ordering::Relaxed) + each * clients;
        wait_until(PATIENCE, || self.answered.load(Ordering::Relaxed) >= until).unwrap();
    }

    /// A few hundred requests a second: enough to be hit by every hiccup, and not so many that the
    /// machine is what hiccups.
    fn keep_asking(&self, node: &Node, turn: usize) -> Vec<Seen> {
        let mut connection = Connection::open(node.http).unwrap();
        let mut seen = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let steady = seen.len().is_multiple_of(2);
            let key = format!("{}", (seen.len() + turn * 31) % 61);
            let check = if steady { check("steady", "all", 1) } else { check("wide", &key, 1) };
            let waited = node.waited();
            let sent = self.fleet.watch.elapsed();
            let answer = ask(&mut connection, node.http, &check);
            let answered = self.fleet.watch.elapsed();
            let waited = node.waited() - waited;
            let allowed = answer.as_ref().is_ok_and(is_allowed);
            let wrong = (!steady && !allowed).then(|| format!("refused: {answer:?}"));
            let failed = answer.err().or(wrong);
            if failed.is_some() {
                connection = Connection::open(node.http).unwrap();
            }
            seen.push(Seen { sent, answered, waited, allowed, steady, failed });
            self.answered.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(Duration::from_millis(3));
        }
        seen
    }
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
