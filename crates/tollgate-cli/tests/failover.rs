//! Nodes on a Redis that mends itself: Sentinel and Cluster.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

#[path = "support/fleet.rs"]
mod fleet;
mod support;

use std::{cell::RefCell, iter, thread};

use fleet::{Fleet, Node, Outage, alone, assert_in_time, is_allowed};
use tollgate_testkit::{
    servers::{RedisCluster, RedisSentinel, slot_of},
    wait::{PATIENCE, wait_until},
};

const NODES: usize = 3;

#[test]
fn a_master_that_dies_is_replaced_by_its_sentinels() {
    let set = RefCell::new(RedisSentinel::start().unwrap());
    let _alone = alone();
    let fleet = Fleet::start(NODES, &set.borrow().url());
    let old = set.borrow().master();
    fleet.lives_through(&mut Outage {
        begin: &mut || set.borrow_mut().servers[old].kill(),
        end: &mut || {
            set.borrow().wait_for_other_master(old);
        },
        causes: &["connection", "READONLY"],
        keeps_levels: true,
        lasts: false,
    });
    // What was the master comes back as a replica, and nobody takes it for more.
    set.borrow_mut().servers[old].restart().unwrap();
    let demoted = || set.borrow().servers[old].info("role").as_deref() == Some("slave");
    wait_until(PATIENCE, demoted).unwrap();
    assert!(fleet.is_shared());
    fleet.assert_told(1);
}

#[test]
fn a_master_that_freezes_is_replaced_and_not_listened_to_afterwards() {
    let set = RedisSentinel::start().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &set.url());
    let old = set.master();
    fleet.lives_through(&mut Outage {
        begin: &mut || set.servers[old].freeze(),
        end: &mut || {
            set.wait_for_other_master(old);
        },
        causes: &["timed out", "connection"],
        keeps_levels: true,
        lasts: false,
    });
    // It still thinks that it is the master when it wakes up.
    set.servers[old].thaw();
    let demoted = || {
        assert!(fleet.is_shared());
        set.servers[old].info("role").as_deref() == Some("slave")
    };
    wait_until(PATIENCE, demoted).unwrap();
    fleet.assert_told(1);
}

#[test]
fn a_planned_failover_of_sentinel_loses_nothing() {
    let set = RedisSentinel::start().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &set.url());
    assert_eq!(fleet.take_all("purse", "ann", 60), 60);
    let (seen, ()) = fleet.under_traffic(|running| {
        running.wait_for_more(50);
        set.failover();
        wait_until(fleet::RETURN, || fleet.is_shared()).unwrap();
        running.wait_for_more(50);
    });
    assert_in_time(&seen, NODES);
    assert_eq!(fleet.take_all("purse", "ann", 90), 60);
    fleet.assert_told_once_at_most();
}

/// Fresh keys in slots that this master has in the beginning.
fn keys_of(master: usize) -> Box<dyn Fn(u64) -> String + Sync> {
    let is_own = move |key: &String| usize::from(slot_of(key.as_bytes())) * 3 / 16_384 == master;
    Box::new(move |number| {
        let mut keys = (0..).map(|attempt| format!("fresh-{number}-{attempt}"));
        keys.find(is_own).unwrap()
    })
}

#[test]
fn a_master_of_a_cluster_that_dies_is_replaced_by_its_replica() {
    let cluster = RefCell::new(RedisCluster::start().unwrap());
    let slot = slot_of(b"all");
    let old = cluster.borrow().owner_of(slot);
    let _alone = alone();
    let mut fleet = Fleet::start(NODES, &cluster.borrow().url());
    fleet.fresh_key = keys_of(old);
    fleet.lives_through(&mut Outage {
        begin: &mut || cluster.borrow_mut().nodes[old].kill(),
        end: &mut || {
            cluster.borrow().wait_for_other_owner(slot, old);
        },
        causes: &["connection"],
        keeps_levels: true,
        lasts: false,
    });
    cluster.borrow_mut().nodes[old].restart().unwrap();
    cluster.borrow().wait_until_whole();
    assert!(fleet.is_shared());
    fleet.assert_told(1);
}

#[test]
fn a_planned_failover_of_a_cluster_loses_nothing() {
    let cluster = RedisCluster::start().unwrap();
    let slot = slot_of(b"all");
    let _alone = alone();
    let mut fleet = Fleet::start(NODES, &cluster.url());
    fleet.fresh_key = keys_of(cluster.owner_of(slot));
    assert_eq!(fleet.take_all("purse", "all", 60), 60);
    let (seen, ()) = fleet.under_traffic(|running| {
        running.wait_for_more(50);
        cluster.failover(slot);
        wait_until(fleet::RETURN, || fleet.is_shared()).unwrap();
        running.wait_for_more(50);
    });
    assert_in_time(&seen, NODES);
    assert_eq!(fleet.take_all("purse", "all", 90), 60);
    fleet.assert_told_once_at_most();
}

#[test]
fn a_slot_that_moves_is_followed_without_an_outage_and_nothing_is_given_twice() {
    let cluster = RedisCluster::start().unwrap();
    let slot = slot_of(b"all");
    let _alone = alone();
    let fleet = Fleet::start(NODES, &cluster.url());
    let keys = keys_in(slot, 6);
    let (seen, given) = fleet.under_traffic(|_| {
        thread::scope(|scope| {
            // Each purse is emptied by all nodes at once, and the next is begun.
            let empty = |node: &Node| {
                let asked = keys.iter().flat_map(|key| iter::repeat_n(key, 121));
                asked.filter(|key| is_allowed(&node.check("pair", key, 1))).count()
            };
            let takers: Vec<_> =
                fleet.nodes.iter().map(|node| scope.spawn(move || empty(node))).collect();
            for turn in 1.. {
                move_slot(&cluster, slot, turn % 3);
                if turn >= 4 && takers.iter().all(|taker| taker.is_finished()) {
                    break;
                }
            }
            takers.into_iter().map(|taker| taker.join().unwrap()).sum::<usize>()
        })
    });
    assert_eq!(given, keys.len() * 120);
    assert_in_time(&seen, NODES);
    fleet.assert_never_disabled();
    fleet.assert_never_too_many(&seen);
}

/// Key by key: requests with several limits meet some that are here and some that are there.
fn move_slot(cluster: &RedisCluster, slot: u16, to: usize) {
    let moving = cluster.begin_move(slot, to);
    while moving.take_all_keys() > 0 {}
    moving.finish();
}

fn keys_in(slot: u16, count: usize) -> Vec<String> {
    let keys = (0..).map(|number| format!("k{number}"));
    keys.filter(|key| slot_of(key.as_bytes()) == slot).take(count).collect()
}
