//! Which Redis, and how it is spoken to.
//!
//! One address says it all: the scheme tells the arrangement (one server, Sentinel, Cluster) and
//! whether TLS is spoken; the rest is hosts, user, password and database. What does not fit into
//! an address (files, time-outs, the prefix of keys) stands beside it.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use percent_encoding::percent_decode_str;

/// How a store is reached and what its keys begin with.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// Where it is.
    pub url: RedisUrl,
    /// What every key begins with.
    pub prefix: String,
    /// How long a decision waits for an answer.
    pub timeout: Duration,
    /// Files for TLS; used only when the address asks for TLS.
    pub tls: TlsFiles,
}

impl RedisConfig {
    /// Long enough for a busy server in the same data centre, short enough that nobody notices.
    pub const TIMEOUT: Duration = Duration::from_millis(50);

    /// What keys begin with unless told otherwise.
    pub const PREFIX: &'static str = "ratelimit";

    /// The usual settings for this address.
    pub fn new(url: RedisUrl) -> Self {
        let tls = TlsFiles::default();
        Self { url, prefix: Self::PREFIX.to_owned(), timeout: Self::TIMEOUT, tls }
    }
}

/// PEM files for TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whom to trust; the system's own authorities if there is none.
    pub ca: Option<PathBuf>,
    /// Our own certificate, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// An address such as `redis://user:password@host:6379/0`.
///
/// ```
/// # use tollgate_redis::{Arrangement, RedisUrl};
/// let url: RedisUrl = "redis+sentinel://:secret@s1,s2:26380/mymaster/2".parse().unwrap();
/// assert_eq!(url.arrangement, Arrangement::Sentinel { master: "mymaster".to_owned() });
/// assert_eq!(url.hosts[0].to_string(), "s1:26379");
/// assert_eq!(url.db, 2);
/// // What is shown and logged carries no password.
/// assert_eq!(url.to_string(), "redis+sentinel://s1:26379,s2:26380/mymaster/2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    /// How many servers there are, and who says which is to be asked.
    pub arrangement: Arrangement,
    /// The server; with Sentinel the sentinels, with Cluster any of its nodes.
    pub hosts: Vec<Host>,
    /// Whether TLS is spoken.
    pub tls: bool,
    /// Who we are there.
    pub login: Login,
    /// Who we are at the sentinels.
    pub sentinel_login: Login,
    /// The database; a cluster has only 0.
    pub db: u32,
}

/// How servers stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrangement {
    /// One server.
    Single,
    /// A master and replicas; sentinels know which is which.
    Sentinel {
        /// The name they know the master by.
        master: String,
    },
    /// Several masters, each with a part of the keys.
    Cluster,
}

/// User and password. Without a user it is the default one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The ACL user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    /// A name or an address.
    pub name: String,
    /// Its port.
    pub port: u16,
}

/// Why a text is not the address of a Redis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// It begins with something else.
    #[error(
        "{0:?} is none of redis://, rediss:// (TLS), redis+sentinel://, rediss+sentinel://, \
         redis+cluster://, rediss+cluster://"
    )]
    Scheme(String),
    /// A host is missing.
    #[error("no host between // and the path")]
    NoHost,
    /// There is only one server, but several are given.
    #[error("redis:// takes one host; several need redis+sentinel:// or redis+cluster://")]
    TooManyHosts,
    /// A port is none.
    #[error("{0:?} is not a port: a number from 1 to 65535")]
    Port(String),
    /// Sentinels must be asked by name.
    #[error("the name of the master is missing: redis+sentinel://host:26379/NAME")]
    NoMaster,
    /// A database is none.
    #[error("{0:?} is not a database: a number such as 0")]
    Db(String),
    /// A cluster has no databases.
    #[error("a cluster has no database but 0")]
    ClusterDb,
    /// A parameter nobody knows.
    #[error("{0:?} is not known; sentinel_user and sentinel_password are, with redis+sentinel://")]
    Parameter(String),
    /// Percent signs that are not followed by two digits of a byte, or bytes that are no text.
    #[error("user and password must be percent-encoded UTF-8")]
    Encoding,
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            RedisUrlError::Scheme(text.split('@').next_back().unwrap_or_default().to_owned())
        })?;
        let (tls, kind) = scheme_of(scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Login::parse(login)?, hosts),
            None => (Login::default(), authority),
        };
        let hosts = hosts_of(hosts, kind)?;
        let (arrangement, db) = path_of(path, kind)?;
        let sentinel_login = parameters(query, kind)?;
        Ok(Self { arrangement, hosts, tls, login, sentinel_login, db })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Sentinel,
    Cluster,
}

fn scheme_of(scheme: &str) -> Result<(bool, Kind), RedisUrlError> {
    let unknown = || RedisUrlError::Scheme(format!("{scheme}://"));
    let (base, kind) = scheme.split_once(['+', '-']).unwrap_or((scheme, ""));
    let tls = match base {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(unknown()),
    };
    match kind {
        "" => Ok((tls, Kind::Single)),
        "sentinel" => Ok((tls, Kind::Sentinel)),
        "cluster" => Ok((tls, Kind::Cluster)),
        _ => Err(unknown()),
    }
}

fn hosts_of(text: &str, kind: Kind) -> Result<Vec<Host>, RedisUrlError> {
    let port = if kind == Kind::Sentinel { 26_379 } else { 6_379 };
    let hosts =
        text.split(',').map(|host| Host::parse(host, port)).collect::<Result<Vec<_>, _>>()?;
    if kind == Kind::Single && hosts.len() > 1 {
        return Err(RedisUrlError::TooManyHosts);
    }
    Ok(hosts)
}

fn path_of(path: &str, kind: Kind) -> Result<(Arrangement, u32), RedisUrlError> {
    match kind {
        Kind::Single => Ok((Arrangement::Single, db_of(path)?)),
        Kind::Cluster if db_of(path)? != 0 => Err(RedisUrlError::ClusterDb),
        Kind::Cluster => Ok((Arrangement::Cluster, 0)),
        Kind::Sentinel => {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                return Err(RedisUrlError::NoMaster);
            }
            Ok((Arrangement::Sentinel { master: decode(master)? }, db_of(db)?))
        }
    }
}

fn db_of(text: &str) -> Result<u32, RedisUrlError> {
    match text.trim_end_matches('/') {
        "" => Ok(0),
        text => text.parse().map_err(|_| RedisUrlError::Db(text.to_owned())),
    }
}

fn parameters(query: &str, kind: Kind) -> Result<Login, RedisUrlError> {
    let mut login = Login::default();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "sentinel_user" if kind == Kind::Sentinel => login.user = Some(decode(value)?),
            "sentinel_password" if kind == Kind::Sentinel => login.password = Some(decode(value)?),
            _ => return Err(RedisUrlError::Parameter(name.to_owned())),
        }
    }
    Ok(login)
}

fn decode(text: &str) -> Result<String, RedisUrlError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| RedisUrlError::Encoding)?;
    Ok(decoded.into_owned())
}

impl Login {
    fn parse(text: &str) -> Result<Self, RedisUrlError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let some = |text: &str| (!text.is_empty()).then(|| decode(text)).transpose();
        Ok(Self { user: some(user)?, password: some(password)? })
    }
}

impl Host {
    fn parse(text: &str, port: u16) -> Result<Self, RedisUrlError> {
        let (name, after) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, after)) => (name, after),
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        if name.is_empty() {
            return Err(RedisUrlError::NoHost);
        }
        let port = match after.strip_prefix(':') {
            None if after.is_empty() => port,
            Some(port) if port.parse() != Ok(0) => {
                port.parse().map_err(|_| RedisUrlError::Port(port.to_owned()))?
            }
            _ => return Err(RedisUrlError::Port(after.trim_start_matches(':').to_owned())),
        };
        Ok(Self { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            return write!(f, "[{}]:{}", self.name, self.port);
        }
        write!(f, "{}:{}", self.name, self.port)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.arrangement {
            Arrangement::Single => "",
            Arrangement::Sentinel { .. } => "+sentinel",
            Arrangement::Cluster => "+cluster",
        };
        write!(f, "redis{}{kind}://", if self.tls { "s" } else { "" })?;
        for (at, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if at == 0 { "" } else { "," })?;
        }
        if let Arrangement::Sentinel { master } = &self.arrangement {
            write!(f, "/{master}")?;
        }
        if self.db == 0 { Ok(()) } else { write!(f, "/{}", self.db) }
    }
}

/// Without the passwords: it ends up in logs.
impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "…");
        f.debug_struct("Login").field("user", &self.user).field("password", &password).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let url = text.parse::<RedisUrl>();
        assert_eq!(url.map_or_else(|error| error.to_string(), |url| url.to_string()), expected);
    }

    #[test]
    fn addresses_are_read_and_shown_without_passwords() {
        check("redis://localhost", "redis://localhost:6379");
        check("rediss://ann:s%40cret@10.0.0.1:7000/3", "rediss://10.0.0.1:7000/3");
        check("redis://[::1]:7000", "redis://[::1]:7000");
        check("redis://[::1]", "redis://[::1]:6379");
        check("valkey://:p@h/", "redis://h:6379");
        check("redis+cluster://a:1,b,[::1]:3", "redis+cluster://a:1,b:6379,[::1]:3");
        check("rediss+sentinel://a,b/main", "rediss+sentinel://a:26379,b:26379/main");
    }

    #[test]
    fn user_and_password_are_decoded() {
        let url: RedisUrl = "redis://ann:a%3Ab%40c@h".parse().unwrap();
        assert_eq!(url.login, Login { user: Some("ann".into()), password: Some("a:b@c".into()) });
        let url: RedisUrl = "redis://:only@h".parse().unwrap();
        assert_eq!(url.login, Login { user: None, password: Some("only".into()) });
        let url: RedisUrl = "redis+sentinel://:p@h/m?sentinel_password=q".parse().unwrap();
        assert_eq!(url.sentinel_login, Login { user: None, password: Some("q".into()) });
        let shown = format!("{url:?} {:?}", url.sentinel_login);
        assert!(!shown.contains("\"q\"") && !shown.contains(":p@"), "{shown}");
    }

    #[test]
    fn a_mistake_is_named_with_what_would_be_right() {
        check(
            "http://h",
            "\"http://\" is none of redis://, rediss:// (TLS), redis+sentinel://, \
             rediss+sentinel://, redis+cluster://, rediss+cluster://",
        );
        check("redis://", "no host between // and the path");
        check("redis+cluster://a,,b", "no host between // and the path");
        check(
            "redis://a,b",
            "redis:// takes one host; several need redis+sentinel:// or redis+cluster://",
        );
        check("redis://h:0", "\"0\" is not a port: a number from 1 to 65535");
        check("redis://h:http", "\"http\" is not a port: a number from 1 to 65535");
        check("redis://[::1]7", "\"7\" is not a port: a number from 1 to 65535");
        check(
            "redis+sentinel://h",
            "the name of the master is missing: redis+sentinel://host:26379/NAME",
        );
        check("redis://h/x", "\"x\" is not a database: a number such as 0");
        check("redis+cluster://h/1", "a cluster has no database but 0");
        check(
            "redis://h?sentinel_user=x",
            "\"sentinel_user\" is not known; sentinel_user and sentinel_password are, with \
             redis+sentinel://",
        );
        check("redis://%ff@h", "user and password must be percent-encoded UTF-8");
    }

    #[test]
    fn a_text_without_a_scheme_shows_no_password() {
        let error = "ann:secret@host:6379".parse::<RedisUrl>().unwrap_err().to_string();
        assert!(error.contains("host:6379") && !error.contains("secret"), "{error}");
    }
}
