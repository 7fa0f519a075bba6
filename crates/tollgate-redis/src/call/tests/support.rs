//! A server, its scripts, and a clock that the test sets.

use redis::{Cmd, Connection, Value};
use tollgate_core::{Decision, Limit, Time};
use tollgate_store::{Charge, NamedLimit, Take};
use tollgate_testkit::servers;

use crate::{
    call::{Call, Outcome},
    names::Names,
    request::Request,
    script::{Clock, Scripts},
};

const CLOCK: &str = "clock";

pub(super) struct Redis {
    connection: Connection,
    scripts: Scripts,
    pub(super) names: Names,
    now: u64,
    _server: servers::Redis,
}

impl Redis {
    /// An empty server; it is midday on a day in November.
    pub(super) fn start() -> Self {
        Self::on(servers::redis().unwrap())
    }

    /// The same on a server of another make.
    pub(super) fn on(server: servers::Redis) -> Self {
        let client = redis::Client::open(format!("redis://{}", server.addr())).unwrap();
        let mut redis = Self {
            connection: client.get_connection().unwrap(),
            scripts: Scripts::new(&Clock::Key(CLOCK.to_owned())),
            names: Names::new("rl", false),
            now: 0,
            _server: server,
        };
        redis.set(Time::from_secs(1_794_830_400));
        redis
    }

    /// The same by the server's own clock.
    pub(super) fn in_real_time(mut self) -> Self {
        self.scripts = Scripts::new(&Clock::RedisTime);
        self
    }

    pub(super) fn now(&self) -> Time {
        Time::from_micros(self.now)
    }

    pub(super) fn set(&mut self, now: Time) {
        self.now = now.as_micros();
        let _: Value = self.ask(redis::cmd("SET").arg(CLOCK).arg(self.now));
    }

    pub(super) fn pass(&mut self, micros: u64) {
        self.set(Time::from_micros(self.now + micros));
    }

    pub(super) fn ask<T: redis::FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query(&mut self.connection).unwrap()
    }

    /// Carries out a batch in one call.
    pub(super) fn run(&mut self, requests: &[&Request]) -> Vec<Outcome> {
        let call = Call::new(&self.scripts, requests);
        let reply = call.command().query::<Value>(&mut self.connection).unwrap_or_else(|error| {
            assert!(error.to_string().contains("NoScript"), "{error}");
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(&*call.script().text).clone();
            let sha1: String = load.query(&mut self.connection).unwrap();
            assert_eq!(sha1, *call.script().sha1);
            call.command().query(&mut self.connection).unwrap()
        });
        let reply = call.read(reply).unwrap_or_else(|error| panic!("{error}: {requests:?}"));
        assert_eq!(reply.outcomes.len(), requests.len());
        reply.outcomes
    }

    pub(super) fn decide(&mut self, request: &Request) -> Decision {
        match self.run(&[request])[0] {
            Outcome::Decided(decision) => decision,
            other => panic!("{other:?}"),
        }
    }

    /// A plain take from one limit.
    pub(super) fn take(&mut self, limit: &NamedLimit, key: &str, cost: u64) -> Decision {
        let charge = [Charge { limit, key: key.as_bytes(), cost }];
        let request = Request::take(&self.names, Take::now(&charge));
        self.decide(&request)
    }

    /// The server's own time.
    pub(super) fn server_seconds(&mut self) -> u64 {
        let (seconds, _): (u64, u64) = self.ask(&redis::cmd("TIME"));
        seconds
    }

    pub(super) fn ttl_millis(&mut self, name: &str) -> i64 {
        self.ask(redis::cmd("PTTL").arg(name))
    }
}

pub(super) fn named(policy: &str, limit: Limit) -> NamedLimit {
    NamedLimit::new(policy, 0, limit)
}
