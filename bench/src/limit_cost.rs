//! What a limit adds to a proxied request: the same gateway with a policy on its route and
//! without. The difference holds the key, the decision, the headers and the counters.

use crate::{
    proxies::{self, cpu_side, get_request, in_front_of, tollgate},
    rounds::{alternate, figure},
};

pub(crate) fn measure() -> anyhow::Result<()> {
    let upstream = proxies::upstream()?;
    let config = |text: &str| in_front_of(&upstream, text);
    let limited = tollgate(&config(include_str!("../peers/proxied.tollgate.yaml")))?;
    let unlimited = tollgate(&config(include_str!("../peers/unlimited.tollgate.yaml")))?;
    let requests = [get_request()];
    let mut sides = [
        cpu_side("limited", &limited, &requests, 200),
        cpu_side("unlimited", &unlimited, &requests, 200),
    ];
    let summaries = alternate(&mut sides)?;
    for (side, summary) in sides.iter().zip(&summaries) {
        figure("limit-cost", &side.name, summary.median, "µs-cpu/request");
    }
    let difference = (summaries[0].median - summaries[1].median) * 1_000.0;
    figure("limit-cost", "difference", difference, "ns-cpu/request");
    Ok(())
}
