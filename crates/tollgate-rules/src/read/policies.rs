//! The `policies` section.

use std::collections::HashMap;

use super::{
    fields::{At, Fields},
    keys, limits,
    on_exceed::on_exceed,
    reader::Reader,
};
use crate::{KeyTemplate, Policy, mistake::shown, yaml::Value};

/// What was read, and every name that stands there, whether the rest of it could be read or not:
/// a route that names a policy with a mistake has made none itself.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) all: Vec<Policy>,
    /// Each name with its place among `all`.
    pub(super) places: HashMap<Box<str>, usize>,
}

pub(super) fn policies(reader: &mut Reader<'_>, root: &Fields<'_>) -> Policies {
    let mut policies = Policies::default();
    let mut lines: HashMap<Box<str>, usize> = HashMap::new();
    for at in reader.items(root, "policies", "policies") {
        let Some(fields) = reader.fields(&at, &keys::POLICY) else { continue };
        let id = id(reader, &fields).filter(|id| is_new(reader, &fields, id, &mut lines));
        let policy = policy(reader, &fields, id.unwrap_or_default());
        policies.places.insert(policy.id.clone(), policies.all.len());
        policies.all.push(policy);
    }
    policies
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
    mode(reader, fields);
    on_exceed(reader, fields);
    let mut flag =
        |key, default| fields.get(key).and_then(|at| reader.flag(&at)).unwrap_or(default);
    Policy {
        index: 0,
        id,
        limits,
        // Every request has an address.
        key: key.unwrap_or_else(KeyTemplate::ip),
        enforce: flag("enforce", true),
        // Else a client that keeps trying would never be let in again.
        count_refused: flag("count_refused", false),
    }
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

/// In memory every decision is exact, so the mode is checked and means nothing more.
fn mode(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    let leased = match fields.get("mode") {
        None => Some(false),
        Some(at) => reader.choice(&at, &[("exact", false), ("leased", true)]),
    };
    let Some(at) = fields.get("epsilon") else { return };
    if leased == Some(false) {
        reader.mistake(&at, "belongs to mode leased and means nothing here: leave it out");
    } else {
        reader.fraction(&at);
    }
}
