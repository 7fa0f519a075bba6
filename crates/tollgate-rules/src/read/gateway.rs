//! The `gateway` section: time-outs and bounds of the reverse proxy.

use std::time::Duration;

use super::{fields::Fields, keys, reader::Reader};
use crate::GatewayConfig;

/// Below a millisecond nothing answers; above a day nobody waits.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(86_400);

pub(super) fn gateway(reader: &mut Reader<'_>, root: &Fields<'_>) -> GatewayConfig {
    let default = GatewayConfig::default();
    let Some(fields) = reader.section(root, "gateway", &keys::GATEWAY) else { return default };
    let mut timeout = |key, default| {
        fields.get(key).and_then(|at| reader.duration(&at, TIMEOUTS)).unwrap_or(default)
    };
    GatewayConfig {
        connect_timeout: timeout("connect_timeout", default.connect_timeout),
        response_timeout: timeout("response_timeout", default.response_timeout),
        header_timeout: timeout("header_timeout", default.header_timeout),
        body_timeout: timeout("body_timeout", default.body_timeout),
        idle_timeout: timeout("idle_timeout", default.idle_timeout),
        max_header_bytes: header_bytes(reader, &fields).unwrap_or(default.max_header_bytes),
        max_body_bytes: fields.get("max_body_bytes").and_then(|at| reader.size(&at, 0..=1 << 50)),
        max_connections: fields
            .get("max_connections")
            .and_then(|at| reader.whole(&at, 1..=10_000_000))
            .unwrap_or(default.max_connections),
        path_case_sensitive: fields
            .get("path_case")
            .and_then(|at| reader.choice(&at, &[("sensitive", true), ("insensitive", false)]))
            .unwrap_or(default.path_case_sensitive),
    }
}

/// HTTP asks for request lines of 8,000 bytes at least; a megabyte of them is an attack.
fn header_bytes(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<usize> {
    let bytes =
        fields.get("max_header_bytes").and_then(|at| reader.size(&at, 8 << 10..=1 << 20))?;
    usize::try_from(bytes).ok()
}
