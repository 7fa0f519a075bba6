//! The `headers` section: which rate limit headers an answer carries.

use super::{fields::Fields, keys, reader::Reader};
use crate::{HeaderConfig, ResetForm};

pub(super) fn headers(reader: &mut Reader<'_>, root: &Fields<'_>) -> HeaderConfig {
    let default = HeaderConfig::default();
    let Some(fields) = reader.section(root, "headers", &keys::HEADERS) else { return default };
    let forms = [("unix", ResetForm::Unix), ("delta", ResetForm::Delta)];
    let reset = fields.get("reset").and_then(|at| reader.choice(&at, &forms));
    let mut flag =
        |key, default| fields.get(key).and_then(|at| reader.flag(&at)).unwrap_or(default);
    HeaderConfig {
        reset: reset.unwrap_or(default.reset),
        ietf: flag("ietf", default.ietf),
        retry_after: flag("x_retry_after", default.retry_after),
    }
}
