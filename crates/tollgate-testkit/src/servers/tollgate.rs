//! Our own program, as it is built.

use std::path::Path;

use super::{Recipe, Server, StartError};
use crate::cpu::Core;

/// Starts `program` with this configuration, which is to listen on `{addr0}` to `{addrN}`.
pub fn tollgate(
    program: &Path,
    config: &str,
    addrs: usize,
    core: Option<Core>,
) -> Result<Server, StartError> {
    let recipe = Recipe {
        program: &program.to_string_lossy(),
        arguments: &["run", "-c", "{config}"],
        config_name: "tollgate.yaml",
        addrs,
        core,
    };
    recipe.start(config)
}
