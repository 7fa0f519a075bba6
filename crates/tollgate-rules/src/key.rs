//! Whom a policy counts: templates such as `rl:auth:{ip}`, and the keys they give.

use std::net::IpAddr;

use smallvec::SmallVec;

/// A rendered key; short ones live on the stack.
pub type KeyBuf = SmallVec<[u8; 64]>;

/// What a key template may ask of a request.
pub trait Attributes {
    /// The client's address, trusted proxies already taken into account.
    fn ip(&self) -> IpAddr;
    /// The value of a header; the name is in lower case.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The host the request names, with or without its port.
    fn host(&self) -> Option<&str>;
    /// The method.
    fn method(&self) -> &str;
    /// The path as it was sent.
    fn path(&self) -> &str;
    /// What stands after the question mark.
    fn query(&self) -> Option<&str>;
}

/// A compiled key template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTemplate {}

/// Why a text is no key template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyTemplateError {
    /// Nothing at all.
    #[error("a key cannot be empty")]
    Empty,
}

impl KeyTemplate {
    /// Reads a template.
    pub fn parse(_text: &str) -> Result<Self, KeyTemplateError> {
        Ok(Self {})
    }

    /// Writes the key of a request into `out`, which is cleared first.
    pub fn render<A: Attributes + ?Sized>(&self, _a: &A, _ipv6_prefix: u8, out: &mut KeyBuf) {
        out.clear();
    }
}
