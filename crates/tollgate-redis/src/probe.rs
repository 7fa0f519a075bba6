//! Asking a server how it is, beside what it is there for.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tokio::time::sleep;

use crate::{
    ErrorKind,
    base::Base,
    dial::Connection,
    fault::Fault,
    heartbeat,
    server::{Run, Server},
};

/// Ten times a second costs the server nothing, and it is found again long before a second is over.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks until the server answers again, or is no longer one to ask.
pub(crate) async fn until_it_answers(base: Arc<Base>, server: Arc<Server>) {
    while !server.is_retired() && !base.is_closed() {
        match heartbeat::beat(&base, &server).await {
            Ok(()) => {
                server.breaker.close();
                break;
            }
            Err(fault) => server.breaker.still(&fault),
        }
        base.assess();
        sleep(PAUSE).await;
    }
    base.assess();
}

/// Which run of the server this is; if it will not tell, every loss of connections may be a new one.
pub(crate) async fn run_of(connection: &mut Connection, generation: u64) -> Result<Run, Fault> {
    match info(connection, "server").await? {
        Some(info) => Ok(field(&info, "run_id").map_or(Run::Untold { generation }, Run::Known)),
        None => Ok(Run::Untold { generation }),
    }
}

/// The first time a server is met: warns when it would throw keys away.
pub(crate) async fn check_eviction(base: &Arc<Base>, server: &Arc<Server>) {
    if !server.unchecked() {
        return;
    }
    let link = base.background_lane().link(server);
    let Ok(reply) = link.ask(&info_command("memory")).await else { return };
    let policy = text(&reply).and_then(|info| field(&info, "maxmemory_policy"));
    if let Some(policy) = policy.filter(|policy| policy != "noeviction") {
        tracing::warn!(
            server = %server.host,
            "Redis is set to evict keys (maxmemory-policy {policy}): a client whose key is evicted \
             starts with a full limit again; noeviction is right here"
        );
    }
}

async fn info(connection: &mut Connection, section: &str) -> Result<Option<String>, Fault> {
    match connection.ask(&info_command(section)).await {
        Ok(reply) => Ok(text(&reply)),
        // Not everybody may ask this; but who must log in first may ask nothing.
        Err(fault) if fault.kind == ErrorKind::Denied && !fault.needs_login() => Ok(None),
        Err(fault) if fault.kind == ErrorKind::Other => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn info_command(section: &str) -> Cmd {
    let mut command = redis::cmd("INFO");
    command.arg(section);
    command
}

fn text(reply: &Value) -> Option<String> {
    match reply {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

fn field(info: &str, name: &str) -> Option<String> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
    info.lines().find_map(value)
}
