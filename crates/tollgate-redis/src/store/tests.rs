//! The contract of every store, on a real server in a time of our own.

mod leased;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tollgate_core::{Clock, Limit, Rate, Time, Unit};
use tollgate_store::{NamedLimit, Store};
use tollgate_testkit::{
    contract,
    resp_client::RespClient,
    servers::{Redis, RedisOptions},
    wait::{PATIENCE, wait_until},
};

use super::*;
use crate::{lane::Lane, script};

const CLOCK_KEY: &str = "clock of the test";

/// A clock that the server reads too. Nobody sees it while the two differ.
#[derive(Clone)]
struct SharedClock(Arc<Mutex<(u64, RespClient)>>);

impl SharedClock {
    fn start(server: &Redis) -> Self {
        let clock = Self(Arc::new(Mutex::new((1_794_787_200_000_000, server.client().unwrap()))));
        clock.pass(Duration::ZERO);
        clock
    }

    fn pass(&self, time: Duration) {
        let mut shared = self.0.lock().unwrap();
        let (now, client) = &mut *shared;
        *now += u64::try_from(time.as_micros()).unwrap();
        client.command(&["SET", CLOCK_KEY, &now.to_string()]).unwrap().fine();
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.lock().unwrap().0)
    }
}

struct OnRedis {
    store: Arc<RedisStore>,
    clock: SharedClock,
}

impl contract::Subject for OnRedis {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }
}

fn check(server: &Redis) {
    let clock = SharedClock::start(server);
    let config = RedisConfig {
        // However busy the machine is.
        timeout: Duration::from_secs(10),
        ..RedisConfig::new(server.url().parse().unwrap())
    };
    let time = script::Clock::Key(CLOCK_KEY.to_owned());
    let own = Arc::new(clock.clone());
    let store = RedisStore::start_in_time(config, Arc::new(()), own, &time).unwrap();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        store.ready().await;
        contract::check(&OnRedis { store, clock }).await;
    });
}

// covers: A7, A8, A9, A12, A13, B12
#[test]
fn the_store_keeps_the_contract() {
    check(&RedisOptions::new().start().unwrap());
}

// covers: B1
// Beside tests/sentinel.rs, tests/cluster.rs and tests/tls.rs.
#[test]
fn the_store_keeps_the_contract_on_the_oldest_redis_and_on_valkey() {
    check(&RedisOptions::oldest().start().unwrap());
    check(&RedisOptions::valkey().start().unwrap());
}

#[test]
fn an_idle_connection_that_was_closed_costs_nobody_an_answer() {
    let server = RedisOptions::new().start().unwrap();
    let config = RedisConfig {
        timeout: Duration::from_secs(10),
        ..RedisConfig::new(server.url().parse().unwrap())
    };
    let store = RedisStore::start(config, Arc::new(())).unwrap();
    let limit = Limit::token_bucket(Rate::per(1, Unit::Day), 100).unwrap();
    let limit = NamedLimit::new("p", 0, limit);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let is_live = || {
        runtime.block_on(async {
            tokio::task::yield_now().await;
            let server = store.base.topology.route(0).unwrap();
            Lane::of_this_thread(&store.base).link(&server).is_live()
        })
    };
    for _ in 0..5 {
        assert!(runtime.block_on(store.take(Take::now(&charges))).unwrap().allowed);
        assert!(is_live());
        server.ask("CLIENT KILL TYPE normal SKIPME yes");
        wait_until(PATIENCE, || !is_live()).unwrap();
    }
    assert_eq!(store.epoch(), 0);
}
