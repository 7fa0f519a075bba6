//! Whose address a request is limited by when proxies stand in front of us.
//!
//! Every proxy appends the address it saw. So the last entries were written by proxies we run,
//! and all before them is whatever the caller chose to send: reading from the left lets anyone
//! pick their own limit. We read from the right and stop at the first address that is not a
//! trusted proxy. An entry that is no address ends the walk too: what stands left of it cannot
//! be trusted, so the proxy that wrote it counts as the client.
//!
//! Nothing is allocated, and at most [`ENTRIES_MAX`] entries and [`BYTES_MAX`] bytes are read,
//! counted from the side the walk begins at; beyond that the last address read counts.

mod entry;
mod forwarded;
mod list;
mod trusted;

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

use self::list::Quotes;
pub use self::trusted::TrustedProxies;

/// More proxies than stand in any real row.
pub const ENTRIES_MAX: usize = 64;

/// Room for that many of the longest entries; a larger header is an attack.
pub const BYTES_MAX: usize = 8 * 1024;

/// The header that most proxies write.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Which header names the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// `X-Forwarded-For: client, proxy`.
    #[default]
    XForwardedFor,
    /// `Forwarded: for=client, for=proxy` (RFC 7239).
    Forwarded,
}

impl Source {
    /// The name of the header.
    pub const fn header(self) -> HeaderName {
        match self {
            Self::XForwardedFor => X_FORWARDED_FOR,
            Self::Forwarded => header::FORWARDED,
        }
    }
}

/// Which of the addresses counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// The right-most that is not a trusted proxy: the last one that nobody could make up.
    #[default]
    Rightmost,
    /// The left-most, whoever wrote it. Only for a first proxy that discards what it receives.
    Leftmost,
}

/// How to tell whose request it is.
#[derive(Debug, Clone, Default)]
pub struct ClientAddr {
    trusted: TrustedProxies,
    source: Source,
    take: Take,
}

impl ClientAddr {
    /// Without trusted proxies the socket's address is always the client.
    pub fn new(trusted: &[IpNet], source: Source, take: Take) -> Self {
        Self { trusted: TrustedProxies::new(trusted), source, take }
    }

    /// The client's address, given the socket's and the request's headers.
    ///
    /// An IPv4 address in IPv6 clothes (`::ffff:192.0.2.1`) is shown as IPv4, so that a client
    /// has one address whichever way it came.
    ///
    /// ```
    /// # use {http::HeaderMap, std::net::IpAddr};
    /// # use tollgate_http::client_addr::{ClientAddr, Source, Take};
    /// let proxies = ["10.0.0.0/8".parse().unwrap()];
    /// let client_addr = ClientAddr::new(&proxies, Source::XForwardedFor, Take::Rightmost);
    /// let mut headers = HeaderMap::new();
    /// // The caller sent "127.0.0.1"; our proxy appended the address it really saw.
    /// headers.insert("x-forwarded-for", "127.0.0.1, 203.0.113.7".parse().unwrap());
    ///
    /// let proxy: IpAddr = [10, 0, 0, 1].into();
    /// assert_eq!(client_addr.of(proxy, &headers), IpAddr::from([203, 0, 113, 7]));
    ///
    /// // From anyone else the header changes nothing.
    /// let stranger: IpAddr = [198, 51, 100, 9].into();
    /// assert_eq!(client_addr.of(stranger, &headers), stranger);
    /// ```
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.of_lines(peer, || {
            headers.get_all(self.source.header()).into_iter().map(|line| line.as_bytes())
        })
    }

    /// The same for a front end that keeps headers in its own way: `lines` gives the values of
    /// [`Source::header`], in their order. It is asked only if the peer is trusted.
    pub fn of_lines<'a, L>(&self, peer: IpAddr, lines: impl Fn() -> L) -> IpAddr
    where
        L: DoubleEndedIterator<Item = &'a [u8]>,
    {
        let peer = peer.to_canonical();
        if !self.trusted.contains(peer) {
            return peer;
        }
        match self.source {
            Source::XForwardedFor => self.walk(peer, lines, Quotes::None, entry::address),
            Source::Forwarded => self.walk(peer, lines, Quotes::Skip, forwarded::address),
        }
    }

    /// Which header is read.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Whether this address is one of our proxies.
    pub fn trusts(&self, addr: IpAddr) -> bool {
        self.trusted.contains(addr.to_canonical())
    }

    /// Several lines of one name are one list, in their order (RFC 9110, 5.2).
    fn walk<'a, L>(
        &self,
        peer: IpAddr,
        lines: impl Fn() -> L,
        quotes: Quotes,
        address: fn(&[u8]) -> Option<IpAddr>,
    ) -> IpAddr
    where
        L: DoubleEndedIterator<Item = &'a [u8]>,
    {
        if self.take == Take::Leftmost {
            let first = list::from_left(lines(), quotes).next();
            if let Some(addr) = first.and_then(address) {
                return addr;
            }
        }
        self.rightmost(peer, list::from_right(lines().rev(), quotes).map_while(address))
    }

    fn rightmost(&self, peer: IpAddr, addrs: impl Iterator<Item = IpAddr>) -> IpAddr {
        let mut last = peer;
        for addr in addrs {
            last = addr;
            if !self.trusted.contains(addr) {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests;
