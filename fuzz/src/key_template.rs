//! Any text as a key template, and any values in a request: two clients never share a key.
//!
//! The first line is the template; the next two are the values of the headers `a` and `b` in one
//! request, the two after them in another.

use std::net::{IpAddr, Ipv4Addr};

use tollgate_rules::{Attributes, KeyBuf, KeyTemplate};

/// Reads the first line as a template and renders it for two requests.
pub fn read(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(template) = lines.next().and_then(|line| str::from_utf8(line).ok()) else { return };
    let mut next = || lines.next().filter(|value| !value.is_empty());
    let one = Request { a: next(), b: next() };
    let other = Request { a: next(), b: next() };
    if let Ok(template) = KeyTemplate::parse(template) {
        assert_eq!(key(&template, &one), key(&template, &one), "not the same twice");
        let _ = key(&template, &other);
    }
    values_stay_apart(template, &one, &other);
}

/// Whatever text stands between two values, other values give another key. (Where a part is
/// missing, both are counted by their address, which is the same.)
fn values_stay_apart(between: &str, one: &Request<'_>, other: &Request<'_>) {
    if between.contains(['{', '}']) {
        return;
    }
    let (Some(_), Some(_), Some(_), Some(_)) = (one.a, one.b, other.a, other.b) else { return };
    let Ok(template) = KeyTemplate::parse(&format!("{{header.a}}{between}{{header.b}}")) else {
        return;
    };
    let same = one.a == other.a && one.b == other.b;
    assert_eq!(key(&template, one) == key(&template, other), same, "{between:?} {one:?} {other:?}");
}

fn key(template: &KeyTemplate, request: &Request<'_>) -> KeyBuf {
    let mut key = KeyBuf::new();
    template.render(request, 64, &mut key);
    key
}

#[derive(Debug)]
struct Request<'a> {
    a: Option<&'a [u8]>,
    b: Option<&'a [u8]>,
}

impl Request<'_> {
    fn text(value: Option<&[u8]>) -> Option<&str> {
        value.and_then(|value| str::from_utf8(value).ok())
    }
}

impl Attributes for Request<'_> {
    fn ip(&self) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, 1).into()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        match name {
            "a" => self.a,
            "b" | "cookie" => self.b,
            _ => None,
        }
    }

    fn host(&self) -> Option<&str> {
        Self::text(self.a)
    }

    fn method(&self) -> &str {
        Self::text(self.b).unwrap_or("GET")
    }

    fn path(&self) -> &str {
        Self::text(self.a).unwrap_or("/")
    }

    fn query(&self) -> Option<&str> {
        Self::text(self.b)
    }
}
