//! Which header names mean something to a proxy.

macro_rules! names {
    ($($variant:ident = $text:literal,)*) => {
        /// A header name that is treated in some way of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Name {
            /// Any other: copied as it is.
            Other,
            /// One of the names below, with a `_` for a `-`. Servers that hand headers on as
            /// variables (CGI, WSGI, PHP) take the one for the other.
            LookAlike,
            $($variant,)*
        }

        const ALL: &[(&str, Name)] = &[$(($text, Name::$variant),)*];
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
    XForwardedFor = "x-forwarded-for",
    XForwardedHost = "x-forwarded-host",
    XForwardedProto = "x-forwarded-proto",
    XRateLimitLimit = "x-ratelimit-limit",
    XRateLimitRemaining = "x-ratelimit-remaining",
    XRateLimitReset = "x-ratelimit-reset",
    XRateLimitRetryAfter = "x-ratelimit-retry-after",
}

/// The names of each length, so that a name is compared with two or three at most.
static BY_LENGTH: [[(&str, Name); 4]; 32] = {
    let mut table = [[("", Name::Other); 4]; 32];
    let mut next = 0;
    while next < ALL.len() {
        let (text, name) = ALL[next];
        let mut place = 0;
        while !table[text.len()][place].0.is_empty() {
            place += 1;
        }
        table[text.len()][place] = (text, name);
        next += 1;
    }
    table
};

impl Name {
    /// Recognises a name, in any case. It has been checked to be a token.
    pub(crate) fn of(name: &[u8]) -> Self {
        for (text, known) in BY_LENGTH.get(name.len()).unwrap_or(&BY_LENGTH[0]) {
            if text.is_empty() {
                break;
            }
            if is_same(name, text.as_bytes()) {
                return *known;
            }
            if is_alike(name, text.as_bytes()) {
                return Self::LookAlike;
            }
        }
        Self::Other
    }

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
                    | Self::LookAlike
                    | Self::Trailer
                    | Self::XForwardedFor
                    | Self::XForwardedHost
                    | Self::XForwardedProto
            )
    }
}

/// Compares with letters and hyphens in lower case. Setting the bit that tells the cases apart
/// makes nothing else in a token equal to one of those.
fn is_same(name: &[u8], text: &[u8]) -> bool {
    name.iter().zip(text).all(|(byte, lower)| byte | 0x20 == *lower)
}

/// The same with underscores for hyphens, and at least one of them. Nearly always the first byte
/// tells.
fn is_alike(name: &[u8], text: &[u8]) -> bool {
    name.iter()
        .zip(text)
        .all(|(byte, lower)| byte | 0x20 == *lower || (*byte == b'_' && *lower == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_underscores_look_alike() {
        for text in ["content_length", "X_Forwarded_For", "x-forwarded_for", "TRANSFER_encoding"] {
            assert_eq!(Name::of(text.as_bytes()), Name::LookAlike, "{text}");
        }
        for text in ["x_user", "_", "content_type_", "x_forwarded-foo"] {
            assert_eq!(Name::of(text.as_bytes()), Name::Other, "{text}");
        }
    }

    #[test]
    fn every_name_is_recognised_in_any_case() {
        for (text, name) in ALL {
            assert_eq!(Name::of(text.as_bytes()), *name);
            assert_eq!(Name::of(text.to_uppercase().as_bytes()), *name);
        }
    }

    #[test]
    fn no_other_token_is_taken_for_a_known_name() {
        for (text, _) in ALL {
            for place in 0..text.len() {
                for byte in (0..128_u8).filter(|&byte| super::super::tokens::is_token_byte(byte)) {
                    let mut name = text.as_bytes().to_vec();
                    name[place] = byte;
                    let same = name.eq_ignore_ascii_case(text.as_bytes());
                    assert_eq!(is_same(&name, text.as_bytes()), same, "{text} {byte}");
                }
            }
        }
    }

    #[test]
    fn names_that_only_look_alike_are_others() {
        for text in ["hosts", "hos", "x-host", "te\u{301}", "transfer-encodinG2"] {
            assert_eq!(Name::of(text.as_bytes()), Name::Other, "{text}");
        }
    }
}
