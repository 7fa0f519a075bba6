//! The `policies` section.

use std::{collections::HashMap, time::Duration};

use super::{
    fields::{At, Fields},
    keys, limits, mode,
    on_exceed::on_exceed,
    reader::Reader,
};
use crate::{KeyTemplate, Mode, Policy, StoreConfig, mistake::shown, yaml::Value};

/// What was read, and every name that stands there, whether the rest of it could be read or not:
/// a route that names a policy with a mistake has made none itself.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) all: Vec<Policy>,
    /// Each name with its place among `all`.
    pub(super) places: HashMap<Box<str>, usize>,
}

pub(super) fn policies(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    store: &StoreConfig,
) -> Policies {
    let mut policies = Policies::default();
    let mut lines: HashMap<Box<str>, usize> = HashMap::new();
    let mut ids = Vec::new();
    for at in reader.items(root, "policies", "policies") {
        let Some(fields) = reader.fields(&at, &keys::POLICY) else { continue };
        let id = id(reader, &fields).filter(|id| is_new(reader, &fields, id, &mut lines));
        ids.extend(fields.get("id"));
        let policy = policy(reader, &fields, id.unwrap_or_default());
        if matches!(store, StoreConfig::Redis(_)) {
            mode::hint(reader, &fields, &policy);
        }
        policies.places.insert(policy.id.clone(), policies.all.len());
        policies.all.push(policy);
    }
    if let StoreConfig::Redis(redis) = store {
        no_shared_keys(reader, &ids, &lines, &redis.prefix);
    }
    policies
}

/// Notes policies whose keys in Redis could be another's: the key `b:x` of `a` and the key `x` of
/// `a:b` have one name there.
fn no_shared_keys(
    reader: &mut Reader<'_>,
    ids: &[At<'_>],
    lines: &HashMap<Box<str>, usize>,
    prefix: &str,
) {
    for at in ids {
        let Value::Scalar(id) = &at.node.value else { continue };
        let shorter = id.match_indices(':').map(|(end, _)| &id[..end]);
        if let Some((other, line)) = shorter.clone().find_map(|id| lines.get_key_value(id)) {
            let text = format!(
                "keys in Redis like {prefix}:{id}:KEY could be those of the policy {other} in line \
                 {line}, too: rename one so that no : follows {other}"
            );
            reader.mistake(at, text);
        }
    }
}

/// Notes a second policy of the same name.
fn is_new(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    id: &str,
    lines: &mut HashMap<Box<str>, usize>,
) -> bool {
    let Some(at) = fields.get("id") else { return true };
    match lines.insert(id.into(), at.mark().line) {
        None => true,
        Some(line) => {
            reader.mistake(&at, format!("the policy {id} stands already in line {line}"));
            false
        }
    }
}

fn policy(reader: &mut Reader<'_>, fields: &Fields<'_>, id: Box<str>) -> Policy {
    let items = reader.items(fields, "limits", "limits");
    let limits = items.iter().filter_map(|at| limits::limit(reader, at)).collect();
    let key = fields.get("key").and_then(|at| key(reader, &at));
    on_exceed(reader, fields);
    // A year is longer than any idle key is of interest, and far from where a server's own
    // reckoning of expiries ends.
    let range = Duration::from_secs(1)..=Duration::from_secs(366 * 86_400);
    let ttl = fields.get("ttl").and_then(|at| reader.duration(&at, range));
    let mut flag =
        |key, default| fields.get(key).and_then(|at| reader.flag(&at)).unwrap_or(default);
    let policy = Policy {
        index: 0,
        id,
        limits,
        // Every request has an address.
        key: key.unwrap_or_else(KeyTemplate::ip),
        enforce: flag("enforce", true),
        // Else a client that keeps trying would never be let in again.
        count_refused: flag("count_refused", false),
        mode: Mode::Exact,
        ttl,
    };
    Policy { mode: mode::mode(reader, fields, &policy), ..policy }
}

fn id(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Box<str>> {
    let expected = "a name of up to 128 letters, digits and . _ - :";
    let at = reader.required(fields, "id", "id: orders")?;
    let text = reader.text(&at, expected)?;
    let ok = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if text.is_empty() || text.len() > 128 || !text.chars().all(ok) {
        reader.mistake(&at, format!("found {}, expected {expected}", shown(text)));
        return None;
    }
    Some(text.into())
}

fn key(reader: &mut Reader<'_>, at: &At<'_>) -> Option<KeyTemplate> {
    if matches!(at.node.value, Value::Map(_)) {
        reader.mistake(at, "braces without quotes are YAML's own: write \"{ip}\"");
        return None;
    }
    reader.parsed(at, "a key like \"{ip}\"", KeyTemplate::parse)
}
