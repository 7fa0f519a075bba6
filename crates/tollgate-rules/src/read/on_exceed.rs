//! A policy's `on_exceed`: what becomes of a request beyond the limit.

use std::time::Duration;

use super::{fields::Fields, keys, reader::Reader};
use crate::yaml::Value;

/// Checks the setting; refusing is all there is so far.
pub(super) fn on_exceed(reader: &mut Reader<'_>, policy: &Fields<'_>) {
    let Some(at) = policy.get("on_exceed") else { return };
    let like = "queue: {max_wait: 2s, max_depth: 100}";
    match &at.node.value {
        Value::Map(_) => {}
        Value::Scalar(text) if text == "reject" => return,
        _ => return reader.wrong_shape(&at, &format!("reject, or {{{like}}}")),
    }
    let Some(fields) = reader.fields(&at, &keys::ON_EXCEED) else { return };
    if reader.required(&fields, "queue", like).is_none() {
        return;
    }
    if let Some(queue) = reader.section(&fields, "queue", &keys::QUEUE) {
        let hour = Duration::from_secs(3_600);
        if let Some(at) = reader.required(&queue, "max_wait", "max_wait: 2s") {
            reader.duration(&at, Duration::from_millis(1)..=hour);
        }
        if let Some(at) = queue.get("max_depth") {
            reader.number(&at, 1..=1_000_000);
        }
    }
    reader.not_yet(&fields, "queue", "queueing requests");
}
