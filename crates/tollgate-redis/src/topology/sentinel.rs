//! Whom the sentinels call the master.
//!
//! Sentinels are asked in turn until one knows. Whom it names is asked itself whether it is the
//! master: right after a failover a sentinel may still name the old one.

use std::sync::Arc;

use parking_lot::Mutex;
use redis::Value;

use crate::{
    ErrorKind, Host, Login, RedisUrl,
    base::Base,
    dial::{Connection, within_dialing},
    fault::Fault,
    server::Server,
};

/// Sentinels and the master they named last.
pub(crate) struct Sentinel {
    name: String,
    sentinels: Vec<Host>,
    login: Login,
    found: Mutex<Result<Arc<Server>, Fault>>,
}

impl Sentinel {
    pub(crate) fn new(url: &RedisUrl, master: &str) -> Self {
        let unknown = Fault::new(ErrorKind::Connection, "no sentinel has answered yet");
        Self {
            name: master.to_owned(),
            sentinels: url.hosts.clone(),
            login: url.sentinel_login.clone(),
            found: Mutex::new(Err(unknown)),
        }
    }

    pub(crate) fn master(&self) -> Result<Arc<Server>, Fault> {
        self.found.lock().clone()
    }

    pub(crate) fn complaint(&self) -> Option<Fault> {
        match self.master() {
            Ok(master) => master.breaker.refusal().map(|fault| fault.at(&master.host)),
            Err(fault) => Some(fault),
        }
    }

    /// Asks the sentinels. What was found before stays unless they name another that agrees.
    pub(crate) async fn look(&self, base: &Arc<Base>) {
        let mut last = Fault::new(ErrorKind::Connection, "no sentinel is given");
        for sentinel in &self.sentinels {
            match self.look_at(base, sentinel).await {
                Ok(()) => return,
                Err(fault) => last = fault,
            }
        }
        let mut found = self.found.lock();
        if found.is_err() {
            *found = Err(last);
        }
    }

    async fn look_at(&self, base: &Arc<Base>, sentinel: &Host) -> Result<(), Fault> {
        let named = within_dialing(async {
            let mut connection = base.dialer.dial(sentinel, &self.login, 0).await?;
            self.named_by(&mut connection).await
        });
        let host = named.await.map_err(|fault| fault.at(format!("sentinel {sentinel}")))?;
        if self.master().is_ok_and(|master| master.host == host) {
            return Ok(());
        }
        let agrees = within_dialing(async {
            let mut connection =
                base.dialer.dial(&host, &base.config.url.login, base.config.url.db).await?;
            agrees(&mut connection).await
        });
        agrees.await.map_err(|fault| fault.at(&host))?;
        self.follow(base, host);
        Ok(())
    }

    async fn named_by(&self, sentinel: &mut Connection) -> Result<Host, Fault> {
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.name);
        let reply = sentinel.ask(&command).await?;
        match redis::from_redis_value::<Option<(String, u16)>>(reply) {
            Ok(Some((name, port))) => Ok(Host { name, port }),
            Ok(None) => {
                let text = format!("it knows no master called {:?}", self.name);
                Err(Fault::new(ErrorKind::Other, text))
            }
            Err(_) => Err(Fault::new(ErrorKind::Other, "it is not a sentinel")),
        }
    }

    fn follow(&self, base: &Base, host: Host) {
        let new = Arc::new(Server::new(host));
        tracing::info!(master = %new.host, name = %self.name, "Redis master found");
        let old = std::mem::replace(&mut *self.found.lock(), Ok(new));
        if let Ok(old) = old {
            old.retire();
            base.offset.forget();
            base.forgot();
        }
    }
}

/// Whether a server takes itself for the master; who may not be asked is believed.
async fn agrees(connection: &mut Connection) -> Result<(), Fault> {
    match connection.ask(&redis::cmd("ROLE")).await {
        Ok(Value::Array(role)) if is_word(role.first(), "master") => Ok(()),
        Ok(_) => Err(Fault::new(ErrorKind::ReadOnly, "it is a replica")),
        Err(fault) if fault.kind == ErrorKind::Denied => Ok(()),
        Err(fault) => Err(fault),
    }
}

fn is_word(value: Option<&Value>, word: &str) -> bool {
    match value {
        Some(Value::BulkString(bytes)) => bytes == word.as_bytes(),
        Some(Value::SimpleString(text)) => text == word,
        _ => false,
    }
}
