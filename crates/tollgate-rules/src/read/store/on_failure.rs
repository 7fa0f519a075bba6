//! What holds while a store in another process does not answer.

use super::super::{fields::Fields, keys, reader::Reader};
use crate::{OnFailure, Share, yaml::Value};

pub(super) fn on_failure(reader: &mut Reader<'_>, store: &Fields<'_>) -> OnFailure {
    let default = OnFailure::default();
    let Some(fields) = reader.section(store, "on_failure", &keys::ON_FAILURE) else {
        return default;
    };
    let choices = [("local", default), ("allow", OnFailure::Allow), ("deny", OnFailure::Deny)];
    let mode = fields.get("mode").map_or(Some(default), |at| reader.choice(&at, &choices));
    let mode = mode.unwrap_or(default);
    let Some(at) = fields.get("share") else { return mode };
    if mode != default {
        reader.mistake(&at, "belongs to mode local and means nothing here: leave it out");
        return mode;
    }
    if matches!(&at.node.value, Value::Scalar(text) if text == "fleet") {
        return OnFailure::Local(Share::Fleet);
    }
    let part = reader.millionths(&at).map(|millionths| Share::Part { millionths });
    OnFailure::Local(part.unwrap_or_default())
}
