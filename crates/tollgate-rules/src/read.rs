//! From a text to a checked configuration, or to everything that is wrong with it.
//!
//! Each section has its own reader. None of them stops at a mistake: it is noted, the value is
//! left out, and reading goes on, since whoever mends a file wants to hear everything at once.
//! Only when nothing was noted is the result used.

mod access_log;
mod client;
mod envoy;
mod fields;
mod gateway;
mod headers;
pub(crate) mod keys;
mod limits;
mod listen;
mod mode;
mod on_exceed;
mod policies;
mod reader;
mod routes;
mod scalars;
mod store;
mod upstream;

use std::time::Duration;

pub(crate) use self::fields::below;
use self::{
    fields::{At, Fields},
    reader::Reader,
};
use crate::{Config, Mistakes, RuleSet, config::DRAIN, env::fill, mistake::Findings, yaml};

/// Reads a configuration, or tells everything that is wrong with it.
///
/// `source_name` is what mistakes call the text, as a rule the file's name; `env` fills
/// `${NAME}` in values.
///
/// ```
/// # use tollgate_rules::read;
/// let config = read("demo.yaml", "listen: {gateway: \"127.0.0.1:${PORT}\"}", &|name| {
///     (name == "PORT").then(|| "8080".to_owned())
/// });
/// assert_eq!(config.unwrap().listen.gateway.unwrap().port(), 8080);
///
/// let mistakes = read("demo.yaml", "lisen: {}", &|_| None).unwrap_err();
/// assert!(mistakes.to_string().starts_with(
///     "demo.yaml:1:1: lisen: no such setting: did you mean listen?"
/// ));
/// ```
pub fn read(
    source_name: &str,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Mistakes> {
    let mut findings = Findings::new(source_name);
    let config = yaml::parse(text, &mut findings).and_then(|mut root| {
        fill(&mut root, "", env, &mut findings);
        let mut reader = Reader::new(&mut findings);
        let fields = reader.fields(&At::root(&root), &keys::ROOT)?;
        Some(config(&mut reader, &fields))
    });
    let hints = findings.finish(text)?;
    let config = config.unwrap_or_else(|| unreachable!("what cannot be read has left a finding"));
    Ok(Config { hints, ..config })
}

fn config(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Config {
    let listen = listen::listen(reader, fields);
    let store = store::store(reader, fields);
    let gateway = gateway::gateway(reader, fields);
    let client = client::client(reader, fields);
    let headers = headers::headers(reader, fields);
    let access_log = access_log::access_log(reader, fields);
    // More threads than any machine has cores help nobody.
    let workers = fields.get("workers").and_then(|at| reader.whole(&at, 1..=1_024));
    let drain = fields
        .get("drain")
        .and_then(|at| reader.duration(&at, Duration::ZERO..=Duration::from_secs(3_600)));
    envoy::envoy(reader, fields);
    let policies = policies::policies(reader, fields, &store);
    let routes = routes::routes(reader, fields, &policies.places, gateway.path_case_sensitive);
    let rules = RuleSet::new(policies.all, routes, gateway.path_case_sensitive);
    let drain = drain.unwrap_or(DRAIN);
    let hints = Vec::new();
    Config { listen, store, gateway, client, headers, access_log, workers, drain, rules, hints }
}

#[cfg(test)]
mod tests;
