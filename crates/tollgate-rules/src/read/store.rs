//! The `store` section: where levels are kept.

use std::time::Duration;

use super::{
    fields::{At, Fields},
    keys,
    reader::Reader,
};
use crate::{AtBound, MemoryConfig, StoreConfig, mistake::shown, yaml::Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Redis,
    Remote,
}

const MEMORY_ONLY: [&str; 4] = ["max_keys", "max_bytes", "at_bound", "save"];
const SERVER_ONLY: [&str; 4] = ["url", "prefix", "timeout", "on_failure"];

pub(super) fn store(reader: &mut Reader<'_>, root: &Fields<'_>) -> StoreConfig {
    let Some(fields) = reader.section(root, "store", &keys::STORE) else {
        return StoreConfig::default();
    };
    let kinds = [("memory", Kind::Memory), ("redis", Kind::Redis), ("remote", Kind::Remote)];
    let kind = match fields.get("kind") {
        None => Some(Kind::Memory),
        Some(at) => reader.choice(&at, &kinds),
    };
    let memory = memory(reader, &fields);
    server(reader, &fields, kind);
    match kind {
        Some(Kind::Memory) => misplaced(reader, &fields, &SERVER_ONLY, "a redis or remote store"),
        Some(Kind::Redis) => {
            misplaced(reader, &fields, &MEMORY_ONLY, "the memory store");
            reader.not_yet(&fields, "kind", "the redis store");
        }
        Some(Kind::Remote) => {
            misplaced(reader, &fields, &MEMORY_ONLY, "the memory store");
            reader.not_yet(&fields, "kind", "the remote store");
        }
        None => {}
    }
    StoreConfig::Memory(memory)
}

fn misplaced(reader: &mut Reader<'_>, fields: &Fields<'_>, keys: &[&str], owner: &str) {
    for at in keys.iter().filter_map(|key| fields.get(key)) {
        reader.mistake(&at, format!("belongs to {owner} and means nothing here: leave it out"));
    }
}

fn memory(reader: &mut Reader<'_>, fields: &Fields<'_>) -> MemoryConfig {
    let default = MemoryConfig::default();
    // A trillion keys fill any machine; a bound beyond that is none.
    let max_keys = fields.get("max_keys").and_then(|at| reader.number(&at, 1..=1 << 40));
    // Less would not hold the table's own shards.
    let max_bytes = fields.get("max_bytes").and_then(|at| reader.size(&at, 64 << 10..=1 << 50));
    let choices = [("evict", AtBound::Evict), ("refuse", AtBound::Refuse)];
    let at_bound = fields.get("at_bound").and_then(|at| reader.choice(&at, &choices));
    MemoryConfig {
        max_keys,
        // Whoever bounds the keys has bounded the bytes, too.
        max_bytes: max_bytes.or(default.max_bytes.filter(|_| max_keys.is_none())),
        at_bound: at_bound.unwrap_or(default.at_bound),
        save: fields.get("save").and_then(|at| reader.file(&at)),
    }
}

/// Checks what a store in another process needs, though none can be used yet.
fn server(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: Option<Kind>) {
    match (kind, fields.get("url")) {
        (Some(kind @ (Kind::Redis | Kind::Remote)), Some(at)) => url(reader, &at, kind),
        (Some(Kind::Redis), None) => {
            reader.required(fields, "url", "url: redis://127.0.0.1:6379");
        }
        (Some(Kind::Remote), None) => {
            reader.required(fields, "url", "url: http://127.0.0.1:8082");
        }
        (_, Some(at)) => {
            reader.text(&at, "an address");
        }
        (_, None) => {}
    }
    if let Some(at) = fields.get("prefix") {
        prefix(reader, &at);
    }
    if let Some(at) = fields.get("timeout") {
        reader.duration(&at, Duration::from_millis(1)..=Duration::from_secs(60));
    }
    on_failure(reader, fields);
}

fn url(reader: &mut Reader<'_>, at: &At<'_>, kind: Kind) {
    let (schemes, like): (&[&str], _) = match kind {
        Kind::Remote => (&["http://"], "http://HOST:8082"),
        _ => (
            &["redis://", "rediss://", "redis+sentinel://", "redis+cluster://"],
            "redis://HOST:6379, rediss://…, redis+sentinel://H1,H2/MASTER or redis+cluster://H1,H2",
        ),
    };
    let Some(text) = reader.text(at, like) else { return };
    let host = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    if host.is_none_or(str::is_empty) {
        // The value may hold a password, so it is not repeated.
        reader.mistake(at, format!("not the address of such a store: write {like}"));
    }
}

fn prefix(reader: &mut Reader<'_>, at: &At<'_>) {
    let expected = "a word of letters, digits and . _ - : like ratelimit";
    let Some(text) = reader.text(at, expected) else { return };
    let ok = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if text.is_empty() || text.len() > 128 || !text.chars().all(ok) {
        reader.mistake(at, format!("found {}, expected {expected}", shown(text)));
    }
}

fn on_failure(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    let Some(fields) = reader.section(fields, "on_failure", &keys::ON_FAILURE) else { return };
    let choices = [("local", true), ("allow", false), ("deny", false)];
    let local = reader
        .required(&fields, "mode", "mode: local, allow or deny")
        .and_then(|at| reader.choice(&at, &choices));
    let Some(at) = fields.get("share") else { return };
    if local == Some(false) {
        reader.mistake(&at, "belongs to mode local and means nothing here: leave it out");
    } else if !matches!(&at.node.value, Value::Scalar(text) if text == "fleet") {
        reader.fraction(&at);
    }
}
