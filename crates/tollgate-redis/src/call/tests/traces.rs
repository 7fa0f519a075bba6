//! The same random lives of keys in Redis and in memory, decision by decision.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Algorithm, COST_MAX, Decision, Limit, Patience, Rate, Time, Unit};
use tollgate_store::{Charge, MemoryConfig, MemoryStore, NamedLimit, Take};
use tollgate_testkit::{ManualClock, servers::RedisOptions};

use super::{chance::Chance, support::Redis};
use crate::{
    call::Outcome,
    request::{Action, Request},
};

const STEPS: usize = 100_000;

/// Longer than any test: the time of these keys is not the server's.
const KEPT: Duration = Duration::from_secs(86_400);

/// In November 2026.
const START: u64 = 1_794_830_400_000_000;

/// In the year 2191; a double counts microseconds until 2255.
const END: u64 = 7_000_000_000_000_000;

/// One thing that happens.
#[derive(Debug, Clone)]
struct Step {
    what: What,
    /// Limit, key and cost.
    charges: Vec<(usize, u8, u64)>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Take(Patience, u64),
    Refund,
    Release(u64),
    Reset,
}

/// Limits and the two stores that must agree.
struct Trace {
    limits: Vec<NamedLimit>,
    memory: MemoryStore,
    clock: ManualClock,
    chance: Chance,
    lease: u64,
}

impl Trace {
    fn new(limits: Vec<NamedLimit>, redis: &Redis, seed: u64) -> Self {
        let clock = ManualClock::at(redis.now());
        let memory = MemoryStore::new(MemoryConfig::default(), Arc::new(clock.clone()));
        Self { limits, memory, clock, chance: Chance::new(seed), lease: 1_000_000_000 }
    }

    fn in_memory(&self, step: &Step, request: &Request) -> Option<Decision> {
        let charges = charges(&self.limits, step);
        match step.what {
            What::Take(_, lease) => {
                // As far as a script can count it.
                let Action::Take { patience, .. } = request.action else { panic!("{request:?}") };
                Some(self.memory.take_now(Take { charges: &charges, patience, lease }))
            }
            What::Refund => Some(self.memory.refund_now(&charges)),
            What::Release(lease) => {
                self.memory.release_now(&charges, lease);
                None
            }
            What::Reset => {
                self.memory.reset_now(&charges);
                None
            }
        }
    }

    fn in_redis(&self, redis: &Redis, step: &Step) -> Request {
        let (names, charges) = (&redis.names, charges(&self.limits, step));
        match step.what {
            What::Take(patience, lease) => {
                Request::take(names, Take { charges: &charges, patience, lease })
            }
            What::Refund => Request::refund(names, &charges),
            What::Release(lease) => Request::release(names, &charges, lease),
            What::Reset => Request::reset(names, &charges),
        }
    }

    /// Lets a batch happen at one instant and compares every answer.
    fn batch(&mut self, redis: &mut Redis, size: usize) {
        let steps: Vec<_> = (0..size).map(|_| self.step()).collect();
        let requests: Vec<_> = steps.iter().map(|step| self.in_redis(redis, step)).collect();
        let answers = redis.run(&requests.iter().collect::<Vec<_>>());
        for ((step, request), answer) in steps.iter().zip(&requests).zip(answers) {
            let expected = self.in_memory(step, request).map_or(Outcome::Done, Outcome::Decided);
            assert_eq!(answer, expected, "{step:?} of {:?}", self.limits);
        }
    }

    fn step(&mut self) -> Step {
        let several = self.limits.len() > 1 && self.chance.percent(60);
        let mut charges = vec![self.charge()];
        if several {
            let others = self.chance.within(1, 3);
            charges.extend((0..others).map(|_| self.charge()));
        }
        let what = match self.chance.within(0, 100) {
            0..86 => {
                self.lease += 1;
                What::Take(self.patience(), self.lease)
            }
            86..93 => {
                // More than this cannot have been taken in one request.
                charges.iter_mut().for_each(|(_, _, cost)| *cost = (*cost).min(COST_MAX));
                What::Refund
            }
            93..98 => What::Release(self.lease.saturating_sub(self.chance.within(0, 6))),
            _ => What::Reset,
        };
        Step { what, charges }
    }

    fn charge(&mut self) -> (usize, u8, u64) {
        let limit = usize::try_from(self.chance.next()).unwrap_or(0) % self.limits.len();
        let key = u8::try_from(self.chance.one_of(&[0_u64, 0, 0, 1, 2])).unwrap();
        (limit, key, self.cost(limit))
    }

    /// Most costs are small; some are near or above the capacity.
    fn cost(&mut self, limit: usize) -> u64 {
        let limit = self.limits[limit].limit();
        // Places beyond these are found by other ways; see the test of that.
        if matches!(limit, Limit::Concurrency(_)) {
            return self.chance.within(0, 5);
        }
        let capacity = limit.capacity();
        match self.chance.within(0, 20) {
            0..3 => 0,
            3..14 => self.chance.within(1, 4),
            14..17 => self.chance.within(1, 40),
            17 => capacity.saturating_sub(self.chance.within(0, 3)),
            18 => capacity / self.chance.within(1, 5) + self.chance.within(0, 2),
            _ => self.chance.within(1, capacity.saturating_add(10)),
        }
    }

    fn patience(&mut self) -> Patience {
        let limit = usize::try_from(self.chance.next()).unwrap_or(0) % self.limits.len();
        let memory = self.limits[limit].limit().memory_micros().max(1_000);
        match self.chance.within(0, 20) {
            0..14 => Patience::None,
            14 => Patience::Micros(0),
            15 => Patience::Micros(1),
            16..19 => Patience::Micros(self.chance.within(0, memory)),
            _ => Patience::Micros(self.chance.within(0, memory.saturating_mul(3))),
        }
    }

    fn pause(&mut self, redis: &mut Redis) {
        let limit = usize::try_from(self.chance.next()).unwrap_or(0) % self.limits.len();
        let limit = self.limits[limit].limit();
        // Some centuries are enough.
        let memory = limit.memory_micros().clamp(1_000, 1 << 49);
        let one = match limit.rate() {
            Some(rate) if rate.count > 0 => rate.period_micros() / rate.count,
            _ => 1_000_000,
        };
        let micros = match self.chance.within(0, 12) {
            0 => 0,
            1 => 1,
            2 | 3 => self.chance.within(0, 1_000),
            4 | 5 => self.chance.within(0, 2_000_000),
            6..9 => self.chance.within(0, one * 3 + 2),
            9 => one,
            10 => memory / 1_000 * self.chance.within(1, 600),
            _ => memory / 1_000 * self.chance.within(900, 1_100),
        };
        redis.pass(micros);
        self.clock.set(redis.now());
    }
}

fn charges<'a>(limits: &'a [NamedLimit], step: &Step) -> Vec<Charge<'a>> {
    const KEYS: [&[u8]; 3] = [b"ann", b"bob", b"cy"];
    let charge = |(limit, key, cost): &(usize, u8, u64)| {
        let limit = &limits[*limit];
        Charge { limit, key: KEYS[usize::from(*key)], cost: *cost }
    };
    step.charges.iter().map(charge).collect()
}

/// A random limit.
pub(super) fn limit(chance: &mut Chance, algorithm: Algorithm) -> Limit {
    let rate = rate(chance, algorithm == Algorithm::FixedWindow);
    let burst = chance.one_of(&[1, 2, 3, 5, 15, 29, 1_000]);
    let made = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(rate, burst),
        Algorithm::LeakyBucket => Limit::leaky_bucket(rate, burst),
        Algorithm::FixedWindow => Limit::fixed_window(rate),
        Algorithm::SlidingLog => Limit::sliding_log(rate),
        Algorithm::SlidingCounter => Limit::sliding_counter(rate),
        Algorithm::SlidingWindow => Limit::sliding_window(rate),
        Algorithm::Concurrency => Limit::concurrency(burst, Duration::from_millis(burst * 137)),
    };
    made.unwrap()
}

/// Rates whose arithmetic does not come out even, among ordinary ones.
fn rate(chance: &mut Chance, calendar: bool) -> Rate {
    let some = chance.within(1, 20);
    let count = chance.one_of(&[some, some, 7, 60, 100, 1_000, 65_536, 99_999]);
    let units = if calendar { &Unit::ALL[..] } else { &Unit::ALL[..3] };
    let times = u32::try_from(chance.within(1, 4)).unwrap();
    Rate { count, times, unit: chance.one_of(units) }
}

fn check(seed: u64, limits: impl FnMut(&mut Chance) -> Vec<Limit>) {
    check_on(&mut Redis::start(), STEPS, seed, limits);
}

/// Runs lives of new limits until there were enough steps.
fn check_on(
    redis: &mut Redis,
    enough: usize,
    seed: u64,
    mut limits: impl FnMut(&mut Chance) -> Vec<Limit>,
) {
    let mut chance = Chance::new(seed);
    let (mut steps, mut life) = (0, 0);
    while steps < enough {
        life += 1;
        let name = |at, limit| {
            NamedLimit::new(format!("life {life}"), at, limit)
                .counting_refused((life + at) % 4 == 0)
                .kept_for(KEPT)
        };
        let limits = limits(&mut chance).into_iter().enumerate();
        let limits = limits.map(|(at, limit)| name(at, limit)).collect();
        redis.set(Time::from_micros(chance.within(START, START + 10_000_000_000)));
        let mut trace = Trace::new(limits, redis, chance.next());
        for _ in 0..chance.within(5, 60) {
            if redis.now() > Time::from_micros(END) {
                break;
            }
            let size = match chance.within(0, 20) {
                0..12 => 1,
                12..18 => chance.within(2, 20),
                _ => chance.within(100, 300),
            };
            trace.batch(redis, usize::try_from(size).unwrap());
            steps += usize::try_from(size).unwrap();
            trace.pause(redis);
        }
    }
}

/// One limit alone in half of the lives, two of the kind in the others.
fn check_algorithm(seed: u64, algorithm: Algorithm) {
    check(seed, |chance| {
        let count = chance.within(1, 3);
        (0..count).map(|_| limit(chance, algorithm)).collect()
    });
}

#[test]
fn a_token_bucket_decides_as_in_memory() {
    check_algorithm(1, Algorithm::TokenBucket);
}

#[test]
fn a_leaky_bucket_decides_as_in_memory() {
    check_algorithm(2, Algorithm::LeakyBucket);
}

#[test]
fn a_fixed_window_decides_as_in_memory() {
    check_algorithm(3, Algorithm::FixedWindow);
}

#[test]
fn a_sliding_log_decides_as_in_memory() {
    check_algorithm(4, Algorithm::SlidingLog);
}

#[test]
fn a_sliding_counter_decides_as_in_memory() {
    check_algorithm(5, Algorithm::SlidingCounter);
}

#[test]
fn a_sliding_window_decides_as_in_memory() {
    check_algorithm(6, Algorithm::SlidingWindow);
}

#[test]
fn a_concurrency_limit_decides_as_in_memory() {
    check_algorithm(7, Algorithm::Concurrency);
}

#[test]
fn limits_of_all_algorithms_together_decide_as_in_memory() {
    check(8, |chance| Algorithm::ALL.map(|algorithm| limit(chance, algorithm)).to_vec());
}

// part of: B1
#[test]
fn the_oldest_redis_and_valkey_decide_as_in_memory() {
    for options in [RedisOptions::oldest(), RedisOptions::valkey()] {
        let mut redis = Redis::on(options.start().unwrap());
        check_on(&mut redis, STEPS / 4, 10, |chance| {
            Algorithm::ALL.map(|algorithm| limit(chance, algorithm)).to_vec()
        });
    }
}

#[test]
fn the_largest_limits_decide_as_in_memory() {
    let largest = 1 << 53;
    check(9, |chance| {
        let burst = chance.one_of(&[largest, largest - 1, largest / 3, 1 << 40, 5, 1]);
        let rates = [
            Rate::per(1, Unit::Year),
            Rate { count: 1, times: 100, unit: Unit::Year },
            Rate { count: 7, times: 99, unit: Unit::Year },
            Rate::per(1_000_000_000, Unit::Second),
            Rate::per(999_999_999, Unit::Second),
            Rate::per(86_399_999_999_999, Unit::Day),
            Rate { count: largest, times: 1, unit: Unit::Year },
            Rate::per(3, Unit::Second),
        ];
        let rate = chance.one_of(&rates);
        let limits = [
            Limit::token_bucket(rate, burst),
            Limit::leaky_bucket(rate, burst),
            Limit::fixed_window(rate),
            Limit::sliding_counter(rate),
            Limit::sliding_window(rate),
        ];
        limits.into_iter().map(Result::unwrap).collect()
    });
}
