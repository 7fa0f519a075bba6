//! Slices on a real server: granted as the testkit's slow store grants them, and spent by a fleet.

use tollgate_core::{Limit, Rate, Unit};
use tollgate_store::{Denials, LeaseStats, Leases, Level, Mode, NamedLimit};
use tollgate_testkit::{
    ManualClock,
    history::{self, Admission},
    servers,
    slices::{SliceNode, SliceServer},
};

use super::*;

/// A small generator, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn pick(&mut self, below: usize) -> usize {
        usize::try_from(self.below(below as u64)).unwrap()
    }
}

fn leased(policy: &str, limit: Limit, percent: u32) -> NamedLimit {
    let mode = Mode::Leased { epsilon_millionths: percent * 10_000 };
    NamedLimit::new(policy, 0, limit).in_mode(mode)
}

fn limits(rate: Rate) -> Vec<Limit> {
    vec![
        Limit::token_bucket(rate, rate.count).unwrap(),
        Limit::leaky_bucket(rate, rate.count).unwrap(),
        Limit::fixed_window(rate).unwrap(),
        Limit::sliding_log(rate).unwrap(),
        Limit::sliding_counter(rate).unwrap(),
        Limit::sliding_window(rate).unwrap(),
    ]
}

/// Stores on one server in one time, and the time.
struct Servers {
    server: Redis,
    clock: SharedClock,
    nodes: Vec<Arc<RedisStore>>,
}

impl Servers {
    /// Loses all that was written about a limit.
    fn forget(&self, limit: &NamedLimit) {
        let mut client = self.server.client().unwrap();
        let names = [limit.policy().to_owned(), format!("{}~held", limit.policy())];
        for name in names {
            let key = format!("ratelimit:{name}:ann");
            assert_eq!(client.command(&["DEL", &key]).unwrap().integer(), 1, "{key}");
        }
    }
}

async fn nodes(count: usize) -> Servers {
    let server = servers::redis().unwrap();
    let clock = SharedClock::start(&server);
    let mut nodes = Vec::new();
    for _ in 0..count {
        let config = RedisConfig {
            timeout: Duration::from_secs(10),
            ..RedisConfig::new(server.url().parse().unwrap())
        };
        let time = script::Clock::Key(CLOCK_KEY.to_owned());
        let own = Arc::new(clock.clone());
        let store = RedisStore::start_in_time(config, Arc::new(()), own, &time).unwrap();
        store.ready().await;
        nodes.push(store);
    }
    Servers { server, clock, nodes }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

/// A node here and its like in the testkit's store.
struct Pair {
    redis: Arc<RedisStore>,
    slow: Arc<SliceNode>,
    held: u64,
    level: Option<Level>,
}

impl Pair {
    async fn take(&self, limit: &NamedLimit, cost: u64) {
        let charges = [Charge { limit, key: b"ann", cost }];
        let here = self.redis.take(Take::now(&charges)).await.unwrap();
        let there = self.slow.take(Take::now(&charges)).await.unwrap();
        assert_eq!(here, there, "{limit:?} cost {cost}");
    }

    async fn draw(&mut self, limit: &NamedLimit, cost: u64, want: u64, left: u64) {
        let draw = Draw { charge: Charge { limit, key: b"ann", cost }, want, left };
        let here = self.redis.draw(draw).await.unwrap();
        let there = self.slow.draw(draw).await.unwrap();
        assert_eq!(here, there, "{limit:?} cost {cost} want {want} left {left}");
        self.held = here.slice;
        self.level = Some(here.level);
    }

    async fn put_back(&mut self, limit: &NamedLimit, amount: u64) {
        let Some(level) = self.level else { return };
        let charge = Charge { limit, key: b"ann", cost: amount };
        let holding = [Holding { charge, level }];
        self.redis.put_back(&holding).await.unwrap();
        self.slow.put_back(&holding).await.unwrap();
        self.held = 0;
    }
}

async fn trace(limit: NamedLimit, servers: &Servers, steps: usize, seed: u64) {
    let clock = ManualClock::at(servers.clock.now());
    let slow = SliceServer::new(&clock);
    let pair = |(at, redis): (usize, &Arc<RedisStore>)| Pair {
        redis: Arc::clone(redis),
        slow: slow.node(&at.to_string()),
        held: 0,
        level: None,
    };
    let mut pairs: Vec<_> = servers.nodes.iter().enumerate().map(pair).collect();
    let mut random = Random(seed);
    for _ in 0..steps {
        let at = random.pick(pairs.len());
        let pair = &mut pairs[at];
        let cost = random.below(4);
        let left = pair.held.saturating_sub(random.below(6));
        match random.below(20) {
            0..3 => pair.take(&limit, cost).await,
            3..11 => {
                let want = random.below(40);
                pair.draw(&limit, cost, want, left).await;
            }
            11..14 => pair.put_back(&limit, left).await,
            range => {
                let longest = if range == 19 { 1_500_000 } else { 60_000 };
                let pause = Duration::from_micros(random.below(longest));
                servers.clock.pass(pause);
                clock.advance(pause);
            }
        }
    }
}

// part of: B10
#[test]
fn slices_are_granted_as_in_the_slow_store() {
    run(async {
        let servers = nodes(3).await;
        for (at, limit) in limits(Rate::per(100, Unit::Second)).into_iter().enumerate() {
            let limit = leased(&format!("trace {at}"), limit, 20);
            trace(limit, &servers, 4_000, 5 + at as u64).await;
        }
        let long = Limit::token_bucket(Rate::per(1_000, Unit::Minute), 300).unwrap();
        trace(leased("trace of a minute", long, 10), &servers, 2_000, 11).await;
    });
}

// part of: B10
#[test]
fn a_server_that_has_forgotten_learns_level_and_slice_again() {
    run(async {
        let servers = nodes(2).await;
        for (at, limit) in limits(Rate::per(100, Unit::Hour)).into_iter().enumerate() {
            let limit = leased(&format!("forgotten {at}"), limit, 20);
            let charge = |cost| Charge { limit: &limit, key: b"ann", cost };
            servers.nodes[0].take(Take::now(&[charge(60)])).await.unwrap();
            let draw = Draw { charge: charge(1), want: 10, left: 0 };
            let drawn = servers.nodes[0].draw(draw).await.unwrap();
            assert_eq!((drawn.slice, drawn.level.remaining), (9, 30), "{limit:?}");
            servers.forget(&limit);
            let holding = [Holding { charge: charge(drawn.slice), level: drawn.level }];
            // Twice is the same as once.
            servers.nodes[0].reassert(&holding).await.unwrap();
            servers.nodes[0].reassert(&holding).await.unwrap();
            let look = servers.nodes[1].take(Take::now(&[charge(0)])).await.unwrap();
            assert_eq!(look.remaining, 30, "{limit:?}");
            // Twenty may be held in all, and nine are: of the rest three quarters.
            let draw = Draw { charge: charge(0), want: 100, left: 0 };
            let other = servers.nodes[1].draw(draw).await.unwrap();
            assert_eq!(other.slice, 7, "{limit:?}");
            // It never raises a level.
            let high = Level { remaining: 90, ..drawn.level };
            let holding = [Holding { charge: charge(0), level: high }];
            servers.nodes[1].reassert(&holding).await.unwrap();
            let look = servers.nodes[1].take(Take::now(&[charge(0)])).await.unwrap();
            assert_eq!(look.remaining, 23, "{limit:?}");
        }
    });
}

const LIMIT: u64 = 300;

/// Ten times the limit on four nodes, nine tenths of it on one; gives what was admitted.
async fn overload(servers: &Servers, limit: &NamedLimit) -> (Vec<Admission>, Vec<LeaseStats>) {
    let clock: Arc<dyn Clock> = Arc::new(servers.clock.clone());
    let node = |store: &Arc<RedisStore>| {
        Leases::new(Denials::new(Arc::clone(store), Arc::clone(&clock)), Arc::clone(&clock))
    };
    let nodes: Vec<_> = servers.nodes.iter().map(node).collect();
    let (mut random, mut admitted) = (Random(7), Vec::new());
    for step in 0..LIMIT * 10 * 13 / 10 {
        for _ in 0..10 {
            let at = if random.below(10) < 9 { 0 } else { 1 + random.pick(3) };
            let charges = [Charge { limit, key: b"ann", cost: 1 }];
            if nodes[at].take(Take::now(&charges)).await.unwrap().allowed {
                admitted.push(Admission::at(clock.now(), 1));
            }
        }
        servers.clock.pass(Duration::from_micros(1_000_000 / LIMIT));
        if step % (LIMIT / 10) == 0 {
            for node in &nodes {
                node.tend_once().await;
            }
        }
    }
    (admitted, nodes.iter().map(Leases::stats).collect())
}

// part of: B10
#[test]
fn a_skewed_and_overloaded_fleet_admits_what_the_limit_allows() {
    run(async {
        let servers = nodes(4).await;
        for (at, limit) in limits(Rate::per(LIMIT, Unit::Second)).into_iter().enumerate() {
            let limit = leased(&format!("fleet {at}"), limit, 4);
            let begin = servers.clock.now().after(Duration::from_secs(2));
            let (admitted, stats) = overload(&servers, &limit).await;
            for window in 0..2 {
                let from = begin.after(Duration::from_secs(window));
                let to = from.after(Duration::from_secs(10));
                let inside = admitted.iter().filter(|one| one.sent >= from && one.sent < to);
                let share = inside.count() as u64 * 100 / (LIMIT * 10);
                // The strict window counts its oldest part in full: 36 of 37 parts.
                let least = if let Limit::SlidingWindow(_) = limit.limit() { 97 } else { 99 };
                assert!((least..=104).contains(&share), "{limit:?}: {share} %");
            }
            if let Limit::SlidingLog(_) = limit.limit() {
                let most = LIMIT + LIMIT * 4 / 100;
                assert_eq!(history::check_window(&admitted, Duration::from_secs(1), most), Ok(()));
            }
            for one in &stats {
                assert_eq!(one.drawn, one.spent + one.held + one.returned + one.lost, "{one:?}");
            }
            assert!(stats.iter().map(|one| one.decided).sum::<u64>() > 0, "{limit:?}");
            // To the beginning of a second, for the next.
            let into = servers.clock.now().as_micros() % 1_000_000;
            servers.clock.pass(Duration::from_micros(1_000_000 - into));
        }
    });
}
