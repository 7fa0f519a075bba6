//! Which header names mean something to a proxy.

macro_rules! names {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A header name that is treated in some way of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Name {
            /// Any other: copied as it is.
            Other,
            $($(#[$doc])* $variant,)*
        }

        /// Every name with its variant, for the tests.
        #[cfg(test)]
        const ALL: &[(&str, Name)] = &[$(($text, Name::$variant),)*];

        impl Name {
            /// Recognises a name, in any case.
            pub(crate) fn of(name: &[u8]) -> Self {
                // Length and first letter leave at most one or two candidates.
                $(
                    if name.len() == $text.len()
                        && name[0] | 0x20 == $text.as_bytes()[0]
                        && name.eq_ignore_ascii_case($text.as_bytes())
                    {
                        return Self::$variant;
                    }
                )*
                Self::Other
            }
        }
    };
}

names! {
    AccessControlAllowOrigin = "access-control-allow-origin",
    AccessControlRequestMethod = "access-control-request-method",
    Connection = "connection",
    ContentLength = "content-length",
    ContentType = "content-type",
    CorrelationId = "x-correlation-id",
    Date = "date",
    Expect = "expect",
    Forwarded = "forwarded",
    Host = "host",
    KeepAlive = "keep-alive",
    Origin = "origin",
    ProxyAuthenticate = "proxy-authenticate",
    ProxyAuthorization = "proxy-authorization",
    ProxyConnection = "proxy-connection",
    RateLimit = "ratelimit",
    RateLimitPolicy = "ratelimit-policy",
    Te = "te",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    UserAgent = "user-agent",
    XForwardedFor = "x-forwarded-for",
    XForwardedHost = "x-forwarded-host",
    XForwardedProto = "x-forwarded-proto",
    XRateLimitLimit = "x-ratelimit-limit",
    XRateLimitRemaining = "x-ratelimit-remaining",
    XRateLimitReset = "x-ratelimit-reset",
    XRateLimitRetryAfter = "x-ratelimit-retry-after",
}

impl Name {
    /// Whether the line speaks to the next hop only and ends here.
    ///
    /// `Transfer-Encoding` and `Content-Length` are among them because the gateway writes its
    /// own, `Trailer` is not: it announces fields that are passed on.
    pub(crate) const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::ContentLength
                | Self::KeepAlive
                | Self::ProxyAuthenticate
                | Self::ProxyAuthorization
                | Self::ProxyConnection
                | Self::Te
                | Self::TransferEncoding
                | Self::Upgrade
        )
    }

    /// Whether the line tells about a rate limit.
    pub(crate) const fn is_rate_limit(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::RateLimitPolicy
                | Self::XRateLimitLimit
                | Self::XRateLimitRemaining
                | Self::XRateLimitReset
                | Self::XRateLimitRetryAfter
        )
    }

    /// Whether the field may stand in a trailer. What frames or routes a message or says who
    /// sends it must be known before the body (RFC 9110, 6.5.1).
    pub(crate) const fn may_trail(self) -> bool {
        !self.is_hop_by_hop()
            && !self.is_rate_limit()
            && !matches!(
                self,
                Self::ContentType
                    | Self::CorrelationId
                    | Self::Expect
                    | Self::Forwarded
                    | Self::Host
                    | Self::Trailer
                    | Self::XForwardedFor
                    | Self::XForwardedHost
                    | Self::XForwardedProto
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_recognised_in_any_case() {
        for (text, name) in ALL {
            assert_eq!(Name::of(text.as_bytes()), *name);
            assert_eq!(Name::of(text.to_uppercase().as_bytes()), *name);
        }
    }

    #[test]
    fn names_that_only_look_alike_are_others() {
        for text in ["hosts", "hos", "x-host", "content_length", "te\u{301}", "transfer-encodinG2"]
        {
            assert_eq!(Name::of(text.as_bytes()), Name::Other, "{text}");
        }
    }
}
