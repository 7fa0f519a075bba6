//! Nodes on one Redis to which everything happens that happens to a Redis.
//!
//! Every test is the same story with another cause: clients never stop asking, the store goes away
//! and comes back. Nobody is left without an answer, nobody waits longer than the time-out, the
//! fleet gives no more than the policy before and after and each node its share meanwhile, it
//! counts together again within a second, and each node says so once.
//!
//! covers: B6 (beside tests/fallback of tollgate-store); part of: B8
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

#[path = "support/fleet.rs"]
mod fleet;
mod support;

use std::{cell::RefCell, time::Duration};

use fleet::{Fleet, Outage, RETURN, alone, assert_in_time};
use tollgate_testkit::{
    faulty_link::{Fault, FaultyLink},
    servers::{Redis, RedisOptions, redis},
    wait::wait_until,
};

const NODES: usize = 3;

/// An outage made by commands on the server itself.
#[track_caller]
fn told(server: &Redis, fleet: &Fleet, begin: &[&str], end: &[&str], causes: &[&str]) {
    let ask = |commands: &[&str]| commands.iter().for_each(|command| drop(server.ask(command)));
    fleet.lives_through(&mut Outage {
        begin: &mut || ask(begin),
        end: &mut || ask(end),
        causes,
        keeps_levels: true,
        lasts: true,
    });
}

/// An outage of the way to the server.
#[track_caller]
fn cut_off(fault: Fault, causes: &[&str]) {
    let server = redis().unwrap();
    let link = FaultyLink::to(server.addr()).unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url_through(link.addr()));
    fleet.lives_through(&mut Outage {
        begin: &mut || link.set(fault),
        end: &mut || link.set(Fault::None),
        causes,
        keeps_levels: true,
        lasts: true,
    });
}

const TIMED_OUT: &str = "timed out after 250 ms";
const LOST: &[&str] = &["connection reset", "connection lost", "connection refused"];

#[test]
fn a_killed_server_is_done_without_until_it_is_back() {
    let server = RefCell::new(redis().unwrap());
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.borrow().url());
    // Twice, because the second outage must be told of as well.
    for _ in 0..2 {
        fleet.lives_through(&mut Outage {
            begin: &mut || server.borrow_mut().kill(),
            end: &mut || server.borrow_mut().restart().unwrap(),
            causes: LOST,
            keeps_levels: false,
            lasts: true,
        });
    }
}

#[test]
fn a_frozen_server_is_done_without_until_it_goes_on() {
    let server = redis().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url());
    fleet.lives_through(&mut Outage {
        begin: &mut || server.freeze(),
        end: &mut || server.thaw(),
        causes: &[TIMED_OUT],
        keeps_levels: true,
        lasts: true,
    });
}

#[test]
fn a_black_hole_is_a_lost_server() {
    cut_off(Fault::BlackHole, &[TIMED_OUT]);
}

#[test]
fn a_stalled_link_is_a_lost_server() {
    cut_off(Fault::Stall, &[TIMED_OUT]);
}

#[test]
fn resets_are_a_lost_server() {
    cut_off(Fault::Reset, LOST);
}

#[test]
fn a_link_of_one_byte_a_second_is_a_lost_server() {
    cut_off(Fault::Throttle { bytes_per_second: 1 }, &[TIMED_OUT]);
}

#[test]
fn a_link_slower_than_the_time_out_is_a_lost_server() {
    cut_off(Fault::Delay(Duration::from_millis(300)), &[TIMED_OUT]);
}

#[test]
fn connections_cut_within_an_answer_are_a_lost_server() {
    cut_off(Fault::CutAfter(3), LOST);
}

#[test]
fn a_server_that_talks_nonsense_is_a_lost_server() {
    cut_off(Fault::Garble, &[""]);
}

#[test]
fn a_paused_server_is_done_without() {
    let server = redis().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url());
    // Only writing is paused: a probe that merely reads would not notice.
    told(&server, &fleet, &["CLIENT PAUSE 100000 WRITE"], &["CLIENT UNPAUSE"], &[TIMED_OUT]);
}

/// What servers say of themselves differs from one to the next.
fn kinds() -> [RedisOptions; 3] {
    [RedisOptions::new(), RedisOptions::oldest(), RedisOptions::valkey()]
}

#[test]
fn a_full_server_is_done_without() {
    for options in kinds() {
        let server = options.memory_max(0).start().unwrap();
        let _alone = alone();
        let fleet = Fleet::start(NODES, &server.url());
        told(&server, &fleet, &["CONFIG SET maxmemory 1"], &["CONFIG SET maxmemory 0"], &["OOM"]);
    }
}

#[test]
fn a_server_that_became_a_replica_is_done_without() {
    for options in kinds() {
        let (server, other) = (options.start().unwrap(), options.start().unwrap());
        let _alone = alone();
        let fleet = Fleet::start(NODES, &server.url());
        let follow = format!("REPLICAOF 127.0.0.1 {}", other.addr().port());
        fleet.lives_through(&mut Outage {
            begin: &mut || {
                server.ask(&follow);
                server.wait_until_in_sync();
            },
            end: &mut || drop(server.ask("REPLICAOF NO ONE")),
            causes: &["READONLY", "LOADING", "MASTERDOWN", "connection lost"],
            keeps_levels: false,
            lasts: true,
        });
    }
}

#[test]
fn a_server_that_is_loading_is_done_without() {
    // Each key takes it a millisecond, and it looks up from loading every now and then.
    let options = RedisOptions::new()
        .debug_commands()
        .line("loading-process-events-interval-bytes 1024")
        .line("key-load-delay 1000");
    let server = options.start().unwrap();
    server.ask("DEBUG POPULATE 4000");
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url());
    let loading = RefCell::new(server.client().unwrap());
    fleet.lives_through(&mut Outage {
        begin: &mut || loading.borrow_mut().send(&["DEBUG", "RELOAD"]).unwrap(),
        end: &mut || drop(loading.borrow_mut().receive().unwrap().fine()),
        causes: &["LOADING", TIMED_OUT],
        keeps_levels: true,
        lasts: true,
    });
}

#[test]
fn a_changed_password_is_an_outage_until_it_is_changed_back() {
    let server = RedisOptions::new().password("right").start().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url());
    // Who is connected stays so, whatever the password is now.
    let changer = RefCell::new(server.client().unwrap());
    let ask = |command| drop(changer.borrow_mut().ask(command).unwrap().fine());
    fleet.lives_through(&mut Outage {
        begin: &mut || {
            ask("CONFIG SET requirepass other");
            ask("CLIENT KILL TYPE normal");
        },
        end: &mut || ask("CONFIG SET requirepass right"),
        causes: &["wrong user name or password", "connection lost", "connection reset"],
        keeps_levels: true,
        lasts: true,
    });
}

#[test]
fn a_single_reset_is_over_in_a_moment() {
    let server = redis().unwrap();
    let link = FaultyLink::to(server.addr()).unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url_through(link.addr()));
    fleet.forget_the_past();
    let (seen, ()) = fleet.under_traffic(|running| {
        running.wait_for_more(30);
        link.reset_once();
        wait_until(RETURN, || fleet.is_shared()).unwrap();
        running.wait_for_more(30);
    });
    assert_in_time(&seen, NODES);
    fleet.assert_told_once_at_most();
}

// part of: B2
#[test]
fn a_server_that_forgot_its_scripts_is_told_them_again() {
    let server = redis().unwrap();
    let _alone = alone();
    let fleet = Fleet::start(NODES, &server.url());
    fleet.forget_the_past();
    let (seen, ()) = fleet.under_traffic(|running| {
        for _ in 0..5 {
            running.wait_for_more(10);
            server.ask("SCRIPT FLUSH");
            assert!(fleet.is_shared());
        }
    });
    assert_in_time(&seen, NODES);
    fleet.assert_never_disabled();
    fleet.assert_never_too_many(&seen);
}
