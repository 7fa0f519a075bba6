//! Envoy with one worker thread, and nothing shared with another one on the machine.

use super::{Recipe, Server, StartError};
use crate::cpu::Core;

/// Starts Envoy with this bootstrap configuration (YAML), where a listener is on `{port0}`.
pub fn envoy(bootstrap: &str, core: Option<Core>) -> Result<Server, StartError> {
    let recipe = Recipe {
        program: "envoy",
        arguments: &[
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "--log-level",
            "error",
            "-c",
            "{config}",
        ],
        config_name: "envoy.yaml",
        addrs: 1,
        core,
    };
    recipe.start(bootstrap)
}
