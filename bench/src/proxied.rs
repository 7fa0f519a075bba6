//! What it costs to limit a request and forward it: processor time of the proxy per request, with
//! a response of 1 KB, 64 connections, and limits so high that nothing is refused.

use crate::{
    proxies::{self, cpu_side, envoy, get_request, haproxy, in_front_of, nginx, present, tollgate},
    rounds::compare as compare_sides,
};

pub(crate) fn compare() -> anyhow::Result<()> {
    let upstream = proxies::upstream()?;
    let config = |text: &str| in_front_of(&upstream, text);
    let ours = tollgate(&config(include_str!("../peers/proxied.tollgate.yaml")))?;
    let peers = present(
        "proxied",
        [
            nginx(&config(include_str!("../peers/proxied.nginx.conf"))),
            envoy(&config(include_str!("../peers/proxied.envoy.yaml"))),
            haproxy(&config(include_str!("../peers/proxied.haproxy.cfg"))),
        ],
    );
    let requests = [get_request()];
    let mut sides = vec![cpu_side("tollgate", &ours, &requests, 200)];
    sides.extend(peers.iter().map(|(name, server)| cpu_side(name, server, &requests, 200)));
    compare_sides("proxied", "µs-cpu/request", sides)
}
