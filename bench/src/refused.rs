//! What it costs to refuse a request: processor time of the proxy per 429, each with the answer
//! it gives by itself.

use crate::{
    proxies::{self, cpu_side, get_request, haproxy, in_front_of, nginx, present, tollgate},
    rounds::compare as compare_sides,
};

pub(crate) fn compare() -> anyhow::Result<()> {
    let upstream = proxies::upstream()?;
    let config = |text: &str| in_front_of(&upstream, text);
    let ours = tollgate(&config(include_str!("../peers/refused.tollgate.yaml")))?;
    let peers = present(
        "refused",
        [
            nginx(&config(include_str!("../peers/refused.nginx.conf"))),
            haproxy(&config(include_str!("../peers/refused.haproxy.cfg"))),
        ],
    );
    let requests = [get_request()];
    let mut sides = vec![cpu_side("tollgate", &ours, &requests, 429)];
    sides.extend(peers.iter().map(|(name, server)| cpu_side(name, server, &requests, 429)));
    compare_sides("refused", "µs-cpu/request", sides)
}
