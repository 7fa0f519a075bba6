//! Every key a configuration may have, by section.
//!
//! One table, because three must agree: what is read, what is refused as unknown, and what the
//! JSON Schema describes. Tests walk it against both others.

/// A section's place and its keys.
#[derive(Debug)]
pub(crate) struct Section {
    /// Where it stands, `[]` for each item of a list.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests find the schema's part by it"))]
    pub(crate) place: &'static str,
    pub(crate) keys: &'static [&'static str],
}

pub(crate) const ROOT: Section = Section {
    place: "",
    keys: &[
        "listen",
        "store",
        "policies",
        "routes",
        "trusted_proxies",
        "envoy",
        "gateway",
        "client",
        "headers",
        "access_log",
        "workers",
        "drain",
    ],
};

pub(crate) const LISTEN: Section =
    Section { place: "listen", keys: &["gateway", "grpc", "http", "resp"] };

pub(crate) const STORE: Section = Section {
    place: "store",
    keys: &[
        "kind",
        "url",
        "prefix",
        "timeout",
        "on_failure",
        "tls",
        "max_keys",
        "max_bytes",
        "at_bound",
        "save",
    ],
};

pub(crate) const ON_FAILURE: Section =
    Section { place: "store.on_failure", keys: &["mode", "share"] };

pub(crate) const TLS: Section = Section { place: "store.tls", keys: &["ca", "cert", "key"] };

pub(crate) const POLICY: Section = Section {
    place: "policies[]",
    keys: &[
        "id",
        "limits",
        "key",
        "mode",
        "epsilon",
        "ttl",
        "enforce",
        "on_exceed",
        "count_refused",
    ],
};

pub(crate) const LIMIT: Section = Section {
    place: "policies[].limits[]",
    keys: &["algorithm", "rate", "burst", "limit", "lease"],
};

pub(crate) const ON_EXCEED: Section = Section { place: "policies[].on_exceed", keys: &["queue"] };

pub(crate) const QUEUE: Section =
    Section { place: "policies[].on_exceed.queue", keys: &["max_wait", "max_depth"] };

pub(crate) const ROUTE: Section = Section {
    place: "routes[]",
    keys: &["id", "path", "host", "methods", "upstreams", "status", "policies"],
};

pub(crate) const ENVOY: Section = Section {
    place: "envoy",
    keys: &[
        "rules",
        "shadow_mode",
        "quota_mode",
        "response_headers",
        "count_when_over",
        "response_metadata",
    ],
};

pub(crate) const GATEWAY: Section = Section {
    place: "gateway",
    keys: &[
        "connect_timeout",
        "response_timeout",
        "header_timeout",
        "body_timeout",
        "idle_timeout",
        "max_header_bytes",
        "max_body_bytes",
        "max_connections",
        "path_case",
    ],
};

pub(crate) const CLIENT: Section =
    Section { place: "client", keys: &["header", "take", "ipv6_prefix"] };

pub(crate) const HEADERS: Section =
    Section { place: "headers", keys: &["reset", "ietf", "x_retry_after"] };

pub(crate) const ACCESS_LOG: Section = Section { place: "access_log", keys: &["format", "path"] };

#[cfg(test)]
pub(crate) const ALL: [&Section; 15] = [
    &ROOT,
    &LISTEN,
    &STORE,
    &ON_FAILURE,
    &TLS,
    &POLICY,
    &LIMIT,
    &ON_EXCEED,
    &QUEUE,
    &ROUTE,
    &ENVOY,
    &GATEWAY,
    &CLIENT,
    &HEADERS,
    &ACCESS_LOG,
];
