//! The `routes` section.

use std::collections::{HashMap, HashSet};

use http::Method;

use super::{
    fields::{At, Fields},
    keys,
    reader::Reader,
    upstream::parse_upstream,
};
use crate::{
    Route, Upstream,
    host::{bare_host, is_host},
    mistake::{Mark, shown},
    path::normal_path,
    suggest::nearest,
};

/// Reads all routes and returns the published ones.
pub(super) fn routes(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    policies: &HashMap<Box<str>, usize>,
    case_sensitive: bool,
) -> Vec<Route> {
    let mut seen = Seen { case_sensitive, ..Seen::default() };
    let mut published = Vec::new();
    for at in reader.items(root, "routes", "routes") {
        let Some(fields) = reader.fields(&at, &keys::ROUTE) else { continue };
        let route = route(reader, &fields, policies);
        let serves = status(reader, &fields);
        let Some(route) = route else { continue };
        seen.check_id(reader, &fields, &route);
        if serves {
            seen.check_place(reader, &fields, &route);
            published.push(route);
        }
    }
    published
}

fn route(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    policies: &HashMap<Box<str>, usize>,
) -> Option<Route> {
    let id = id(reader, fields);
    let path = path(reader, fields);
    let host = host(reader, fields);
    let methods = methods(reader, fields);
    let upstreams = upstreams(reader, fields);
    let policies = policy_places(reader, fields, policies);
    Some(Route { index: 0, id: id?, path: path?, host: host?, methods, upstreams, policies })
}

fn id(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Box<str>> {
    let expected = "a UUID like 550e8400-e29b-41d4-a716-446655440000";
    let at = reader.required(fields, "id", expected)?;
    let text = reader.text(&at, expected)?;
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if !is_uuid {
        reader.mistake(&at, format!("found {}, expected {expected}", shown(text)));
        return None;
    }
    Some(text.to_ascii_lowercase().into())
}

fn path(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Box<str>> {
    let at = reader.required(fields, "path", "path: /api")?;
    reader.parsed(&at, "a path like /api", parse_path)
}

fn parse_path(text: &str) -> Result<Box<str>, String> {
    let found = shown(text);
    if !text.starts_with('/') {
        return Err(format!("found {found}: a path begins with /"));
    }
    if text.contains(['*', '{', '}']) {
        return Err(format!("found {found}: a path has no wildcards, it serves all below it"));
    }
    if text.contains(['?', '#', ';']) {
        return Err(format!("found {found}: a path has neither ?, # nor ; in it"));
    }
    let Some(normal) = normal_path(text) else {
        return Err(format!("found {found}: no client's path could ever be this"));
    };
    let trimmed = normal.trim_end_matches('/');
    Ok(if trimmed.is_empty() { "/".into() } else { trimmed.into() })
}

/// The one host, or none; `None` on a mistake.
fn host(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<Box<str>>> {
    let Some(at) = fields.get("host") else { return Some(None) };
    reader.parsed(&at, "a host like api.example.com", parse_host).map(Some)
}

fn parse_host(text: &str) -> Result<Box<str>, String> {
    let found = shown(text);
    if text.contains('*') {
        return Err(format!("found {found}: a host has no wildcards: write one route per host"));
    }
    let bare = bare_host(text);
    let ipv6 = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let valid = match ipv6 {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host(bare).is_some(),
    };
    let without_port = text.strip_suffix('.').unwrap_or(text) == bare;
    if !valid || !without_port {
        return Err(format!("found {found}, expected a host without a port, like api.example.com"));
    }
    Ok(bare.to_ascii_lowercase().into())
}

fn methods(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<Method> {
    let items = reader.items(fields, "methods", "methods like [GET, POST]");
    let mut methods = Vec::new();
    for at in &items {
        let Some(method) = reader.parsed(at, "a method like GET", parse_method) else { continue };
        if methods.contains(&method) {
            reader.mistake(at, format!("{method} stands here twice"));
        } else {
            methods.push(method);
        }
    }
    methods
}

/// Methods are compared letter by letter, so `get` would never match what clients send.
fn parse_method(text: &str) -> Result<Method, String> {
    let upper = text.to_ascii_uppercase();
    if upper != text {
        return Err(format!("found {}: methods are written in capitals, {upper}", shown(text)));
    }
    Method::from_bytes(text.as_bytes())
        .map_err(|_| format!("found {}, expected a method like GET", shown(text)))
}

fn upstreams(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<Upstream> {
    let like = "upstreams: [\"http://127.0.0.1:9000\"]";
    let Some(at) = reader.required(fields, "upstreams", like) else { return Vec::new() };
    let items = reader.items(fields, "upstreams", "upstreams like [\"http://127.0.0.1:9000\"]");
    if items.is_empty() && matches!(at.node.value, crate::yaml::Value::List(_)) {
        reader.mistake(&at, format!("has no upstream: write {like}"));
    }
    items
        .iter()
        .filter_map(|at| {
            reader.parsed(at, "an upstream like http://127.0.0.1:9000", parse_upstream)
        })
        .collect()
}

fn policy_places(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    policies: &HashMap<Box<str>, usize>,
) -> Vec<usize> {
    let mut places = Vec::new();
    for at in &reader.items(fields, "policies", "policies by their ids") {
        let Some(id) = reader.text(at, "the id of a policy") else { continue };
        match policies.get(id) {
            None => reader.mistake(at, unknown_policy(id, policies)),
            Some(place) if places.contains(place) => {
                reader.mistake(at, format!("the policy {id} stands here twice"));
            }
            Some(place) => places.push(*place),
        }
    }
    places
}

fn unknown_policy(id: &str, policies: &HashMap<Box<str>, usize>) -> String {
    let mut known: Vec<&str> =
        policies.keys().map(|id| &**id).filter(|id| !id.is_empty()).collect();
    known.sort_unstable();
    let found = shown(id);
    if known.is_empty() {
        return format!("there is no policy {found}: none is defined");
    }
    let hint = nearest(id, known.iter().copied())
        .map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    let listed = known.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    let more = match known.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there is no policy {found}: {hint}defined are {listed}{more}")
}

/// Whether the route serves. What stands in a file is meant, unless it says otherwise.
fn status(reader: &mut Reader<'_>, fields: &Fields<'_>) -> bool {
    let choices = [("published", true), ("draft", false)];
    fields.get("status").and_then(|at| reader.choice(&at, &choices)).unwrap_or(true)
}

/// Host and path of a route.
type Place = (Option<Box<str>>, Box<str>);

/// Where an earlier route stands, and its methods.
type Served = (Mark, HashSet<Method>);

/// What earlier routes have taken.
#[derive(Debug, Default)]
struct Seen {
    ids: HashMap<Box<str>, Mark>,
    places: HashMap<Place, Vec<Served>>,
    case_sensitive: bool,
}

impl Seen {
    fn check_id(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>, route: &Route) {
        let Some(at) = fields.get("id") else { return };
        if let Some(first) = self.ids.get(&route.id) {
            let text = format!("the route {} stands already in line {}", route.id, first.line);
            reader.mistake(&at, text);
        } else {
            self.ids.insert(route.id.clone(), at.mark());
        }
    }

    /// Two routes for one request would leave it to chance which one serves.
    fn check_place(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>, route: &Route) {
        let Some(at) = fields.get("path") else { return };
        let path = match self.case_sensitive {
            true => route.path.clone(),
            false => route.path.to_ascii_lowercase().into(),
        };
        let others = self.places.entry((route.host.clone(), path)).or_default();
        let methods: HashSet<Method> = route.methods.iter().cloned().collect();
        let overlaps = |other: &HashSet<Method>| {
            methods.is_empty() || other.is_empty() || !methods.is_disjoint(other)
        };
        if let Some((first, _)) = others.iter().find(|(_, other)| overlaps(other)) {
            reader.mistake(&at, taken(&at, first.line, route));
        }
        others.push((at.mark(), methods));
    }
}

fn taken(at: &At<'_>, first: usize, route: &Route) -> String {
    let line = at.mark().line;
    let place = format!("{}{}", route.host.as_deref().unwrap_or_default(), route.path);
    format!("lines {first} and {line} both serve {place} with the same methods: keep one")
}
