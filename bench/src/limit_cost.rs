//! What a limit adds to a proxied request.
//!
//! Once as the same gateway with a policy on its route and without: the difference holds the key,
//! the decision, the headers and the counters, and as the difference of two large numbers it is
//! uncertain by some hundred nanoseconds. And once as the decision alone, in this process, from
//! the request's attributes to the outcome, for a thousand clients in no order.

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, ensure};
use tollgate_engine::{Engine, Rules};
use tollgate_rules::Attributes;
use tollgate_store::{MemoryConfig, MemoryStore, SystemClock};
use tollgate_testkit::cpu::Core;

use crate::{
    own_time::own_time,
    proxies::{self, cpu_side, get_request, in_front_of, tollgate},
    random::Random,
    rounds::{ROUNDS, Side, alternate, figure},
};

/// A difference needs more rounds than a ratio.
const DIFFERENCE_ROUNDS: usize = 3 * ROUNDS;
const DECISIONS: u64 = 2_000_000;
const CLIENTS: u64 = 1_000;
const LIMITED: &str = include_str!("../peers/proxied.tollgate.yaml");
const UNLIMITED: &str = include_str!("../peers/unlimited.tollgate.yaml");

pub(crate) fn measure() -> anyhow::Result<()> {
    decision_alone()?;
    on_against_off()
}

fn on_against_off() -> anyhow::Result<()> {
    let upstream = proxies::upstream()?;
    let limited = tollgate(&in_front_of(&upstream, LIMITED))?;
    let unlimited = tollgate(&in_front_of(&upstream, UNLIMITED))?;
    let requests = [get_request()];
    let mut sides = [
        cpu_side("limited", &limited, &requests, 200),
        cpu_side("unlimited", &unlimited, &requests, 200),
    ];
    let summaries = alternate(&mut sides, DIFFERENCE_ROUNDS)?;
    for (side, summary) in sides.iter().zip(&summaries) {
        figure("limit-cost", &side.name, summary.median, "µs-cpu/request");
        figure("limit-cost-best-round", &side.name, summary.best, "µs-cpu/request");
    }
    let nanos =
        |of: fn(&crate::rounds::Summary) -> f64| (of(&summaries[0]) - of(&summaries[1])) * 1_000.0;
    figure("limit-cost", "difference", nanos(|one| one.median), "ns-cpu/request");
    figure("limit-cost-best-round", "difference", nanos(|one| one.best), "ns-cpu/request");
    Ok(())
}

fn decision_alone() -> anyhow::Result<()> {
    Core(0).pin_current_thread()?;
    let config = LIMITED.replace("{addr0}", "127.0.0.1:1").replace("{upstream}", "127.0.0.1:2");
    let config = tollgate_rules::read("bench", &config, &|_| None)?;
    let prefix = config.client.ipv6_prefix;
    let store = MemoryStore::new(MemoryConfig::default(), Arc::new(SystemClock::start()));
    let engine = Engine::new(Arc::new(store), Rules::new(config.rules, prefix));
    let mut sides = [Side::new("decide", || decide(&engine))];
    let summaries = alternate(&mut sides, ROUNDS)?;
    figure("limit-cost", "decision-alone", summaries[0].median, "ns/decision");
    Ok(())
}

fn decide(engine: &Engine) -> anyhow::Result<f64> {
    let rules = Arc::clone(&engine.rules());
    let policies = &rules.routes().first().context("a route")?.policies;
    let mut random = Random::new(7);
    let mut context = Context::from_waker(Waker::noop());
    let mut undecided = 0_u64;
    let time = own_time(|| {
        for _ in 0..DECISIONS {
            let client = u32::try_from(random.below(CLIENTS)).unwrap_or(0);
            let request = Request(Ipv4Addr::from_bits(0x0A00_0000 | client).into());
            let decision = std::pin::pin!(engine.decide(&rules, policies, &request));
            let decided = black_box(decision.poll(&mut context));
            undecided += u64::from(!matches!(decided, Poll::Ready(Ok(_))));
        }
    })?;
    ensure!(undecided == 0, "{undecided} decisions were not taken at once");
    Ok(time.as_nanos() as f64 / DECISIONS as f64)
}

/// A request of which only the address matters.
struct Request(IpAddr);

impl Attributes for Request {
    fn ip(&self) -> IpAddr {
        self.0
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/bench"
    }

    fn query(&self) -> Option<&str> {
        None
    }
}
