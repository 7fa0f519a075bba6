//! One master with two replicas, and three Sentinels that watch over them.
//!
//! Sentinels find each other by messages sent every two seconds. Here each is told at the start
//! who the others are, so that a set is complete as soon as it runs. Times are as short as a
//! machine under load allows: a frozen master is replaced within a few seconds.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use super::{Recipe, Redis, RedisOptions, Server, StartError};
use crate::{
    ports::free_addrs,
    resp_client::RespClient,
    wait::{PATIENCE, wait_for, wait_until},
};

const SENTINELS: usize = 3;
const REPLICAS: usize = 2;

const CONFIG: &str = "\
bind 127.0.0.1
dir {folder}
";

const WATCH: &str = "\
sentinel monitor main 127.0.0.1 {master} 2
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
";

/// A running set; all of it ends when dropped.
#[derive(Debug)]
pub struct RedisSentinel {
    /// The servers with the data; the first was the master when all began.
    pub servers: Vec<Redis>,
    /// Who watches over them.
    pub sentinels: Vec<Server>,
}

impl RedisSentinel {
    /// The name under which the Sentinels know the master.
    pub const MASTER: &str = "main";

    /// Starts a set of servers without anything in particular.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&RedisOptions::new())
    }

    /// Starts a set whose servers all have these options.
    pub fn start_with(options: &RedisOptions) -> Result<Self, StartError> {
        let master = options.start()?;
        let following = options.clone().replica_of(master.addr());
        let mut servers = vec![master];
        for _ in 0..REPLICAS {
            servers.push(following.start()?);
        }
        servers[1..].iter().for_each(Redis::wait_until_in_sync);
        let sentinels = start_sentinels(&servers, options)?;
        let set = Self { servers, sentinels };
        set.wait_until_complete();
        Ok(set)
    }

    /// `redis+sentinel://` with all Sentinels.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|one| one.addr().to_string()).collect();
        format!("redis+sentinel://{}/{}", hosts.join(","), Self::MASTER)
    }

    /// Who is the master, as most of the Sentinels see it.
    pub fn master_addr(&self) -> Option<SocketAddr> {
        let seen: Vec<_> =
            self.sentinels.iter().filter_map(|one| master_seen_by(one).ok()).collect();
        seen.iter().copied().find(|addr| seen.iter().filter(|one| *one == addr).count() > 1)
    }

    /// Where the master is in `servers`.
    pub fn master(&self) -> usize {
        let found = wait_for(PATIENCE, || {
            let addr = self.master_addr()?;
            self.servers.iter().position(|server| server.addr() == addr)
        });
        found.unwrap()
    }

    /// Makes another server the master, and waits until it is and the old one follows.
    pub fn failover(&self) -> usize {
        let old = self.master();
        let mut sentinel = RespClient::open(self.sentinels[0].addr()).unwrap();
        // Refused while the last failover is still settling.
        let begun = || sentinel.ask("SENTINEL FAILOVER main").unwrap().text() == "OK";
        wait_until(PATIENCE, begun).unwrap();
        let new = self.wait_for_other_master(old);
        let follows = || self.servers[old].info("role").as_deref() == Some("slave");
        wait_until(PATIENCE, follows).unwrap();
        new
    }

    /// Waits until another server than `old` is the master, and gives where it is.
    pub fn wait_for_other_master(&self, old: usize) -> usize {
        let new = wait_for(PATIENCE, || Some(self.master()).filter(|new| *new != old)).unwrap();
        let role = || self.servers[new].info("role").as_deref() == Some("master");
        wait_until(PATIENCE, role).unwrap();
        new
    }

    /// Before that a vote would fail, or have nobody to choose.
    fn wait_until_complete(&self) {
        let complete = |sentinel: &Server| {
            let mut client = RespClient::open(sentinel.addr()).ok()?;
            client
                .ask("SENTINEL CKQUORUM main")
                .ok()
                .filter(|reply| reply.text().starts_with("OK"))?;
            let replicas = client.ask("SENTINEL REPLICAS main").ok()?;
            let linked = |one: &&_| link_is_up(one);
            (replicas.parts().iter().filter(linked).count() == REPLICAS).then_some(())
        };
        for sentinel in &self.sentinels {
            wait_for(PATIENCE, || complete(sentinel)).unwrap();
        }
    }
}

fn link_is_up(replica: &crate::resp_client::Reply) -> bool {
    replica.text().contains("master-link-status ok")
}

fn master_seen_by(sentinel: &Server) -> io::Result<SocketAddr> {
    let mut client = RespClient::open(sentinel.addr())?;
    let reply = client.ask("SENTINEL GET-MASTER-ADDR-BY-NAME main")?;
    let port = reply.parts().last().and_then(|port| port.text().parse().ok());
    let port = port.ok_or_else(|| io::Error::other(reply.text()))?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn start_sentinels(servers: &[Redis], options: &RedisOptions) -> Result<Vec<Server>, StartError> {
    let addrs = free_addrs(SENTINELS)?;
    (0..SENTINELS).map(|own| start_sentinel(own, &addrs, servers, options)).collect()
}

fn start_sentinel(
    own: usize,
    addrs: &[SocketAddr],
    servers: &[Redis],
    options: &RedisOptions,
) -> Result<Server, StartError> {
    let mut config = format!("{CONFIG}port {}\nsentinel myid {}\n", addrs[own].port(), id(own));
    config.push_str(&WATCH.replace("{master}", &servers[0].addr().port().to_string()));
    if let Some(password) = options.required_password() {
        config.push_str(&format!("sentinel auth-pass main {password}\n"));
    }
    for replica in &servers[1..] {
        let line = format!("sentinel known-replica main 127.0.0.1 {}\n", replica.addr().port());
        config.push_str(&line);
    }
    for other in (0..SENTINELS).filter(|other| *other != own) {
        let port = addrs[other].port();
        config.push_str(&format!("sentinel known-sentinel main 127.0.0.1 {port} {}\n", id(other)));
    }
    let recipe = Recipe {
        program: options.program_name(),
        arguments: &["{config}", "--sentinel"],
        config_name: "sentinel.conf",
        addrs: 0,
        core: None,
    };
    recipe.start_on(vec![addrs[own]], &config)
}

/// Made up, and different for each: Sentinels tell each other apart by it.
fn id(sentinel: usize) -> String {
    format!("{:040x}", 0xabcd_u64 + sentinel as u64)
}
