//! What a request's path means.

use http::Method;

/// Everything that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    /// What is here, for people.
    Index,
    /// One decision.
    Check,
    /// Many decisions.
    Batch,
    /// One decision that may wait.
    Acquire,
    /// Giving back.
    Refund,
    /// The state of a key; both parts as they stand in the path.
    Key { policy: &'a str, key: &'a str },
    /// Metrics.
    Metrics,
    /// Whether the process is alive.
    Health,
    /// Whether it wants traffic.
    Ready,
    /// The description of all this.
    OpenApi,
}

/// What a path prefix for keys is followed by: a policy, a slash, a key.
const KEYS: &str = "/v1/keys/";

impl<'a> Endpoint<'a> {
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        Some(match path {
            "/" => Self::Index,
            "/v1/check" => Self::Check,
            "/v1/check/batch" => Self::Batch,
            "/v1/acquire" => Self::Acquire,
            "/v1/refund" => Self::Refund,
            "/metrics" => Self::Metrics,
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/openapi.json" => Self::OpenApi,
            _ => {
                let (policy, key) = path.strip_prefix(KEYS)?.split_once('/')?;
                Self::Key { policy, key }
            }
        })
    }

    /// The methods it serves, as the `Allow` header lists them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Check | Self::Batch | Self::Acquire | Self::Refund => "POST",
            Self::Key { .. } => "GET, HEAD, DELETE",
            _ => "GET, HEAD",
        }
    }

    pub(crate) fn serves(self, method: &Method) -> bool {
        self.allow().split(", ").any(|served| served == method.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_everything_behind_the_policy() {
        let key = |policy, key| Some(Endpoint::Key { policy, key });
        assert_eq!(Endpoint::of("/v1/keys/orders/10.0.0.1"), key("orders", "10.0.0.1"));
        assert_eq!(Endpoint::of("/v1/keys/orders/"), key("orders", ""));
        assert_eq!(Endpoint::of("/v1/keys/orders/a/b"), key("orders", "a/b"));
        assert_eq!(Endpoint::of("/v1/keys/orders"), None);
        assert_eq!(Endpoint::of("/v1/keys"), None);
    }

    #[test]
    fn other_spellings_are_not_served() {
        for path in ["", "*", "//", "/V1/check", "/v1/check/", "/v1//check", "/metrics/", "/v1"] {
            assert_eq!(Endpoint::of(path), None, "{path:?}");
        }
    }

    #[test]
    fn methods_are_told_apart_by_letter_case() {
        assert!(Endpoint::Check.serves(&Method::POST));
        assert!(!Endpoint::Check.serves(&Method::GET));
        assert!(!Endpoint::Check.serves(&Method::from_bytes(b"post").unwrap()));
        assert!(Endpoint::Key { policy: "", key: "" }.serves(&Method::DELETE));
        assert!(!Endpoint::Index.serves(&Method::DELETE));
        assert!(Endpoint::Ready.serves(&Method::HEAD));
    }
}
