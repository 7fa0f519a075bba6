//! What one decision over HTTP costs: processor time of the server per `POST`, over a thousand
//! keys of which most are refused after a while, as in service.

use tollgate_testkit::{http_client::json_request, servers::Server};

use crate::{
    proxies::{cpu_side, present, throttlecrab, tollgate},
    rounds::compare as compare_sides,
};

const KEYS: usize = 1_000;

pub(crate) fn compare() -> anyhow::Result<()> {
    let ours = tollgate(include_str!("../peers/check-api.tollgate.yaml"))?;
    let peers = present("check-api", [throttlecrab()]);
    let ours_requests =
        requests(&ours, "/v1/check", |key| format!(r#"{{"policy":"all","key":"{key}","cost":1}}"#));
    let peer_requests: Vec<_> =
        peers.iter().map(|(_, server)| requests(server, "/throttle", throttlecrab_body)).collect();
    let mut sides = vec![cpu_side("tollgate", &ours, &ours_requests, 200)];
    for ((name, server), requests) in peers.iter().zip(&peer_requests) {
        sides.push(cpu_side(name, server, requests, 200));
    }
    compare_sides("check-api", "µs-cpu/request", sides)
}

fn throttlecrab_body(key: &str) -> String {
    format!(r#"{{"key":"{key}","max_burst":15,"count_per_period":10,"period":1,"quantity":1}}"#)
}

fn requests(server: &Server, target: &str, body: impl Fn(&str) -> String) -> Vec<Vec<u8>> {
    let keys = (0..KEYS).map(|number| format!("192.168.{}.{}", number / 250, number % 250));
    keys.map(|key| json_request(server.addr(), target, &body(&key)).into_bytes()).collect()
}
