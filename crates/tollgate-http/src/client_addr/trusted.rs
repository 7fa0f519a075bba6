//! Which addresses are proxies of ours.
//!
//! Networks become sorted ranges that do not touch, so a look-up is a binary search: one or two
//! comparisons for the usual few, and still quick for a cloud provider's hundreds.

use std::net::IpAddr;

use ipnet::IpNet;

/// The networks our proxies are in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl TrustedProxies {
    /// From networks in any order, overlapping or not.
    pub fn new(networks: &[IpNet]) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            // A range of mapped addresses is given by its ends, as addresses are: canonically.
            match (network.network().to_canonical(), network.broadcast().to_canonical()) {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.into(), last.into())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.into(), last.into())),
                // Wider than the mapped addresses are, so one end lies outside of them.
                _ => {
                    if let IpNet::V6(network) = network {
                        v6.push((network.network().into(), network.broadcast().into()));
                    }
                }
            }
        }
        Self { v4: Ranges::new(v4), v6: Ranges::new(v6) }
    }

    /// Whether `addr`, in its canonical form, is one of them.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => self.v4.contains(addr.into()),
            IpAddr::V6(addr) => self.v6.contains(addr.into()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Ranges<T>(Box<[(T, T)]>);

impl<T: Ord + Copy> Ranges<T> {
    fn new(mut ranges: Vec<(T, T)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let overlaps = next.0 <= kept.1;
            if overlaps {
                kept.1 = kept.1.max(next.1);
            }
            overlaps
        });
        Self(ranges.into())
    }

    fn contains(&self, value: T) -> bool {
        let after = self.0.partition_point(|range| range.0 <= value);
        after > 0 && value <= self.0[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[track_caller]
    fn check(trusted: &[&str], addr: &str, expected: bool) {
        let addr: IpAddr = addr.parse().unwrap();
        assert_eq!(TrustedProxies::new(&networks(trusted)).contains(addr), expected);
    }

    #[test]
    fn the_ends_of_a_network_belong_to_it() {
        check(&["10.0.0.0/8"], "10.0.0.0", true);
        check(&["10.0.0.0/8"], "10.255.255.255", true);
        check(&["10.0.0.0/8"], "9.255.255.255", false);
        check(&["10.0.0.0/8"], "11.0.0.0", false);
        check(&["192.0.2.1/32"], "192.0.2.1", true);
        check(&["192.0.2.1/32"], "192.0.2.2", false);
        check(&["2001:db8::/32"], "2001:db8:ffff::1", true);
        check(&["2001:db8::/32"], "2001:db9::", false);
    }

    #[test]
    fn a_network_inside_another_does_not_shorten_it() {
        check(&["10.0.0.0/8", "10.1.0.0/16"], "10.200.0.1", true);
        check(&["10.1.0.0/16", "0.0.0.0/0"], "255.255.255.255", true);
    }

    #[test]
    fn families_are_apart_but_for_mapped_networks() {
        check(&["0.0.0.0/0"], "::1", false);
        check(&["::/0"], "10.0.0.1", false);
        check(&["::/0"], "2001:db8::1", true);
        check(&["::ffff:10.0.0.0/104"], "10.1.2.3", true);
        check(&["::ffff:10.0.0.0/104"], "11.1.2.3", false);
    }

    #[test]
    fn nobody_is_trusted_by_default() {
        check(&[], "127.0.0.1", false);
        check(&[], "::1", false);
    }

    proptest! {
        #[test]
        fn ranges_agree_with_asking_every_network(
            networks in prop::collection::vec((any::<u8>(), 0..=32u8), 0..8),
            addr in any::<[u8; 2]>(),
        ) {
            let networks: Vec<IpNet> = networks
                .into_iter()
                .map(|(byte, prefix)| IpNet::new([byte, 0, 0, 0].into(), prefix).unwrap())
                .collect();
            let addr = IpAddr::from([addr[0], 0, 0, addr[1]]);
            let expected = networks.iter().any(|network| network.contains(&addr));
            prop_assert_eq!(TrustedProxies::new(&networks).contains(addr), expected);
        }
    }
}
