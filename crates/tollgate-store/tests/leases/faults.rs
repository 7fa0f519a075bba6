//! Everything that can go wrong on the way, at random.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Clock, Limit, Rate, Unit};
use tollgate_testkit::history;

use crate::fleet::{Fleet, leased, per_second};

#[derive(Debug, Clone, Copy)]
enum Step {
    Requests(usize, u64, u64),
    Pass(u64),
    /// Time passes and no node tends its slices.
    Stand(u64),
    HoldUp(usize, bool),
    Execute(usize, u64),
    Arrive(usize, u64),
    Lose(usize, bool),
    Cut(usize, bool),
    GiveUp(usize),
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0_usize..4;
    prop_oneof![
        12 => (node.clone(), 1_u64..12, 1_u64..3).prop_map(|(node, count, cost)| Step::Requests(node, count, cost)),
        8 => (0_u64..40_000).prop_map(Step::Pass),
        1 => (0_u64..1_500_000).prop_map(Step::Pass),
        1 => (0_u64..1_500_000).prop_map(Step::Stand),
        3 => (node.clone(), any::<bool>()).prop_map(|(node, held_up)| Step::HoldUp(node, held_up)),
        3 => (node.clone(), 1_u64..6).prop_map(|(node, count)| Step::Execute(node, count)),
        4 => (node.clone(), 1_u64..6).prop_map(|(node, count)| Step::Arrive(node, count)),
        2 => (node.clone(), any::<bool>()).prop_map(|(node, executed)| Step::Lose(node, executed)),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, cut)| Step::Cut(node, cut)),
        2 => node.clone().prop_map(Step::GiveUp),
        1 => node.prop_map(Step::Crash),
    ]
}

fn run(fleet: &mut Fleet, steps: &[Step]) {
    let nodes = fleet.nodes.len();
    for step in steps {
        match *step {
            Step::Requests(node, count, cost) => {
                (0..count).for_each(|_| fleet.send(node % nodes, b"ann", cost));
            }
            Step::Pass(micros) => fleet.pass(Duration::from_micros(micros)),
            Step::Stand(micros) => fleet.stand(Duration::from_micros(micros)),
            Step::HoldUp(node, held_up) => fleet.nodes[node % nodes].wire.hold_up(held_up),
            Step::Execute(node, count) => (0..count).for_each(|_| {
                fleet.nodes[node % nodes].wire.execute();
            }),
            Step::Arrive(node, count) => (0..count).for_each(|_| {
                fleet.nodes[node % nodes].wire.arrive();
                fleet.settle();
            }),
            Step::Lose(node, executed) => {
                fleet.nodes[node % nodes].wire.lose(executed);
                fleet.settle();
            }
            Step::Cut(node, cut) => fleet.nodes[node % nodes].wire.cut(cut),
            Step::GiveUp(node) => fleet.give_up(node % nodes),
            Step::Crash(node) => fleet.crash(node % nodes),
        }
        fleet.assert_balanced();
        let held = fleet.server.held(&fleet.limit, b"ann");
        assert!(held <= fleet.ahead_max(), "{held} held");
    }
}

/// Lets everything on the wires arrive, and sees that nobody waits for ever.
fn quiesce(fleet: &mut Fleet) {
    for node in 0..fleet.nodes.len() {
        fleet.nodes[node].wire.hold_up(false);
        fleet.nodes[node].wire.cut(false);
        while fleet.nodes[node].wire.arrive() {
            fleet.settle();
        }
    }
    fleet.tend();
    assert_eq!(fleet.waiting(), 0, "somebody waits for nothing");
    fleet.pass(Duration::from_secs(2));
    fleet.assert_balanced();
    for node in &fleet.nodes {
        assert_eq!(node.leases.stats().held, 0, "{:?}", node.leases.stats());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // part of: B9, B10
    #[test]
    fn no_window_ever_sees_more_than_the_limit_and_epsilon(
        nodes in 1_usize..5, percent in 10_u32..70, steps in prop::collection::vec(step(), 1..400),
    ) {
        let limit = Limit::sliding_log(per_second(60)).unwrap();
        let mut fleet = Fleet::new(nodes, leased(limit, percent));
        run(&mut fleet, &steps);
        quiesce(&mut fleet);
        let most = 60 + fleet.ahead_max();
        prop_assert_eq!(history::check_window(&fleet.admitted, Duration::from_secs(1), most), Ok(()));
    }

    // part of: B9, B10
    #[test]
    fn a_window_of_the_clock_never_sees_more_than_the_limit(
        nodes in 1_usize..5, percent in 10_u32..70, steps in prop::collection::vec(step(), 1..400),
    ) {
        let limit = Limit::fixed_window(per_second(50)).unwrap();
        let mut fleet = Fleet::with_denials(nodes, leased(limit, percent));
        let start = fleet.clock.now();
        run(&mut fleet, &steps);
        quiesce(&mut fleet);
        let mut window = start;
        while window < fleet.clock.now() {
            let end = window.after(Duration::from_secs(1));
            let wholly = fleet.admitted.iter().filter(|one| one.sent >= window && one.answered < end);
            let admitted: u64 = wholly.map(|one| one.cost).sum();
            prop_assert!(admitted <= 50, "{admitted}");
            window = end;
        }
    }

    // part of: B9, B10
    #[test]
    fn a_bucket_never_gives_more_than_its_burst_its_rate_and_epsilon(
        nodes in 1_usize..5, percent in 10_u32..70, steps in prop::collection::vec(step(), 1..400),
    ) {
        let rate = Rate::per(40, Unit::Second);
        let mut fleet = Fleet::new(nodes, leased(Limit::token_bucket(rate, 60).unwrap(), percent));
        run(&mut fleet, &steps);
        quiesce(&mut fleet);
        let burst = 60 + fleet.ahead_max();
        prop_assert_eq!(history::check_bucket(&fleet.admitted, rate, burst), Ok(()));
    }
}
