//! A store that is a Redis or Valkey.

use std::time::Duration;

use super::{
    super::{
        fields::{At, Fields},
        keys,
        reader::Reader,
    },
    Kind,
    on_failure::on_failure,
};
use crate::{AtBound, MemoryConfig, RedisConfig, RedisUrl, TlsFiles, mistake::shown};

/// What the section says of a Redis; `None` if it is of another kind or has no address.
///
/// The settings are looked at whatever the kind is, so that all mistakes are told at once.
pub(super) fn redis(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    kind: Option<Kind>,
    fallback: MemoryConfig,
) -> Option<RedisConfig> {
    let prefix = fields.get("prefix").and_then(|at| prefix(reader, &at));
    let range = Duration::from_millis(1)..=Duration::from_secs(60);
    let timeout = fields.get("timeout").and_then(|at| reader.duration(&at, range));
    let on_failure = on_failure(reader, fields);
    let tls = tls(reader, fields);
    let url = url(reader, fields, kind)?;
    if !url.is_tls()
        && let Some(at) = fields.get("tls")
    {
        reader.mistake(&at, "without TLS these files mean nothing: write rediss:// in url");
    }
    Some(RedisConfig {
        url,
        prefix: prefix.unwrap_or_else(|| RedisConfig::PREFIX.to_owned()),
        timeout: timeout.unwrap_or(RedisConfig::TIMEOUT),
        on_failure,
        tls,
        // A node that may be on its own soon must be able to note whatever it hears of.
        fallback: MemoryConfig { at_bound: AtBound::Evict, save: None, ..fallback },
    })
}

fn url(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: Option<Kind>) -> Option<RedisUrl> {
    if kind == Some(Kind::Redis) {
        let at = reader.required(fields, "url", "url: redis://127.0.0.1:6379")?;
        return reader.parsed(&at, "the address of a Redis", RedisUrl::parse);
    }
    if kind != Some(Kind::Remote) {
        fields.get("url").and_then(|at| reader.text(&at, "an address"));
    }
    None
}

fn prefix(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    let expected = "a word of letters, digits and . _ - : like ratelimit";
    let text = reader.text(at, expected)?;
    let ok = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if text.is_empty() || text.len() > 128 || !text.chars().all(ok) {
        reader.mistake(at, format!("found {}, expected {expected}", shown(text)));
        return None;
    }
    Some(text.to_owned())
}

fn tls(reader: &mut Reader<'_>, fields: &Fields<'_>) -> TlsFiles {
    let Some(fields) = reader.section(fields, "tls", &keys::TLS) else {
        return TlsFiles::default();
    };
    let mut file = |key| fields.get(key).and_then(|at| reader.file(&at));
    let files = TlsFiles { ca: file("ca"), cert: file("cert"), key: file("key") };
    for (one, other) in [("cert", "key"), ("key", "cert")] {
        if let (Some(at), None) = (fields.get(one), fields.get(other)) {
            reader.mistake(&at, format!("{one} is of no use without {other}: name both"));
        }
    }
    files
}
