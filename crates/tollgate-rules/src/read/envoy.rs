//! The `envoy` section: rules in Envoy's form. Its shape is known; nothing serves it yet.

use super::{fields::Fields, keys, reader::Reader};

pub(super) fn envoy(reader: &mut Reader<'_>, root: &Fields<'_>) {
    let Some(fields) = reader.section(root, "envoy", &keys::ENVOY) else { return };
    if let Some(at) = reader.required(&fields, "rules", "rules: ./rules") {
        reader.file(&at);
    }
    for key in
        ["shadow_mode", "quota_mode", "response_headers", "count_when_over", "response_metadata"]
    {
        if let Some(at) = fields.get(key) {
            reader.flag(&at);
        }
    }
    reader.not_yet(root, "envoy", "reading Envoy's rules");
}
