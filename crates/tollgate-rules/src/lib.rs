//! What a configuration says, and which of it applies to a request.
//!
//! [`read()`] turns a text into a [`Config`] or into all of its mistakes at once; the [`RuleSet`]
//! inside is compiled there and never changes again, so a reload swaps it whole. Per request
//! nothing is parsed: [`RuleSet::matches`] finds the route, [`KeyTemplate::render`] writes the
//! key. Where the text came from, who counts and who listens is for others to know.

mod config;
mod duration;
mod env;
mod host;
mod key;
mod mistake;
mod number;
mod path;
mod policy;
mod rate;
mod read;
mod route;
mod router;
mod rule_set;
mod schema;
mod size;
mod suggest;
mod yaml;

pub use crate::{
    config::{
        AccessLog, AccessLogFormat, AtBound, ClientConfig, Config, ForwardHeader, GatewayConfig,
        HeaderConfig, Listen, MemoryConfig, OnFailure, RedisConfig, RedisUrl, RedisUrlError,
        ResetForm, Share, StoreConfig, Take, TlsFiles,
    },
    duration::{DurationError, parse_duration},
    key::{Attributes, KeyBuf, KeyTemplate, KeyTemplateError},
    mistake::{Mistake, Mistakes},
    path::{forwarded_path, normal_path},
    policy::{Mode, Policy},
    rate::{RateError, parse_rate},
    read::read,
    route::{Route, Upstream, UpstreamKind},
    rule_set::{RouteMatch, RuleSet},
    schema::schema,
    size::{SizeError, parse_size},
};
