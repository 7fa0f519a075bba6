//! Where to go when a server of a cluster says that it is not the one.

use std::{sync::Arc, time::Duration};

use redis::{ServerError, ServerErrorKind};
use tokio::time::{Instant, timeout_at};

use crate::{
    ErrorKind, Host, apart,
    base::Base,
    exchange::Refused,
    fault::Fault,
    lane::Lane,
    link::{Waiting, Way},
    request::Request,
    server::Server,
};

/// A slot moves once, perhaps twice while one asks; more is two servers pointing at each other.
const REDIRECTS_MAX: u8 = 4;

/// A key is on its way from one server to another for about this long.
const PAUSE: Duration = Duration::from_millis(2);

/// Sends a group of requests where it belongs; else gives it back with what is wrong.
pub(crate) fn elsewhere(
    base: &Arc<Base>,
    server: &Arc<Server>,
    group: Vec<Waiting>,
    refused: Refused,
) -> Option<(Vec<Waiting>, Fault)> {
    let error = match refused {
        Refused::Server(error) => error,
        Refused::Nonsense(text) => return Some((group, Fault::new(ErrorKind::Other, text))),
    };
    let now = Instant::now();
    let hopeless =
        |waiting: &Waiting| waiting.way.redirects >= REDIRECTS_MAX || waiting.deadline <= now;
    if group.iter().any(hopeless) {
        return give_up(group, &error);
    }
    match error.kind() {
        Some(ServerErrorKind::Moved) => {
            base.look_again.notify_one();
            follow(base, server, group, &error, |way| Way { redirects: way.redirects + 1, ..way })
        }
        Some(ServerErrorKind::Ask) => follow(base, server, group, &error, |way| Way {
            redirects: way.redirects + 1,
            asking: true,
            alone: true,
        }),
        Some(ServerErrorKind::TryAgain) => {
            try_again(base, server, group);
            None
        }
        _ => Some((group, Fault::server(&error))),
    }
}

fn follow(
    base: &Arc<Base>,
    server: &Server,
    mut group: Vec<Waiting>,
    error: &ServerError,
    way: impl Fn(Way) -> Way,
) -> Option<(Vec<Waiting>, Fault)> {
    let there = target(error, &server.host).and_then(|host| base.topology.server_at(&host));
    let Some(there) = there else { return Some((group, Fault::server(error))) };
    for waiting in &mut group {
        waiting.way = way(Way { asking: false, ..waiting.way });
    }
    Lane::of_this_thread(base).link(&there).submit(group);
    None
}

/// Nothing is wrong with a server whose slot is moving for longer than one can wait.
fn give_up(group: Vec<Waiting>, error: &ServerError) -> Option<(Vec<Waiting>, Fault)> {
    let fault = Fault::server(error);
    if error.kind() != Some(ServerErrorKind::TryAgain) {
        return Some((group, fault));
    }
    group.into_iter().for_each(|waiting| waiting.answer(Err(fault.clone())));
    None
}

/// Some of its keys are here and some are there: each request by itself, and if that does not help
/// each counter by itself. What cannot be divided tries again a little later.
fn try_again(base: &Arc<Base>, server: &Arc<Server>, group: Vec<Waiting>) {
    let mut later = Vec::new();
    for mut waiting in group {
        let parts = if waiting.way.alone { apart::by_counter(&waiting.request) } else { None };
        match parts {
            Some(parts) => drop(tokio::spawn(divided(Arc::clone(base), waiting, parts))),
            None => {
                waiting.way.alone = true;
                later.push(waiting);
            }
        }
    }
    let (base, server) = (Arc::clone(base), Arc::clone(server));
    tokio::spawn(async move {
        tokio::time::sleep(PAUSE).await;
        Lane::of_this_thread(&base).link(&server).submit(later);
    });
}

async fn divided(base: Arc<Base>, waiting: Waiting, parts: Vec<Request>) {
    let asked = timeout_at(waiting.deadline, apart::ask(&base, parts)).await;
    waiting.answer(asked.unwrap_or_else(|_| Err(Fault::timed_out(base.timeout()))));
}

/// From `3999 127.0.0.1:6381`; without a host it is the one that was asked.
fn target(error: &ServerError, asked: &Host) -> Option<Host> {
    let (name, port) = error.details()?.split_whitespace().nth(1)?.rsplit_once(':')?;
    let name = if name.is_empty() { &asked.name } else { name };
    Some(Host { name: name.to_owned(), port: port.parse().ok()? })
}
