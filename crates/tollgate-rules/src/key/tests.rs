use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Asked {
    ip: IpAddr,
    headers: BTreeMap<String, Vec<u8>>,
    host: Option<&'static str>,
    path: &'static str,
    query: Option<&'static str>,
}

impl Default for Asked {
    fn default() -> Self {
        let headers = BTreeMap::new();
        Self { ip: [192, 168, 1, 100].into(), headers, host: None, path: "/", query: None }
    }
}

impl Asked {
    fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.insert(name.to_owned(), value.into());
        self
    }

    fn from_ip(ip: &str) -> Self {
        Self { ip: ip.parse().unwrap(), ..Self::default() }
    }
}

impl Attributes for Asked {
    fn ip(&self) -> IpAddr {
        self.ip
    }
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(Vec::as_slice)
    }
    fn host(&self) -> Option<&str> {
        self.host
    }
    fn method(&self) -> &str {
        "GET"
    }
    fn path(&self) -> &str {
        self.path
    }
    fn query(&self) -> Option<&str> {
        self.query
    }
}

fn key(template: &str, asked: &Asked) -> String {
    let mut out = KeyBuf::from_slice(b"left over");
    KeyTemplate::parse(template).unwrap().render(asked, 64, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[track_caller]
fn check(template: &str, asked: &Asked, expected: &str) {
    assert_eq!(key(template, asked), expected);
}

#[track_caller]
fn refused(template: &str, expected: &str) {
    assert_eq!(KeyTemplate::parse(template).unwrap_err().to_string(), expected);
}

// part of: C8, C7
#[test]
fn an_address_is_written_plainly_and_by_network() {
    check("{ip}", &Asked::default(), "192.168.1.100");
    check("{ip}", &Asked::from_ip("0.9.10.255"), "0.9.10.255");
    check("rl:auth:{ip}", &Asked::default(), "rl:auth:192.168.1.100");
    check("{ip}", &Asked::from_ip("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    check("{ip}", &Asked::from_ip("::ffff:10.0.0.1"), "10.0.0.1");
    check("{ip}:{method}", &Asked::from_ip("2001:db8::1"), "[2001:db8::]:GET");
    check("{ip}:{method}", &Asked::default(), "192.168.1.100:GET");
}

#[test]
fn the_ipv6_prefix_is_a_setting() {
    let mut out = KeyBuf::new();
    for (prefix, expected) in
        [(128, "2001:db8::1"), (32, "2001:db8::"), (0, "::"), (200, "2001:db8::1")]
    {
        KeyTemplate::ip().render(&Asked::from_ip("2001:db8::1"), prefix, &mut out);
        assert_eq!(&out[..], expected.as_bytes());
    }
}

// part of: C7
#[test]
fn every_part_reads_what_the_upstream_would_read() {
    let asked = Asked {
        host: Some("Shop.Example.:8443"),
        path: "/api//%75sers/42",
        query: Some("a=1&us%65r=J%c3%b6rg+x"),
        ..Asked::default()
    };
    let asked = asked.with("x-tenant", "acme").with("cookie", "a=b; sid=\"s 1\"; sidx=2");
    check("{header.X-Tenant}", &asked, "acme");
    check("{cookie.sid}", &asked, "s 1");
    check("{query.user}", &asked, "Jörg x");
    check("{path.2}", &asked, "users");
    check("{host}", &asked, "shop.example");
    check("t:{header.x-tenant}/{path.3}", &asked, "t:acme/42");
    check("everybody", &asked, "everybody");
}

#[test]
fn a_missing_part_counts_by_address() {
    let anonymous = "anonymous:192.168.1.100";
    for template in
        ["{header.x}", "{cookie.x}", "{query.x}", "{path.1}", "{host}", "a{ip}{header.x}"]
    {
        check(template, &Asked::default(), anonymous);
    }
    check("{header.x}", &Asked::default().with("x", ""), anonymous);
    check("{query.x}", &Asked { query: Some("x=1&x=2"), ..Asked::default() }, anonymous);
    check("{query.x}", &Asked { query: Some("x"), ..Asked::default() }, anonymous);
    check("{cookie.x}", &Asked::default().with("cookie", "x=1; x=2"), anonymous);
    check("{path.1}", &Asked { path: "/a%2Fb", ..Asked::default() }, anonymous);
    check("{header.x}", &Asked::from_ip("2001:db8::1"), "anonymous:2001:db8::");
}

#[test]
fn no_value_can_pass_for_an_anonymous_client() {
    let forged = Asked::default().with("x", "anonymous:10.0.0.1");
    check("{header.x}", &forged, "=anonymous:10.0.0.1");
    let forged = Asked::default().with("x", "=anonymous:10.0.0.1");
    check("{header.x}", &forged, "==anonymous:10.0.0.1");
}

#[test]
fn values_keep_apart_from_the_text_around_them() {
    let asked = Asked::default().with("a", "x:y%").with("b", "z:%");
    check("{header.a}:{header.b}", &asked, "x%.y%%:z:%");
    check("{header.a}{header.b}", &asked, "x:y%%|z:%");
    check("{header.a}%{header.b}", &asked, "x:y~.%z:%");
    check("{header.a}:{header.b}:end", &asked, "x%.y%%:z:%:end");
}

// covers: G6
#[test]
fn what_is_no_template_is_told_what_would_be() {
    let parts =
        "the parts are {ip} {header.NAME} {cookie.NAME} {query.NAME} {path.N} {host} {method}";
    refused("", "a key cannot be empty: write \"{ip}\" to count by address");
    refused("{ip", "\"{ip\" has a brace without its partner: a part is written {ip}");
    refused("ip}", "\"ip}\" has a brace without its partner: a part is written {ip}");
    refused("{{ip}}", &format!("\"{{{{ip}}\" is an unknown part: did you mean {{ip}}? {parts}"));
    refused("{iq}", &format!("\"{{iq}}\" is an unknown part: did you mean {{ip}}? {parts}"));
    refused(
        "{heder.X}",
        &format!("\"{{heder.X}}\" is an unknown part: did you mean {{header.NAME}}? {parts}"),
    );
    refused("{something}", &format!("\"{{something}}\" is an unknown part: {parts}"));
    refused("{}", &format!("\"{{}}\" is an unknown part: {parts}"));
    refused("{ip.x}", &format!("\"{{ip.x}}\" is an unknown part: {parts}"));
    refused("{header}", "\"{header}\" names no header: write {header.X-Tenant}");
    refused("{cookie.a b}", "\"{cookie.a b}\" names no cookie: write {cookie.session}");
    refused("{path.0}", "\"{path.0}\" names no segment, counted from 1 to 64: write {path.2}");
    refused("{user}", "\"{user}\" is not available yet in this version");
    refused("{claim.sub}", "\"{claim.sub}\" is not available yet in this version");
    refused("a\tb", "a key cannot contain the control character '\\t'");
    refused(&"a".repeat(2_000), "the key has 2000 bytes: at most 1024");
}

/// Few different bytes, so that values often run into each other and into the literals.
const TRICKY: &str = "[a:|%.=~-]{1,4}";

fn values() -> impl Strategy<Value = Asked> {
    const IPS: &[&str] = &["10.0.0.1", "1.1.1.1", "::1", "::1:0:0:0:2", "2001:db8::"];
    let header = || proptest::option::weighted(0.9, prop_oneof![TRICKY, "=?anonymous:10.0.0.1"]);
    (proptest::sample::select(IPS), header(), header(), header()).prop_map(|(ip, a, b, c)| {
        [("a", a), ("b", b), ("c", c)]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .fold(Asked::from_ip(ip), |asked, (name, value)| asked.with(name, value))
    })
}

fn templates() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("{ip}".to_owned()),
        Just("{header.a}".to_owned()),
        Just("{header.b}".to_owned()),
        Just("{header.c}".to_owned()),
        TRICKY,
    ];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// What a template takes of a request: the address alone where one of the headers is missing.
fn tuple(template: &str, asked: &Asked) -> (bool, Vec<Vec<u8>>) {
    let ip = masked(asked.ip, 64).to_string().into_bytes();
    let mut values = Vec::new();
    for name in ["a", "b", "c"] {
        if template.contains(&format!("{{header.{name}}}")) {
            match asked.header(name) {
                Some(value) => values.push(value.to_vec()),
                None => return (false, vec![ip]),
            }
        }
    }
    if template.contains("{ip}") {
        values.push(ip);
    }
    (true, values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    // part of: C7
    #[test]
    fn different_values_never_share_a_key(
        template in templates(), one in values(), other in values(),
    ) {
        let same_values = tuple(&template, &one) == tuple(&template, &other);
        let same_key = key(&template, &one) == key(&template, &other);
        prop_assert_eq!(same_values, same_key, "{} {:?} {:?}", template, one, other);
    }

    #[test]
    fn no_text_makes_it_panic(template in "\\PC{0,30}|(\\{[a-z.]{0,8}\\}?|\\PC){0,6}") {
        if let Ok(template) = KeyTemplate::parse(&template) {
            template.render(&Asked::default(), 64, &mut KeyBuf::new());
        }
    }
}
