//! A store that is a decision service: checked as far as that goes, though it cannot be used yet.

use super::super::{fields::Fields, reader::Reader};

pub(super) fn remote(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    if let Some(at) = reader.required(fields, "url", "url: http://127.0.0.1:8082") {
        let like = "http://HOST:8082";
        let host = reader.text(&at, like).map(|text| text.strip_prefix("http://"));
        if host.is_some_and(|host| host.is_none_or(str::is_empty)) {
            // The value may hold a password, so it is not repeated.
            reader.mistake(&at, format!("not the address of such a store: write {like}"));
        }
    }
    reader.not_yet(fields, "kind", "the remote store");
}
