//! The host a request names, without what does not tell hosts apart.

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
