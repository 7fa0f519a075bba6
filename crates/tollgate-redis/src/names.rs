//! What a counter is called in Redis, and in which slot of a cluster it lies.
//!
//! `ratelimit:orders:192.168.1.100` is the first limit of the policy `orders` for that client, and
//! `ratelimit:orders#1:192.168.1.100` its second. An operator finds a client by this name and may
//! `DEL` it. In a cluster the client's part carries the hash tag, so that all limits of one client
//! lie in one slot and can be asked in one call.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use tollgate_store::NamedLimit;

/// Longer keys are kept as a hash: a name costs memory in Redis, and a client may choose its length.
const KEY_BYTES_MAX: usize = 256;

/// How the key of a client begins that is kept as a hash.
const HASHED: &[u8] = b"sha256:";

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// How counters are named.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: Box<str>,
    cluster: bool,
}

impl Names {
    /// Names that begin with `prefix`; in a `cluster` with a hash tag.
    pub(crate) fn new(prefix: &str, cluster: bool) -> Self {
        let prefix = if cluster { untagged(prefix) } else { prefix.to_owned() };
        Self { prefix: prefix.into(), cluster }
    }

    /// The name of the counter of `limit` for the client `key`.
    pub(crate) fn counter(&self, limit: &NamedLimit, key: &[u8]) -> Vec<u8> {
        self.name(limit, "", key)
    }

    /// The name of the list of who holds a slice of that counter; in the same slot.
    pub(crate) fn held(&self, limit: &NamedLimit, key: &[u8]) -> Vec<u8> {
        self.name(limit, "~held", key)
    }

    fn name(&self, limit: &NamedLimit, what: &str, key: &[u8]) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + limit.policy().len() + key.len() + 8);
        name.extend_from_slice(self.prefix.as_bytes());
        name.push(b':');
        match self.cluster {
            true => name.extend_from_slice(untagged(limit.policy()).as_bytes()),
            false => name.extend_from_slice(limit.policy().as_bytes()),
        }
        if limit.position() > 0 {
            name.push(b'#');
            name.extend_from_slice(limit.position().to_string().as_bytes());
        }
        name.extend_from_slice(what.as_bytes());
        name.push(b':');
        self.client(&mut name, key);
        name
    }

    fn client(&self, name: &mut Vec<u8>, key: &[u8]) {
        if self.cluster {
            name.push(b'{');
        }
        // A key that looks like a hash is hashed too: nobody may choose the name of somebody else.
        let untold = key.len() > KEY_BYTES_MAX || key.starts_with(HASHED);
        // Redis takes no empty tag, and ends it with the first brace.
        let untagged = self.cluster && (key.is_empty() || key[0] == b'}');
        if untold || untagged {
            name.extend_from_slice(HASHED);
            name.extend_from_slice(hex(&Sha256::digest(key)).as_bytes());
        } else {
            name.extend_from_slice(key);
        }
        if self.cluster {
            name.push(b'}');
        }
    }
}

/// The slot of a cluster that a name lies in.
pub(crate) fn slot(name: &[u8]) -> u16 {
    crc16(tag(name)) % SLOTS
}

/// What is between the first brace and the next that closes it, or all if that is nothing.
fn tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
    let rest = &name[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => name,
        Some(close) => &rest[..close],
    }
}

/// CRC16 as XMODEM has it, which is what Redis takes.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let mut crc: u16 = crc ^ (u16::from(*byte) << 8);
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
        }
        crc
    })
}

/// A text of the configuration without the brace that would begin a hash tag.
fn untagged(text: &str) -> String {
    text.replace('{', "%7B")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, Rate, Unit};

    use super::*;

    fn limit(policy: &str, position: usize) -> NamedLimit {
        let limit = Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap();
        NamedLimit::new(policy, position, limit)
    }

    #[track_caller]
    fn check(cluster: bool, policy: &str, position: usize, key: &[u8], expected: &str) {
        let name = Names::new("ratelimit", cluster).counter(&limit(policy, position), key);
        assert_eq!(String::from_utf8_lossy(&name), expected);
    }

    // part of: B3
    #[test]
    fn a_counter_is_called_by_prefix_policy_and_client() {
        let policy = "550e8400-e29b-41d4-a716-446655440000";
        check(false, policy, 0, b"192.168.1.100", &format!("ratelimit:{policy}:192.168.1.100"));
        check(false, "orders", 2, b"ann", "ratelimit:orders#2:ann");
        check(true, "orders", 2, b"ann", "ratelimit:orders#2:{ann}");
        check(true, "or{d}ers", 0, b"ann", "ratelimit:or%7Bd}ers:{ann}");
        let held = Names::new("rl", true).held(&limit("orders", 1), b"ann");
        assert_eq!(held, b"rl:orders#1~held:{ann}");
    }

    #[test]
    fn keys_that_are_too_long_or_look_hashed_are_hashed() {
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let name = Names::new("rl", false).counter(&limit("p", 0), abc.as_bytes());
        assert_ne!(name, format!("rl:p:{abc}").as_bytes());
        check(false, "p", 0, &[b'x'; 256], &format!("ratelimit:p:{}", "x".repeat(256)));
        let long = "sha256:37c4f37e1e08eecd2b1cad3cc3b44f0f24a1b5d0d5ee07a3e0a68bd5ab5dd6ba";
        let name = Names::new("rl", false).counter(&limit("p", 0), &[b'x'; 257]);
        assert_eq!(name.len(), "rl:p:".len() + long.len());
        // In a cluster also those that make no tag.
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        check(true, "p", 0, b"", &format!("ratelimit:p:{{{empty}}}"));
        check(false, "p", 0, b"", "ratelimit:p:");
        check(true, "p", 0, b"a}", "ratelimit:p:{a}}");
    }

    #[test]
    fn all_counters_of_a_client_lie_in_one_slot() {
        let names = Names::new("rl", true);
        for key in [&b"ann"[..], b"", b"}", b"}}", b"a}b", b"{", b"{}", b"\xff", &[b'x'; 300]] {
            let first = slot(&names.counter(&limit("orders", 0), key));
            for other in [limit("orders", 1), limit("{x}", 0), limit("global", 7)] {
                assert_eq!(slot(&names.counter(&other, key)), first, "{key:?}");
                assert_eq!(slot(&names.held(&other, key)), first, "{key:?}");
            }
        }
    }

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo{hash_tag}"), slot(b"hash_tag"));
        assert_eq!(slot(b"{}foo"), crc16(b"{}foo") % SLOTS);
    }
}
