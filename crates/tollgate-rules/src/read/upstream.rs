//! Reading an upstream: `http://HOST:PORT` or `builtin:echo`.

use crate::{Upstream, UpstreamKind, host::host_and_port, mistake::shown};

/// Why a text is no upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("found {}, expected http://HOST:PORT", shown(.0))]
    Shape(String),
    #[error("https to upstreams is not available yet in this version: write http://HOST:PORT")]
    Https,
    #[error("{} carries a path or a query: a request keeps its own, so write http://{authority}", shown(.found))]
    Path { found: String, authority: String },
    #[error("a user and a password in an upstream are not sent: leave out what stands before @")]
    User,
    #[error("found {}: the built-in upstream is builtin:echo", shown(.0))]
    Builtin(String),
}

pub(super) fn parse_upstream(text: &str) -> Result<Upstream, UpstreamError> {
    if let Some(name) = text.strip_prefix("builtin:") {
        return builtin(name).ok_or_else(|| UpstreamError::Builtin(text.to_owned()));
    }
    let shape = || UpstreamError::Shape(text.to_owned());
    let (scheme, rest) = text.split_once("://").ok_or_else(shape)?;
    match &*scheme.to_ascii_lowercase() {
        "http" => {}
        "https" => return Err(UpstreamError::Https),
        _ => return Err(shape()),
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err(UpstreamError::User);
    }
    let (host, port) = host_and_port(authority, 80).ok_or_else(shape)?;
    if !matches!(path, "" | "/") {
        let (found, authority) = (text.to_owned(), authority.to_owned());
        return Err(UpstreamError::Path { found, authority });
    }
    let authority =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(Upstream { kind: UpstreamKind::Http, authority: authority.into(), host: host.into(), port })
}

fn builtin(name: &str) -> Option<Upstream> {
    let kind = UpstreamKind::Echo;
    let text: Box<str> = "builtin:echo".into();
    (name == "echo").then(|| Upstream { kind, authority: text.clone(), host: text, port: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match parse_upstream(text) {
            Ok(upstream) => format!("{} {} {}", upstream.authority, upstream.host, upstream.port),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_upstream_is_a_host_and_a_port() {
        check("http://127.0.0.1:9000", "127.0.0.1:9000 127.0.0.1 9000");
        check("HTTP://Backend_1/", "backend_1:80 backend_1 80");
        check("http://[::1]:9000", "[::1]:9000 ::1 9000");
        check("builtin:echo", "builtin:echo builtin:echo 0");
    }

    #[test]
    fn what_is_no_upstream_is_told_what_would_be() {
        for text in [
            "",
            "127.0.0.1:9000",
            "ftp://x",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:x",
            "http://a:65536",
            "http://a b",
            "http://[::1",
            "http://[x]:1",
            "http://a:+1",
            "http://a..b",
        ] {
            check(text, &format!("found {text:?}, expected http://HOST:PORT"));
        }
        check(
            "https://a",
            "https to upstreams is not available yet in this version: write http://HOST:PORT",
        );
        check(
            "http://a:1/x",
            "\"http://a:1/x\" carries a path or a query: a request keeps its own, so write http://a:1",
        );
        check(
            "http://me:secret@a",
            "a user and a password in an upstream are not sent: leave out what stands before @",
        );
        check("builtin:ehco", "found \"builtin:ehco\": the built-in upstream is builtin:echo");
    }
}
