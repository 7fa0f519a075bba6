//! One Redis server that keeps nothing.

use super::{Recipe, Server, StartError};

const CONFIG: &str = "\
bind 127.0.0.1
port {port0}
dir {folder}
save \"\"
appendonly no
";

/// Starts an empty Redis.
pub fn redis() -> Result<Server, StartError> {
    let recipe = Recipe {
        program: "redis-server",
        arguments: &["{config}"],
        config_name: "redis.conf",
        addrs: 1,
        core: None,
    };
    recipe.start(CONFIG)
}
