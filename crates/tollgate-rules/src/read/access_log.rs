//! The `access_log` section: one line per request.

use super::{fields::Fields, keys, reader::Reader};
use crate::{AccessLog, AccessLogFormat};

pub(super) fn access_log(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<AccessLog> {
    let fields = reader.section(root, "access_log", &keys::ACCESS_LOG)?;
    let formats = [("json", AccessLogFormat::Json), ("text", AccessLogFormat::Text)];
    let format = fields.get("format").and_then(|at| reader.choice(&at, &formats));
    let path = fields.get("path").and_then(|at| reader.file(&at));
    // Logs are collected by programs more often than read by people.
    Some(AccessLog { format: format.unwrap_or(AccessLogFormat::Json), path })
}
