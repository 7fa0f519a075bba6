//! The `listen` section: which addresses to open.

use std::net::SocketAddr;

use super::{
    fields::{At, Fields},
    keys,
    reader::Reader,
};
use crate::{Listen, mistake::shown};

const EXPECTED: &str = "an address and a port like 127.0.0.1:8080";

pub(super) fn listen(reader: &mut Reader<'_>, root: &Fields<'_>) -> Listen {
    let Some(fields) = reader.section(root, "listen", &keys::LISTEN) else {
        return Listen::default();
    };
    let mut opened = Vec::new();
    let gateway = address(reader, &fields, "gateway", &mut opened);
    let http = address(reader, &fields, "http", &mut opened);
    for (key, what) in [("grpc", "the gRPC listener"), ("resp", "the Redis protocol")] {
        if address(reader, &fields, key, &mut opened).is_some() {
            reader.not_yet(&fields, key, what);
        }
    }
    Listen { gateway, http }
}

fn address(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    opened: &mut Vec<(SocketAddr, &'static str)>,
) -> Option<SocketAddr> {
    let at = fields.get(key)?;
    let address = reader.parsed(&at, EXPECTED, parse_address)?;
    differs(reader, &at, address, opened)?;
    opened.push((address, key));
    Some(address)
}

/// Port 0 is any free one, so two of them differ.
fn differs(
    reader: &mut Reader<'_>,
    at: &At<'_>,
    address: SocketAddr,
    opened: &[(SocketAddr, &'static str)],
) -> Option<()> {
    let Some((_, other)) = opened.iter().find(|(other, _)| *other == address && other.port() != 0)
    else {
        return Some(());
    };
    reader.mistake(at, format!("{address} is already taken by listen.{other}"));
    None
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let found = shown(text);
    text.parse().map_err(|_| match text.rsplit_once(':') {
        Some(("" | "*", port)) => {
            format!("found {found}: write 127.0.0.1:{port} for this machine only, or 0.0.0.0:{port} for all")
        }
        Some(("localhost", port)) => format!("found {found}: write 127.0.0.1:{port}"),
        _ => format!("found {found}, expected {EXPECTED}"),
    })
}
