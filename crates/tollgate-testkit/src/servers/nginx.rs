//! nginx with one worker and no logs.

use super::{Recipe, Server, StartError};
use crate::cpu::Core;

const AROUND: &str = "\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
    access_log off;
    server_tokens off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
HTTP
}
";

/// Starts nginx with `http` inside its `http` block, where `{addr0}` is to be listened on.
pub fn nginx(http: &str, core: Option<Core>) -> Result<Server, StartError> {
    let recipe = Recipe {
        program: "nginx",
        // Without -e it writes to /var/log before it has read where to.
        arguments: &["-e", "stderr", "-p", "{folder}", "-c", "{config}"],
        config_name: "nginx.conf",
        addrs: 1,
        core,
    };
    recipe.start(&AROUND.replace("HTTP", http))
}
