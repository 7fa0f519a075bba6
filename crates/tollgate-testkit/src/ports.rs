//! Ports on loopback that nobody listens on.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// As many free addresses as asked for, all different.
///
/// They are free when this returns, not for ever: another process may take one before it is used.
/// Whoever starts a server on them tries again with others when that happens. A program that can
/// listen on port 0 and tell its address needs none of this.
pub fn free_addrs(count: usize) -> io::Result<Vec<SocketAddr>> {
    // All are held until the last is found, or the system could hand out the same one twice.
    let held = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<io::Result<Vec<_>>>()?;
    held.iter().map(TcpListener::local_addr).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_differ_and_can_be_bound() {
        let mut addrs = free_addrs(16).unwrap();
        addrs.iter().for_each(|addr| drop(TcpListener::bind(addr).unwrap()));
        addrs.sort();
        addrs.dedup();
        assert_eq!(addrs.len(), 16);
    }
}
