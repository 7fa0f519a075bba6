//! What a configuration says, and which of it applies to a request.
//!
//! [`read`] turns a text into a [`Config`] or into all of its mistakes at once; the [`RuleSet`]
//! inside is compiled there and never changes again, so a reload swaps it whole. Per request
//! nothing is parsed: [`RuleSet::matches`] finds the route, [`KeyTemplate::render`] writes the
//! key. Where the text came from, who counts and who listens is for others to know.

mod config;
mod key;
mod mistake;
mod policy;
mod route;
mod rule_set;

pub use crate::{
    config::{
        AccessLog, AccessLogFormat, AtBound, ClientConfig, Config, ForwardHeader, GatewayConfig,
        HeaderConfig, Listen, MemoryConfig, ResetForm, StoreConfig, Take,
    },
    key::{Attributes, KeyBuf, KeyTemplate, KeyTemplateError},
    mistake::{Mistake, Mistakes},
    policy::Policy,
    route::{Route, Upstream, UpstreamKind},
    rule_set::{RouteMatch, RuleSet},
};

/// Reads a configuration, or tells everything that is wrong with it.
///
/// `source_name` is what mistakes call the text, as a rule the file's name; `env` fills
/// `${NAME}` in values.
pub fn read(
    _source_name: &str,
    _text: &str,
    _env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Mistakes> {
    todo!("being written")
}

/// The JSON Schema (draft 2020-12) of the configuration, for editors.
pub fn schema() -> &'static str {
    "{}"
}
