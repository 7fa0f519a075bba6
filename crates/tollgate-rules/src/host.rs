//! What is a host, and what of it tells hosts apart.

/// Drops the port and the root's dot: `example.com.:8080` is `example.com`. Letter case stays,
/// since changing it would cost an allocation; compare without it.
pub(crate) fn bare_host(host: &str) -> &str {
    let name = match host.rfind(']') {
        // The colons of an IPv6 address stand within its brackets.
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// Splits an authority; it has the protocol's own port where none is given.
pub(crate) fn host_and_port(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (is_host(host)?, Some(port)),
            None => (is_host(authority)?, None),
        },
    };
    let port = match port {
        None => usual,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
        Some(_) => return None,
    };
    (port > 0).then(|| (host.to_ascii_lowercase(), port))
}

/// A name or an IPv4 address. Underscores are no part of a host name, but of many a container's.
pub(crate) fn is_host(host: &str) -> Option<&str> {
    let ok = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    (host.len() <= 253 && host.split('.').all(ok)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_and_final_dot_do_not_tell_hosts_apart() {
        for host in ["example.com", "example.com:8080", "example.com.", "example.com.:80"] {
            assert_eq!(bare_host(host), "example.com");
        }
        assert_eq!(bare_host("[::1]:80"), "[::1]");
        assert_eq!(bare_host(""), "");
        assert_eq!(bare_host(":80"), "");
    }
}
