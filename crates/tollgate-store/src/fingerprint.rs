//! Who a key is, in 96 bits under a secret seed.
//!
//! The upper 16 bits of the first word are the key's own and choose the shard; the rest is mixed
//! with the limit's tag. So all limits of a key lie in one shard, and one hash serves them all.

use siphasher::sip128::SipHasher13;

/// The secret that keys are hashed with.
#[derive(Clone, Copy)]
pub(crate) struct Seed(SipHasher13);

/// A key, before it is known under which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    word: u64,
    check: u32,
}

/// A key under one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    /// Never 0: that marks an empty slot.
    pub(crate) word: u64,
    pub(crate) check: u32,
}

const OWN_BITS: u64 = 0xffff << 48;

impl Seed {
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        // Without entropy there is no secret; a store that anyone can flood must not start.
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        Self::from_bytes(bytes)
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(SipHasher13::new_with_key(&bytes))
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.key()
    }

    pub(crate) fn fingerprint(&self, key: &[u8]) -> Fingerprint {
        let hash = self.0.hash(key);
        #[expect(clippy::cast_possible_truncation, reason = "32 of 64 random bits are wanted")]
        Fingerprint { word: hash.h1, check: hash.h2 as u32 }
    }
}

impl Seed {
    /// A key in 128 bits, where it is not kept.
    pub(crate) fn wide(&self, key: &[u8]) -> u128 {
        self.0.hash(key).as_u128()
    }
}

impl Fingerprint {
    /// The shard of all limits of this key.
    pub(crate) fn shard(self, bits: u32) -> usize {
        usize::try_from(self.word.checked_shr(64 - bits).unwrap_or(0)).unwrap_or(0)
    }

    /// This key under the limit with this tag.
    #[expect(clippy::cast_possible_truncation, reason = "96 of the tag's 128 bits are wanted")]
    pub(crate) const fn under(self, tag: u128) -> Id {
        let word = self.word ^ (tag as u64 & !OWN_BITS);
        Id { word: if word == 0 { 1 } else { word }, check: self.check ^ (tag >> 64) as u32 }
    }
}

impl Id {
    /// The fingerprint it was made from, as far as shards are concerned.
    pub(crate) const fn fingerprint(self) -> Fingerprint {
        Fingerprint { word: self.word, check: self.check }
    }
}
