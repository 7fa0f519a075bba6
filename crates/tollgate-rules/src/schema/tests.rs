use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::schema;
use crate::{
    mistake::Findings,
    read,
    read::keys,
    yaml::{self, Node, Value},
};

fn parsed() -> Json {
    serde_json::from_str(schema()).unwrap()
}

/// The schema's own part that describes what stands at `place`.
fn part<'s>(root: &'s Json, place: &str) -> &'s Json {
    let mut part = root;
    for step in place.split('.').filter(|step| !step.is_empty()) {
        let (key, list) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
        part = followed(root, &part["properties"][key]);
        if list {
            part = followed(root, &part["items"]);
        }
    }
    part
}

/// Where a reference leads; of several forms the one that is a section.
fn followed<'s>(root: &'s Json, part: &'s Json) -> &'s Json {
    if let Some(forms) = part["anyOf"].as_array() {
        let sections = forms.iter().map(|form| followed(root, form));
        return sections.into_iter().find(|form| form["properties"].is_object()).unwrap_or(part);
    }
    match part["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
        Some(name) => followed(root, root.pointer(name).unwrap()),
        None => part,
    }
}

fn keys_of(part: &Json) -> BTreeSet<&str> {
    part["properties"].as_object().into_iter().flatten().map(|(key, _)| &**key).collect()
}

/// All sections of the schema, by place.
fn sections(root: &Json, place: &str, found: &mut Vec<String>) {
    let part = part(root, place);
    if !part["properties"].is_object() {
        return;
    }
    found.push(place.to_owned());
    for key in keys_of(part) {
        let value = followed(root, &part["properties"][key]);
        let list = if value["type"] == "array" { "[]" } else { "" };
        let dot = if place.is_empty() { "" } else { "." };
        sections(root, &format!("{place}{dot}{key}{list}"), found);
    }
}

fn validator() -> jsonschema::Validator {
    let schema = parsed();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{error}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A YAML text as an editor hands it to a validator.
fn json(text: &str) -> Json {
    fn value(node: &Node) -> Json {
        match &node.value {
            Value::Null | Value::Broken => Json::Null,
            Value::Scalar(text) => match serde_json::from_str(text) {
                Ok(plain @ (Json::Bool(_) | Json::Number(_))) => plain,
                _ => Json::String(text.clone()),
            },
            Value::List(items) => items.iter().map(value).collect(),
            Value::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), value(&entry.node))).collect()
            }
        }
    }
    value(&yaml::parse(text, &mut Findings::new("")).unwrap())
}

#[test]
fn the_schema_and_the_reader_know_the_same_keys() {
    let root = parsed();
    for section in keys::ALL {
        let read: BTreeSet<_> = section.keys.iter().copied().collect();
        assert_eq!(read, keys_of(part(&root, section.place)), "in {:?}", section.place);
    }
    let mut described = Vec::new();
    sections(&root, "", &mut described);
    let described: BTreeSet<_> = described.iter().map(String::as_str).collect();
    assert_eq!(described, keys::ALL.iter().map(|section| section.place).collect());
}

#[test]
fn everything_in_the_schema_is_described_and_closed() {
    let root = parsed();
    for section in keys::ALL {
        let part = part(&root, section.place);
        assert_eq!(part["additionalProperties"], false, "{}", section.place);
        for (key, value) in part["properties"].as_object().unwrap() {
            let described = value["description"].is_string()
                || followed(&root, value)["description"].is_string();
            assert!(described, "{}.{key}", section.place);
        }
    }
}

/// A text with `value` under the key of the section, and the path a mistake about it has.
fn with_key(place: &str, key: &str, value: &str) -> (String, String) {
    let mut text = format!("{{{key}: {value}}}");
    for step in place.rsplit('.').filter(|step| !step.is_empty()) {
        text = match step.strip_suffix("[]") {
            Some(step) => format!("{{{step}: [{text}]}}"),
            None => format!("{{{step}: {text}}}"),
        };
    }
    let dot = if place.is_empty() { "" } else { "." };
    (text, format!("{}{dot}{key}", place.replace("[]", "[0]")))
}

#[test]
fn every_known_key_is_really_read() {
    for section in keys::ALL {
        for key in section.keys {
            let value = match (section.place, *key) {
                // A limit reads its numbers only once it knows whose they are.
                ("policies[].limits[]", "rate" | "burst") => "[[]], algorithm: token_bucket",
                ("policies[].limits[]", "limit" | "lease") => "[[]], algorithm: concurrency",
                _ => "[[]]",
            };
            let (text, path) = with_key(section.place, key, value);
            let mistakes = read("a.yaml", &text, &|_| None).expect_err(&text);
            let told = mistakes.all().iter().any(|mistake| mistake.path.starts_with(&path));
            assert!(told, "{text}: {mistakes}");
            assert!(!mistakes.to_string().contains("no such setting"), "{text}: {mistakes}");
        }
    }
}

/// Every setting that this version serves.
const EVERYTHING: &str = include_str!("everything.yaml");

// covers: G6
#[test]
fn what_is_read_validates_and_what_is_refused_does_not() {
    let validator = validator();
    let env = |name: &str| (name == "BURST").then(|| "15".to_owned());
    let check = |text: &str| {
        let read = read("a.yaml", text, &env);
        let errors: Vec<_> = validator.iter_errors(&json(text)).map(|e| e.to_string()).collect();
        assert_eq!(read.is_ok(), errors.is_empty(), "{text}: {errors:?} {:?}", read.err());
        errors.is_empty()
    };
    assert!(check(EVERYTHING));
    assert!(check(""));
    for text in [
        "workers: 4",
        "workers: \"4\"",
        "drain: 1 min",
        "policies: [{id: a}]",
        "policies: [{id: a, limits: [{algorithm: sliding_log, rate: 5/2 h}]}]",
        "policies: [{id: a, mode: leased, epsilon: 0.05}]",
        "policies: [{id: a, ttl: 120s}]",
        "store: {max_bytes: 1048576}",
        "store: {kind: redis, url: redis://127.0.0.1:6379, prefix: ratelimit, timeout: 50ms, on_failure: {mode: local, share: 0.5}}",
        "store: {kind: redis, url: redis://127.0.0.1, on_failure: {share: fleet}, max_keys: 1000}",
        "store: {kind: redis, url: redis://127.0.0.1, on_failure: {mode: deny}}",
        "store: {kind: redis, url: rediss://127.0.0.1, tls: {ca: ca.pem, cert: own.pem, key: own.key}}",
        "headers: {ietf: \"true\"}",
    ] {
        assert!(check(text), "{text}");
    }
    for text in [
        "[]",
        "worker: 4",
        "workers: four",
        "drain: 30",
        "policies: {}",
        "policies: [{limits: []}]",
        "policies: [{id: a b}]",
        "policies: [{id: a, epsilon: 0.05}]",
        "policies: [{id: a, limits: [{rate: 5/s}]}]",
        "policies: [{id: a, limits: [{algorithm: token_bucket}]}]",
        "policies: [{id: a, limits: [{algorithm: leaky, rate: 5/s}]}]",
        "policies: [{id: a, limits: [{algorithm: token_bucket, rate: 5/m}]}]",
        "policies: [{id: a, limits: [{algorithm: fixed_window, rate: 5/s, burst: 5}]}]",
        "policies: [{id: a, limits: [{algorithm: concurrency, rate: 5/s}]}]",
        "routes: [{id: x, path: /, upstreams: [builtin:echo]}]",
        "routes: [{id: 550e8400-e29b-41d4-a716-446655440000, path: api, upstreams: [builtin:echo]}]",
        "routes: [{id: 550e8400-e29b-41d4-a716-446655440000, path: /api, upstreams: []}]",
        "policies: [{id: a, ttl: 120}]",
        "store: {at_bound: drop}",
        "store: {kind: redis}",
        "store: {kind: redis, url: http://127.0.0.1}",
        "store: {kind: redis, url: redis://127.0.0.1, on_failure: {mode: never}}",
        "store: {kind: redis, url: redis://127.0.0.1, on_failure: {share: half}}",
        "store: {kind: redis, url: redis://127.0.0.1, on_failure: {share: 0}}",
        "store: {kind: redis, url: rediss://127.0.0.1, tls: {cert: own.pem}}",
        "store: {kind: redis, url: redis://127.0.0.1, save: levels.bin}",
        "store: {url: redis://127.0.0.1}",
        "store: {max_bytes: 64MB}",
        "client: {take: first}",
        "headers: {ietf: yes}",
    ] {
        assert!(!check(text), "{text}");
    }
}

#[test]
fn what_is_not_available_yet_has_its_place_in_the_schema() {
    let validator = validator();
    for text in [
        "listen: {grpc: 127.0.0.1:8081, resp: 127.0.0.1:6380}",
        "store: {kind: remote, url: http://127.0.0.1:8082, timeout: 2s, on_failure: {mode: allow}}",
        "policies: [{id: a, on_exceed: {queue: {max_wait: 2s, max_depth: 100}}}]",
        "envoy: {rules: ./rules, shadow_mode: false, quota_mode: false, response_headers: false, count_when_over: true, response_metadata: false}",
    ] {
        assert!(validator.is_valid(&json(text)), "{text}");
        let mistakes = read("a.yaml", text, &|_| None).expect_err(text);
        let honest = |text: &str| text.ends_with("is not available yet in this version");
        assert!(mistakes.all().iter().all(|mistake| honest(&mistake.text)), "{mistakes}");
    }
}
