//! The `store` section: where levels are kept.

mod on_failure;
mod redis;
mod remote;

use super::{fields::Fields, keys, reader::Reader};
use crate::{AtBound, MemoryConfig, StoreConfig};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Redis,
    Remote,
}

/// Who takes which settings: their own words for a mistake.
const MISPLACED: [(&[&str], &[Kind], &str); 4] = [
    (&["url", "timeout", "on_failure"], &[Kind::Redis, Kind::Remote], "a redis or remote store"),
    (&["prefix", "tls"], &[Kind::Redis], "a redis store"),
    (&["max_keys", "max_bytes"], &[Kind::Memory, Kind::Redis], "a memory or redis store"),
    (&["at_bound", "save"], &[Kind::Memory], "the memory store"),
];

pub(super) fn store(reader: &mut Reader<'_>, root: &Fields<'_>) -> StoreConfig {
    let Some(fields) = reader.section(root, "store", &keys::STORE) else {
        return StoreConfig::default();
    };
    let kinds = [("memory", Kind::Memory), ("redis", Kind::Redis), ("remote", Kind::Remote)];
    let kind = match fields.get("kind") {
        None => Some(Kind::Memory),
        Some(at) => reader.choice(&at, &kinds),
    };
    if let Some(kind) = kind {
        misplaced(reader, &fields, kind);
    }
    let memory = memory(reader, &fields);
    let redis = redis::redis(reader, &fields, kind, memory.clone());
    if kind == Some(Kind::Remote) {
        remote::remote(reader, &fields);
    }
    redis.map_or(StoreConfig::Memory(memory), StoreConfig::Redis)
}

fn misplaced(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: Kind) {
    for (keys, _, owner) in MISPLACED.iter().filter(|(_, kinds, _)| !kinds.contains(&kind)) {
        for at in keys.iter().filter_map(|key| fields.get(key)) {
            reader.mistake(&at, format!("belongs to {owner} and means nothing here: leave it out"));
        }
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
