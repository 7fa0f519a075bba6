//! Losing the store neither refills nor empties anybody's bucket, and adds nothing however often
//! it comes and goes.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tollgate_core::{Algorithm, Clock, Limit, Rate, Unit};
use tollgate_store::{Charge, NamedLimit, OnFailure, Share, Store, Take};
use tollgate_testkit::{
    ManualClock,
    history::{Admission, check_bucket, check_window},
    remote_store::{Network, RemoteStore},
};

use super::node::{HALF, Node, alone, bucket, limits, look, now};

fn share() -> impl Strategy<Value = Share> {
    prop_oneof![
        (1_u32..=1_000_000).prop_map(|millionths| Share::Part { millionths }),
        (1_usize..6).prop_map(|nodes| Share::Fleet(Arc::new(move || nodes))),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    (1_u64..40, 1_u32..3, prop::sample::select(vec![Unit::Second, Unit::Minute]))
        .prop_map(|(count, times, unit)| Rate { count, times, unit })
}

/// What somebody does, and how long after the last did.
#[derive(Debug, Clone)]
struct Step {
    pause: Duration,
    act: Act,
}

#[derive(Debug, Clone)]
enum Act {
    Take(u64),
    Refund(u64),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        8 => (0_u64..4).prop_map(Act::Take),
        1 => (1_u64..4).prop_map(Act::Refund),
        1 => Just(Act::Reset),
    ];
    (0_u64..2_000_000, act)
        .prop_map(|(micros, act)| Step { pause: Duration::from_micros(micros), act })
}

fn act(store: &dyn Store, limits: &[NamedLimit], act: &Act) {
    let cost = match act {
        Act::Take(cost) | Act::Refund(cost) => *cost,
        Act::Reset => 0,
    };
    let charges: Vec<_> = limits.iter().map(|limit| Charge { limit, key: b"ann", cost }).collect();
    match act {
        Act::Take(_) => drop(now(store.take(Take::now(&charges))).unwrap()),
        Act::Refund(_) => drop(now(store.refund(&charges)).unwrap()),
        Act::Reset => now(store.reset(&charges)).unwrap(),
    }
}

/// The level without the store is the share of the level with it, to within one.
fn check_share(remote: &RemoteStore, node: &Node, limit: &NamedLimit) -> Result<(), TestCaseError> {
    let seen = look(remote.behind(), limit, "ann");
    remote.set(Network::Refused);
    let own = node.take(limit, "ann", 0);
    remote.set(Network::AtOnce);
    let (level, share) = (own.remaining * seen.limit, seen.remaining * own.limit);
    prop_assert!(level.abs_diff(share) < seen.limit, "{limit:?}: {seen:?} became {own:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // part of: B6
    #[test]
    fn a_node_that_saw_everything_goes_on_at_the_share_of_every_level(
        share in share(),
        rate in rate(),
        burst in 1_u64..40,
        which in prop::collection::vec(0_usize..6, 1..4),
        steps in prop::collection::vec(step(), 0..60),
        pause in 0_u64..3_000_000,
    ) {
        let (remote, node, clock) = alone(OnFailure::Local(share));
        let all = limits(rate, burst);
        let mut chosen: Vec<_> = which.into_iter().map(|at| all[at].clone()).collect();
        chosen.sort_by_key(NamedLimit::position);
        chosen.dedup_by_key(|limit| limit.position());
        for step in &steps {
            clock.advance(step.pause);
            act(&*node.store, &chosen, &step.act);
        }
        clock.advance(Duration::from_micros(pause));
        for limit in &chosen {
            check_share(&remote, &node, limit)?;
        }
    }

    // part of: B6
    #[test]
    fn a_node_that_saw_only_a_part_goes_on_at_the_share_of_what_it_saw_last(
        share in share(),
        rate in rate(),
        burst in 1_u64..40,
        steps in prop::collection::vec((step(), any::<bool>()), 0..60),
    ) {
        for limit in limits(rate, burst) {
            let (remote, node, clock) = alone(OnFailure::Local(share.clone()));
            let limit = [limit];
            for (step, elsewhere) in &steps {
                clock.advance(step.pause);
                // Only takes go down: what others give back is not seen, and not believed.
                match (elsewhere, &step.act) {
                    (true, Act::Take(_)) => act(remote.behind(), &limit, &step.act),
                    (true, _) => {}
                    (false, _) => act(&*node.store, &limit, &step.act),
                }
            }
            act(&*node.store, &limit, &Act::Take(0));
            let seen = look(remote.behind(), &limit[0], "ann");
            remote.set(Network::Refused);
            let own = node.take(&limit[0], "ann", 0);
            // Never one more than the share. Nor two less (one was rounded by the store, one here)
            // where time gives back to both alike; in a sliding window, what others took counts from
            // when it was seen, and so for a little longer.
            let (level, share) = (own.remaining * seen.limit, seen.remaining * own.limit);
            prop_assert!(level < share + seen.limit, "{limit:?}: {seen:?} became {own:?}");
            let alike = matches!(
                limit[0].limit().algorithm(),
                Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::FixedWindow
            );
            let enough = level + 2 * seen.limit > share;
            prop_assert!(!alike || enough, "{limit:?}: {seen:?} became {own:?}");
        }
    }

    // part of: B6
    #[test]
    fn a_store_that_comes_and_goes_adds_nothing_to_a_nodes_share(
        percent in 1_u32..=100,
        burst in 1_u64..12,
        count in 1_u64..12,
        steps in prop::collection::vec((0_usize..3, 1_u64..3, 0_u64..400_000, 0_u32..8), 1..150),
    ) {
        let rate = Rate::per(count, Unit::Second);
        let share = Share::Part { millionths: percent * 10_000 };
        // At least 1 of each.
        let of = |count: u64| (count * u64::from(percent) / 100).max(1);
        let exact = Rate { count: count * u64::from(percent), times: 100, unit: Unit::Second };
        let rate_of_share = if exact.count < 100 { Rate::per(1, Unit::Second) } else { exact };
        for limit in [Limit::token_bucket(rate, burst), Limit::sliding_log(rate)] {
            let limit = NamedLimit::new("p", 0, limit.unwrap());
            let (by_store, by_nodes) = come_and_go(&limit, &share, &steps);
            let check = |admitted: &[Admission], rate: Rate, most: u64| {
                match limit.limit().algorithm() {
                    Algorithm::TokenBucket => check_bucket(admitted, rate, most),
                    _ => check_window(admitted, Duration::from_secs(1), most),
                }
            };
            check(&by_store, rate, limit.limit().capacity()).unwrap();
            for admitted in &by_nodes {
                check(admitted, rate_of_share, of(limit.limit().capacity())).unwrap();
            }
        }
    }
}

/// What the store admits and what each of three nodes does, while the store comes and goes. A step
/// is a node, a cost, a pause and, if the last is 0, a change.
fn come_and_go(
    limit: &NamedLimit,
    share: &Share,
    steps: &[(usize, u64, u64, u32)],
) -> (Vec<Admission>, Vec<Vec<Admission>>) {
    let clock = ManualClock::default();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let remote = Arc::new(RemoteStore::new(shared.clone()));
    let node = |_| Node::new(&remote, &shared, OnFailure::Local(share.clone()));
    let nodes: Vec<_> = (0..3).map(node).collect();
    let (mut by_store, mut by_nodes) = (Vec::new(), vec![Vec::new(); 3]);
    let mut away = false;
    for (at, cost, pause, change) in steps {
        clock.advance(Duration::from_micros(*pause));
        away ^= *change == 0;
        remote.set(if away { Network::Refused } else { Network::AtOnce });
        let before = nodes[*at].local.decisions();
        let allowed = nodes[*at].take(limit, "ann", *cost).allowed;
        let locally = nodes[*at].local.decisions() > before;
        let admitted = if locally { &mut by_nodes[*at] } else { &mut by_store };
        admitted.extend(allowed.then(|| Admission::at(clock.now(), *cost)));
    }
    (by_store, by_nodes)
}

// part of: B6
#[test]
fn who_had_nothing_left_has_nothing_left_and_who_had_all_has_all_of_the_share() {
    let (remote, node, clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(10, 15);
    assert_eq!(node.take(&limit, "ann", 15).remaining, 0);
    assert_eq!(node.take(&limit, "bob", 5).remaining, 10);
    remote.set(Network::Refused);
    let told = |key| {
        let decision = node.take(&limit, key, 1);
        (decision.allowed, decision.limit, decision.remaining)
    };
    assert_eq!(told("ann"), (false, 7, 0));
    assert_eq!(told("bob"), (true, 7, 3));
    assert_eq!(told("cyd"), (true, 7, 6));
    // And then it fills at five a second.
    clock.advance(Duration::from_millis(199));
    assert!(!node.take(&limit, "ann", 1).allowed);
    clock.advance(Duration::from_millis(1));
    assert!(node.take(&limit, "ann", 1).allowed);
}

// part of: B6
#[test]
fn a_store_that_forgot_everything_refills_nobody() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = bucket(1, 10);
    assert_eq!(node.take(&limit, "ann", 9).remaining, 1);
    remote.behind().reset_now(&[Charge { limit: &limit, key: b"ann", cost: 0 }]);
    assert_eq!(node.take(&limit, "ann", 0).remaining, 10);
    remote.set(Network::Refused);
    assert_eq!(node.take(&limit, "ann", 0).remaining, 0);
}

// part of: B6
#[test]
fn places_that_this_node_holds_count_against_its_share() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let limit = Limit::concurrency(6, Duration::from_secs(30)).unwrap();
    let limit = NamedLimit::new("p", 0, limit);
    let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
    let take = |lease| now(node.store.take(Take { lease, ..Take::now(&charges) })).unwrap().allowed;
    // Somebody else's four are not this node's.
    for lease in 100..104 {
        remote.behind().take_now(Take { lease, ..Take::now(&charges) });
    }
    assert!(take(1) && take(2) && !take(3));
    remote.set(Network::Refused);
    assert!(take(4) && !take(5));
    now(node.store.release(&charges, 1)).unwrap();
    assert!(take(6) && !take(7));
}

// part of: B7
#[test]
fn when_a_node_dies_the_others_take_over_its_share() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let nodes = Arc::new(AtomicUsize::new(4));
    let known = nodes.clone();
    let share = Share::Fleet(Arc::new(move || known.load(Ordering::SeqCst)));
    let (remote, node, clock) = alone(OnFailure::Local(share));
    let limit = bucket(12, 12);
    remote.set(Network::Refused);
    let decision = node.take(&limit, "ann", 1);
    assert_eq!((decision.limit, decision.remaining), (3, 2));
    assert_eq!(node.take(&limit, "bob", 3).remaining, 0);
    nodes.store(3, Ordering::SeqCst);
    // A third instead of a quarter, and levels are kept in proportion.
    let decision = node.take(&limit, "ann", 0);
    assert_eq!((decision.limit, decision.remaining), (4, 2));
    assert!(!node.take(&limit, "bob", 1).allowed);
    clock.advance(Duration::from_secs(1));
    assert!(node.take(&limit, "bob", 4).allowed);
    nodes.store(2, Ordering::SeqCst);
    nodes.store(3, Ordering::SeqCst);
    assert!(!node.take(&limit, "bob", 1).allowed);
}

// part of: B7
#[test]
fn with_the_share_of_a_fleet_the_fleet_holds_the_policy() {
    let clock = ManualClock::default();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let remote = Arc::new(RemoteStore::new(shared.clone()));
    let node = || Node::new(&remote, &shared, OnFailure::Local(Share::Fleet(Arc::new(|| 4))));
    let nodes = [node(), node(), node(), node()];
    let limit = bucket(10, 20);
    remote.set(Network::Refused);
    let mut admitted = Vec::new();
    for step in 0..4_000 {
        clock.advance(Duration::from_millis(1));
        if nodes[step % 4].take(&limit, "ann", 1).allowed {
            admitted.push(Admission::at(clock.now(), 1));
        }
    }
    check_bucket(&admitted, Rate::per(10, Unit::Second), 20).unwrap();
    // And not less either: 20 at once, then 10 in each of the four seconds.
    assert!(admitted.len() >= 20 + 40 - 4, "{}", admitted.len());
}

// part of: B6, B12
#[test]
fn a_policy_that_changes_while_the_store_is_away_keeps_its_levels() {
    let (remote, node, _clock) = alone(OnFailure::Local(HALF));
    let old = bucket(10, 20);
    remote.set(Network::Refused);
    assert_eq!(node.take(&old, "ann", 5).remaining, 5);
    let new = bucket(10, 40).succeeding(&old, node.store.now());
    assert_eq!(node.take(&new, "ann", 0).remaining, 10);
    let back = bucket(10, 20).succeeding(&new, node.store.now());
    assert_eq!(node.take(&back, "ann", 0).remaining, 5);
}
