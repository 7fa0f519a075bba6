//! The whole program over loopback.

mod support;

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::symlink,
};

use rustix::process::Signal;
use support::{Tollgate, config, config_with};
use tollgate_testkit::{
    http_client::{Connection, get},
    process::Process,
    wait::{PATIENCE, wait_until},
};

const TEN: &str = "{algorithm: token_bucket, rate: 10/s, burst: 15}";
/// Slow enough that nothing flows in while a test runs.
const HOURLY: &str = "{algorithm: token_bucket, rate: 4/h, burst: 4}";

// covers: C3, C4, C5
#[test]
fn of_twenty_at_once_fifteen_pass() {
    let tollgate = Tollgate::start(&config("{algorithm: token_bucket, rate: 15/h, burst: 15}"));
    let statuses = tollgate.statuses(20);
    assert_eq!(statuses[..15], [200; 15]);
    assert_eq!(statuses[15..], [429; 5]);
    let refused = tollgate.get("/");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    assert_eq!(refused.header("x-ratelimit-limit"), Some("15"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let body: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((&body["status"], &body["policy"]), (&429.into(), &"p".into()));
    assert_eq!(body["correlationId"], refused.header("x-correlation-id").unwrap());
}

// covers: C4
#[test]
fn the_headers_say_what_is_left() {
    let tollgate = Tollgate::start(&config(TEN));
    let first = tollgate.get("/");
    assert_eq!(first.header("x-ratelimit-limit"), Some("10"));
    assert_eq!(first.header("x-ratelimit-remaining"), Some("14"));
    assert!(first.header("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 1_700_000_000);
    assert_eq!(first.header("retry-after"), None);
}

// covers: C2
#[test]
fn a_route_without_a_policy_has_no_limit_and_no_headers() {
    let tollgate = Tollgate::start(&config(HOURLY).replace("    policies: [p]\n", ""));
    for _ in 0..10 {
        let answer = tollgate.get("/");
        assert_eq!((answer.status, answer.header("x-ratelimit-limit")), (200, None));
    }
}

// covers: C14
#[test]
fn a_dry_run_refuses_nothing_and_counts() {
    let tollgate = Tollgate::start(&config_with(HOURLY, "    enforce: false\n", ""));
    assert_eq!(tollgate.statuses(6), [200; 6]);
    let metrics = tollgate.metrics();
    let counted = r#"ratelimit_requests_dry_run_limited_total{tier="p",endpoint="/"} 2"#;
    assert!(metrics.contains(counted), "{metrics}");
}

// part of: C8
#[test]
fn a_forwarded_address_counts_only_from_a_trusted_peer() {
    let spoofed = |tollgate: &Tollgate, from: &str| {
        (0..6)
            .map(|turn| {
                tollgate.get_with("/", &format!("X-Forwarded-For: {from}{turn}\r\n")).status
            })
            .collect::<Vec<_>>()
    };
    let untrusting = Tollgate::start(&config(HOURLY));
    assert_eq!(spoofed(&untrusting, "203.0.113."), [200, 200, 200, 200, 429, 429]);
    let trusting = Tollgate::start(&config_with(HOURLY, "", "trusted_proxies: [127.0.0.0/8]\n"));
    assert_eq!(spoofed(&trusting, "203.0.113."), [200; 6]);
    // Addresses of one IPv6 network are one client.
    assert_eq!(spoofed(&trusting, "2001:db8:1:2::"), [200, 200, 200, 200, 429, 429]);
    // What the client itself put in front changes nothing.
    assert_eq!(
        (0..5)
            .map(|turn| trusting
                .get_with("/", &format!("X-Forwarded-For: 10.1.1.{turn}, 198.51.100.7\r\n"))
                .status)
            .collect::<Vec<_>>(),
        [200, 200, 200, 200, 429]
    );
}

// covers: B12; part of: C9
#[test]
fn a_changed_file_is_in_force_within_a_second_and_levels_are_kept() {
    let mut tollgate = Tollgate::start(&config(HOURLY));
    assert_eq!(tollgate.statuses(3), [200; 3]);
    tollgate.rewrite(&config("{algorithm: token_bucket, rate: 8/h, burst: 8}"));
    wait_until(std::time::Duration::from_secs(1), || tollgate.check("new", 0)["limit"] == 8)
        .unwrap();
    // Three of four were used: six of eight.
    assert_eq!(tollgate.get("/").header("x-ratelimit-remaining"), Some("1"));
    tollgate.wait_for("configuration reloaded");
    assert!(tollgate.metrics().contains(r#"tollgate_config_reloads_total{result="ok"} 1"#));
}

// covers: G6; part of: C9
#[test]
fn a_broken_file_leaves_the_last_good_one_in_force() {
    let mut tollgate = Tollgate::start(&config(HOURLY));
    assert_eq!(tollgate.statuses(1), [200]);
    tollgate.rewrite(&config("{algorithm: token_bucket, rate: nonsense}"));
    tollgate.wait_for("the last good one stays in force");
    assert!(tollgate.process.output().contains("tollgate.yaml:4:"), "names the line");
    assert_eq!(tollgate.statuses(5), [200, 200, 200, 429, 429]);
    // And a mended one is taken again.
    tollgate.rewrite(&config("{algorithm: token_bucket, rate: 40/h, burst: 40}"));
    wait_until(PATIENCE, || tollgate.check("new", 0)["limit"] == 40).unwrap();
}

// part of: C9
#[test]
fn a_swapped_link_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("v1"), folder.path().join("v2"));
    for (version, rate) in [(&old, "4/h"), (&new, "9/h")] {
        std::fs::create_dir(version).unwrap();
        let text = config(&format!("{{algorithm: token_bucket, rate: {rate}}}"));
        std::fs::write(version.join("tollgate.yaml"), text).unwrap();
    }
    symlink("v1", folder.path().join("..data")).unwrap();
    let path = folder.path().join("tollgate.yaml");
    symlink("..data/tollgate.yaml", &path).unwrap();
    let mut process =
        Process::start(support::command(&["run", "-c", path.to_str().unwrap()])).unwrap();
    let gateway = support::listening(&mut process, "gateway");
    let http = support::listening(&mut process, "http");
    let tollgate = Tollgate { process, gateway, http, folder };
    assert_eq!(tollgate.check("ann", 0)["limit"], 4);
    symlink("v2", tollgate.folder.path().join("..new")).unwrap();
    std::fs::rename(tollgate.folder.path().join("..new"), tollgate.folder.path().join("..data"))
        .unwrap();
    wait_until(PATIENCE, || tollgate.check("ann", 0)["limit"] == 9).unwrap();
}

#[test]
fn a_hangup_signal_reloads() {
    let mut tollgate = Tollgate::start(&config(HOURLY));
    tollgate.process.signal(Signal::HUP).unwrap();
    tollgate.wait_for("configuration reloaded");
    assert_eq!(tollgate.get("/").status, 200);
}

#[test]
fn what_only_a_start_can_change_is_said() {
    let mut tollgate = Tollgate::start(&config(HOURLY));
    tollgate.rewrite(&config_with(HOURLY, "", "workers: 7\n"));
    tollgate.wait_for("takes effect with the next start");
}

// part of: G5
#[test]
fn a_stop_finishes_what_is_in_flight() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = config(HOURLY)
        .replace("builtin:echo", &format!("http://{}", upstream.local_addr().unwrap()));
    let tollgate = Tollgate::start(&text);
    assert_eq!(get(tollgate.http, "/healthz").unwrap().status, 200);
    assert_eq!(get(tollgate.http, "/readyz").unwrap().status, 200);
    let mut client = Connection::open(tollgate.gateway).unwrap();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut asked, _) = upstream.accept().unwrap();
    assert!(asked.read(&mut [0; 1_024]).unwrap() > 0);
    tollgate.process.signal(Signal::TERM).unwrap();
    let mut process = tollgate.process;
    process.wait_for_output(PATIENCE, "stopping").unwrap();
    // Nobody new gets in, and the one who waits gets its answer.
    wait_until(PATIENCE, || Connection::open(tollgate.gateway).is_err()).unwrap();
    asked.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").unwrap();
    let answer = client.receive().unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "late"));
    assert_eq!(process.wait_for_end(PATIENCE).unwrap().code(), Some(0));
}

// covers: B13
#[test]
fn a_restart_does_not_refill_anybody() {
    let folder = tempfile::tempdir().unwrap();
    let save =
        format!("store: {{kind: memory, save: {}}}\n", folder.path().join("counters").display());
    let text =
        |rate: u64| config_with(&format!("{{algorithm: token_bucket, rate: {rate}/h}}"), "", &save);
    let tollgate = Tollgate::start_in(folder, &text(4));
    assert_eq!(tollgate.check("ann", 3)["remaining"], 1);
    let (code, output, folder) = tollgate.stop();
    assert_eq!(code, Some(0), "{output}");
    let tollgate = Tollgate::start_in(folder, &text(4));
    assert_eq!(tollgate.check("ann", 0)["remaining"], 1);
    let (_, _, folder) = tollgate.stop();
    // Even when the numbers have changed meanwhile.
    let tollgate = Tollgate::start_in(folder, &text(8));
    assert_eq!(tollgate.check("ann", 0)["remaining"], 2);
    let (_, _, folder) = tollgate.stop();
    // A damaged file is refused with a warning, and the program starts.
    std::fs::write(folder.path().join("counters"), "rubbish").unwrap();
    let mut tollgate = Tollgate::start_in(folder, &text(8));
    tollgate.wait_for("does not hold saved counters, or is damaged");
    assert_eq!(tollgate.check("ann", 0)["remaining"], 8);
}

// covers: C15, C6
#[test]
fn the_access_log_has_a_line_for_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = format!("access_log: {{format: json, path: {}}}\n", path.display());
    let tollgate = Tollgate::start_in(
        folder,
        &config_with("{algorithm: fixed_window, rate: 2/year}", "", &log),
    );
    for line in ["X-Correlation-ID: first\r\n", "", "X-Correlation-ID: x\" y\r\n"] {
        tollgate.get_with("/a?b=c", line);
    }
    let (_, _, folder) = tollgate.stop();
    let text = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Two workers write, each in its own time.
    let of = |status: u64| lines.iter().filter(|line| line["status"] == status).collect::<Vec<_>>();
    assert_eq!((of(200).len(), of(429).len()), (2, 1), "{text}");
    assert!(of(200).iter().any(|line| line["correlation_id"] == "first"));
    let refused = of(429)[0];
    assert_ne!(refused["correlation_id"], "x\" y", "an id that could break a log is replaced");
    assert_eq!((&refused["limited"], &refused["policy"]), (&true.into(), &"p".into()));
}

// part of: G1
#[test]
fn a_client_cannot_add_a_series() {
    let tollgate = Tollgate::start(&config(HOURLY));
    tollgate.get("/");
    let series = |text: String| text.lines().filter(|line| !line.starts_with('#')).count();
    let before = series(tollgate.metrics());
    for turn in 0..50 {
        tollgate.get_with(
            &format!("/{turn}"),
            &format!("X-Odd-{turn}: {turn}\r\nUser-Agent: {turn}\r\n"),
        );
        tollgate.check(&format!("key {turn}"), 1);
    }
    let metrics = tollgate.metrics();
    assert!(series(metrics.clone()) <= before + 2, "one status was new");
    assert!(
        metrics.contains(r#"gateway_request_total{status="429",route_path="/"} 47"#),
        "{metrics}"
    );
}

#[test]
fn the_quickstart_limits_the_echo() {
    let text = include_str!("../src/quickstart.yaml").replace(":8080", ":0").replace(":8082", ":0");
    let tollgate = Tollgate::start(&text);
    let answer = tollgate.get("/hello");
    assert_eq!((answer.status, answer.header("x-ratelimit-limit")), (200, Some("10")));
    assert!(answer.text().contains("\"path\": \"/hello\""));
    // A burst of fifteen leaves the limit exceeded, however fast the machine is.
    assert!(tollgate.statuses(200).contains(&429));
}
