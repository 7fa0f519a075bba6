//! `trusted_proxies` and the `client` section: whose address a request is limited by.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{fields::Fields, keys, reader::Reader};
use crate::{ClientConfig, ForwardHeader, Take, mistake::shown};

pub(super) fn client(reader: &mut Reader<'_>, root: &Fields<'_>) -> ClientConfig {
    let trusted = trusted(reader, root);
    let default = ClientConfig { trusted, ..ClientConfig::default() };
    let Some(fields) = reader.section(root, "client", &keys::CLIENT) else { return default };
    let headers = [
        ("x-forwarded-for", ForwardHeader::XForwardedFor),
        ("forwarded", ForwardHeader::Forwarded),
    ];
    let sides = [("rightmost", Take::Rightmost), ("leftmost", Take::Leftmost)];
    let header = fields.get("header").and_then(|at| reader.choice(&at, &headers));
    let take = fields.get("take").and_then(|at| reader.choice(&at, &sides));
    let ipv6_prefix = fields
        .get("ipv6_prefix")
        .and_then(|at| reader.number(&at, 1..=128))
        .and_then(|bits| u8::try_from(bits).ok());
    ClientConfig {
        header: header.unwrap_or(default.header),
        take: take.unwrap_or(default.take),
        ipv6_prefix: ipv6_prefix.unwrap_or(default.ipv6_prefix),
        ..default
    }
}

fn trusted(reader: &mut Reader<'_>, root: &Fields<'_>) -> Vec<IpNet> {
    let items = reader.items(root, "trusted_proxies", "networks like 10.0.0.0/8");
    items
        .iter()
        .filter_map(|at| reader.parsed(at, "a network like 10.0.0.0/8", parse_network))
        .collect()
}

fn parse_network(text: &str) -> Result<IpNet, String> {
    let single = |ip: IpAddr| IpNet::from(ip);
    text.parse::<IpNet>()
        .map(|network| network.trunc())
        .or_else(|_| text.parse().map(single))
        .map_err(|_| format!("found {}, expected a network like 10.0.0.0/8", shown(text)))
}
