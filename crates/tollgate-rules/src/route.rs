//! A route: which requests go to which upstreams under which policies.

use http::Method;

/// Where matching requests go, and what limits them.
#[derive(Debug, Clone)]
pub struct Route {
    /// Its place in [`crate::RuleSet::routes`].
    pub index: usize,
    /// Its UUID, in lower case.
    pub id: Box<str>,
    /// The prefix it serves, normalised, without a slash at the end (except `/` itself).
    pub path: Box<str>,
    /// The one host it serves, in lower case; `None` serves all.
    pub host: Option<Box<str>>,
    /// The methods it serves; empty serves all, and GET includes HEAD.
    pub methods: Vec<Method>,
    /// Where its requests go; at least one.
    pub upstreams: Vec<Upstream>,
    /// The policies that must allow, as places in [`crate::RuleSet::policies`].
    pub policies: Vec<usize>,
}

impl Route {
    /// Whether the route serves this method. HEAD is GET without the body, so it goes where GET
    /// goes: else it would find its way to a shorter route and other limits.
    pub fn serves(&self, method: &Method) -> bool {
        self.names(method) || (method == Method::HEAD && self.methods.contains(&Method::GET))
    }

    /// Whether the route serves this method without having to derive it from another.
    pub(crate) fn names(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }
}

/// One server that answers for a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// What stands behind it.
    pub kind: UpstreamKind,
    /// `host:port`, as a `Host` header and a log line show it.
    pub authority: Box<str>,
    /// Its name or address, an IPv6 address without brackets.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
}

/// What stands behind an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpstreamKind {
    /// A server that speaks HTTP/1.1 in the clear.
    Http,
    /// `builtin:echo`: the gateway answers by itself with what it was sent.
    Echo,
}
