//! The address of a Redis, a set of Sentinels or a Cluster, as a text that is known to be one.
//!
//! The text goes to the store as it is; here only its form is checked, so that a mistake is told
//! with its line. It may hold a password: neither an error nor `Debug` repeats any of it.

use std::fmt;

use crate::host::host_and_port;

/// The address of a Redis; a text of a form that [`RedisUrl::parse`] knows.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

/// Why a text is no such address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// Another protocol, or none.
    #[error(
        "not the address of a Redis: write redis://HOST:6379, rediss://HOST:6379, \
         redis+sentinel://H1,H2/MASTER or redis+cluster://H1,H2"
    )]
    Scheme,
    /// Something that is no host and port.
    #[error(
        "no host, or one that cannot be: write redis://HOST:6379; a password has its own \
         / : @ % as %2F %3A %40 %25"
    )]
    Host,
    /// Several hosts where only one can be.
    #[error("several hosts: write redis+sentinel://H1,H2/MASTER or redis+cluster://H1,H2")]
    Several,
    /// Sentinels of nobody.
    #[error("the master's name is missing: write redis+sentinel://H1,H2/MASTER")]
    Master,
    /// A path that is no database.
    #[error("what follows the host is the number of a database: write redis://HOST:6379/0")]
    Database,
    /// A database of a Cluster.
    #[error("a cluster has database 0 only: write redis+cluster://H1,H2 with nothing behind")]
    ClusterDatabase,
    /// Settings in the address.
    #[error(
        "behind ? stand sentinel_user and sentinel_password of redis+sentinel://, and nothing else; \
         a password has its own ? # as %3F %23"
    )]
    Query,
    /// A broken escape.
    #[error(
        "a % in user or password is followed by two hexadecimal digits of a byte in UTF-8, %25 \
         being % itself"
    )]
    Escape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Sentinel,
    Cluster,
}

/// The protocol, and whether it is spoken through TLS. Valkey's own names mean the same.
const PROTOCOLS: [(&str, bool); 4] =
    [("redis", false), ("rediss", true), ("valkey", false), ("valkeys", true)];

const KINDS: [(&str, Kind); 3] =
    [("", Kind::Single), ("sentinel", Kind::Sentinel), ("cluster", Kind::Cluster)];

impl RedisUrl {
    /// Takes a text that has the form of an address.
    ///
    /// ```
    /// # use tollgate_rules::{RedisUrl, RedisUrlError};
    /// let url = RedisUrl::parse("rediss://limits:secret@redis.example:6380/2").unwrap();
    /// assert_eq!(format!("{url:?}"), "rediss://…@redis.example:6380/2");
    /// assert_eq!(RedisUrl::parse("redis://a,b"), Err(RedisUrlError::Several));
    /// ```
    pub fn parse(text: &str) -> Result<Self, RedisUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(RedisUrlError::Scheme)?;
        let (_, kind) = protocol(scheme).ok_or(RedisUrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if rest.contains('#') || query.contains('#') {
            return Err(RedisUrlError::Query);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        check_escapes(user)?;
        check_hosts(hosts, kind)?;
        check_path(path.strip_prefix('/').unwrap_or_default(), kind)?;
        check_query(query, kind)?;
        Ok(Self(text.to_owned()))
    }

    /// All of it, the password included.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether connections go through TLS.
    pub fn is_tls(&self) -> bool {
        self.0
            .split_once("://")
            .and_then(|(scheme, _)| protocol(scheme))
            .is_some_and(|(tls, _)| tls)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let rest = rest.split('?').next().unwrap_or_default();
        match rest.rsplit_once('@') {
            Some((_, hosts)) => write!(f, "{scheme}://…@{hosts}"),
            None => write!(f, "{scheme}://{rest}"),
        }
    }
}

/// Whether TLS is spoken, and to whom.
fn protocol(scheme: &str) -> Option<(bool, Kind)> {
    let (protocol, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    if kind.is_empty() && scheme.ends_with('+') {
        return None;
    }
    let (_, tls) = PROTOCOLS.into_iter().find(|(name, _)| *name == protocol)?;
    let (_, kind) = KINDS.into_iter().find(|(name, _)| *name == kind)?;
    Some((tls, kind))
}

fn check_escapes(text: &str) -> Result<(), RedisUrlError> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let escaped = part.get(..2).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.ok_or(RedisUrlError::Escape)?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_or(Err(RedisUrlError::Escape), |_| Ok(()))
}

fn check_query(query: &str, kind: Kind) -> Result<(), RedisUrlError> {
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').ok_or(RedisUrlError::Query)?;
        if kind != Kind::Sentinel || !["sentinel_user", "sentinel_password"].contains(&name) {
            return Err(RedisUrlError::Query);
        }
        check_escapes(value)?;
    }
    Ok(())
}

fn check_hosts(hosts: &str, kind: Kind) -> Result<(), RedisUrlError> {
    if kind == Kind::Single && hosts.contains(',') {
        return Err(RedisUrlError::Several);
    }
    let all = hosts.split(',').all(|host| host_and_port(host, 6_379).is_some());
    if all { Ok(()) } else { Err(RedisUrlError::Host) }
}

fn check_path(path: &str, kind: Kind) -> Result<(), RedisUrlError> {
    // A slash of a password that was not escaped.
    if path.contains('@') {
        return Err(RedisUrlError::Host);
    }
    match kind {
        Kind::Single => check_database(path),
        Kind::Cluster if matches!(path, "" | "0") => Ok(()),
        Kind::Cluster => Err(RedisUrlError::ClusterDatabase),
        Kind::Sentinel => {
            let (master, database) = path.split_once('/').unwrap_or((path, ""));
            let ok = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if master.is_empty() || !master.chars().all(ok) {
                return Err(RedisUrlError::Master);
            }
            check_database(database)
        }
    }
}

fn check_database(path: &str) -> Result<(), RedisUrlError> {
    let digits = path.bytes().all(|byte| byte.is_ascii_digit());
    // Redis counts its databases in 31 bits.
    let small = path.is_empty() || path.parse::<i32>().is_ok();
    if digits && small { Ok(()) } else { Err(RedisUrlError::Database) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_is_an_address() {
        for text in [
            "redis://127.0.0.1",
            "redis://127.0.0.1:6379/",
            "redis://redis_1.internal:6379/15",
            "redis://[::1]:6379",
            "redis://:secret@h",
            "redis://user:p%40ss@h:1/0",
            "redis://user@h",
            "rediss://h",
            "redis+sentinel://h1,h2:26379/mymaster",
            "redis+sentinel://u:p@h1,[::1]:1/my-master.1/3",
            "rediss+sentinel://h1/m",
            "redis+cluster://h1,h2:7001,h3",
            "rediss+cluster://u:p@h1/",
            "redis+sentinel://:a@h1/m/0?sentinel_user=u&sentinel_password=%C3%A9",
            "valkey://h",
            "valkeys+cluster://h/0",
        ] {
            let url = RedisUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.reveal(), text);
            assert_eq!(url.is_tls(), text.starts_with("rediss") || text.starts_with("valkeys"));
        }
    }

    #[test]
    fn what_is_no_address_is_told_why() {
        let check = |texts: &[&str], expected| {
            for text in texts {
                assert_eq!(RedisUrl::parse(text), Err(expected), "{text}");
            }
        };
        check(
            &["", "h:6379", "http://h", "redis+unix:///x", "redis+://h", "REDIS://h"],
            RedisUrlError::Scheme,
        );
        check(
            &["redis://", "redis://:secret", "redis://u:p", "redis://h:0", "redis://h:65536"],
            RedisUrlError::Host,
        );
        check(
            &["redis://:a/b@h", "redis+cluster://h,", "redis://a b", "redis://[::1", "redis:///0"],
            RedisUrlError::Host,
        );
        check(&["redis://h1,h2"], RedisUrlError::Several);
        check(
            &["redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel://h/a b"],
            RedisUrlError::Master,
        );
        check(
            &["redis://h/x", "redis://h/-1", "redis://h/1/2", "redis://h/2147483648"],
            RedisUrlError::Database,
        );
        check(&["redis+cluster://h/1"], RedisUrlError::ClusterDatabase);
        check(
            &["redis://h/0?db=1", "redis://:a#b@h", "redis://h?sentinel_user=a"],
            RedisUrlError::Query,
        );
        check(&["redis+sentinel://h/m?sentinel_user"], RedisUrlError::Query);
        check(&["redis://:100%@h", "redis://%zz:a@h", "redis://%ff@h"], RedisUrlError::Escape);
    }

    #[test]
    fn a_password_is_never_shown() {
        let url = RedisUrl::parse("redis+sentinel://me:sec@ret@h1,h2/m").unwrap();
        assert_eq!(format!("{url:?}"), "redis+sentinel://…@h1,h2/m");
        let url = RedisUrl::parse("redis+sentinel://h/m?sentinel_password=secret").unwrap();
        assert_eq!(format!("{url:?}"), "redis+sentinel://h/m");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(rediss?(\\+(sentinel|cluster))?://)?(\\PC{0,40}|[a%@:/?,0-9]{0,20})") {
            let _ = RedisUrl::parse(&text).map(|url| format!("{url:?}"));
        }
    }
}
