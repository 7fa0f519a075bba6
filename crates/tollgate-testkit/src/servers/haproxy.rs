//! HAProxy with one thread and no logs.

use super::{Recipe, Server, StartError};
use crate::cpu::Core;

const BEFORE: &str = "\
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
";

/// Starts HAProxy with `sections` after the defaults, where `{addr0}` is to be bound.
pub fn haproxy(sections: &str, core: Option<Core>) -> Result<Server, StartError> {
    let recipe = Recipe {
        program: "haproxy",
        arguments: &["-db", "-f", "{config}"],
        config_name: "haproxy.cfg",
        addrs: 1,
        core,
    };
    recipe.start(&format!("{BEFORE}{sections}"))
}
