//! Reading a key template.

use super::{Escape, KeyTemplate, Part, value::Source};
use crate::{mistake::shown, suggest::nearest};

/// Longer ones are an accident, and every request would carry them.
const BYTES_MAX: usize = 1_024;

/// No path has more segments that matter.
const SEGMENT_MAX: usize = 64;

/// The parts a template may name, as the documentation writes them.
const PARTS: &str = "{ip} {header.NAME} {cookie.NAME} {query.NAME} {path.N} {host} {method}";

/// Why a text is no key template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyTemplateError {
    /// Nothing at all.
    #[error("a key cannot be empty: write \"{{ip}}\" to count by address")]
    Empty,
    /// More text than any key needs.
    #[error("the key has {0} bytes: at most {BYTES_MAX}")]
    TooLong(usize),
    /// `{` without `}`, or the other way round.
    #[error("{} has a brace without its partner: a part is written {{ip}}", shown(.0))]
    Brace(String),
    /// A control character.
    #[error("a key cannot contain the control character {0:?}")]
    Control(char),
    /// A part nobody knows.
    #[error("{} is an unknown part: {}the parts are {PARTS}", braced(.found), hint(.meant))]
    UnknownPart {
        /// What stands between the braces.
        found: String,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
    /// A part that is planned.
    #[error("{} is not available yet in this version", braced(.0))]
    NotYet(String),
    /// A part that needs a name and has none, or one that cannot be.
    #[error("{} names no {what}: write {example}", braced(.found))]
    Name {
        /// What stands between the braces.
        found: String,
        /// What should be named.
        what: &'static str,
        /// How it would look.
        example: &'static str,
    },
}

fn braced(part: &str) -> String {
    shown(&format!("{{{part}}}"))
}

fn hint(part: &Option<&'static str>) -> String {
    part.map_or_else(String::new, |part| format!("did you mean {{{part}}}? "))
}

pub(super) fn parse(text: &str) -> Result<KeyTemplate, KeyTemplateError> {
    if text.is_empty() {
        return Err(KeyTemplateError::Empty);
    }
    if text.len() > BYTES_MAX {
        return Err(KeyTemplateError::TooLong(text.len()));
    }
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(KeyTemplateError::Control(control));
    }
    let brace = || KeyTemplateError::Brace(text.to_owned());
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        push_literal(&mut parts, literal).ok_or_else(brace)?;
        let (part, after) = after.split_once('}').ok_or_else(brace)?;
        push_source(&mut parts, source(part)?);
        rest = after;
    }
    push_literal(&mut parts, rest).ok_or_else(brace)?;
    Ok(KeyTemplate { parts: kept_apart(parts).into() })
}

fn push_literal(parts: &mut Vec<Part>, literal: &str) -> Option<()> {
    if literal.contains('}') {
        return None;
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.as_bytes().into()));
    }
    Some(())
}

/// Two values in a row get a bar between them, so that there is an end to look for.
fn push_source(parts: &mut Vec<Part>, source: Source) {
    if matches!(parts.last(), Some(Part::Value(..))) {
        parts.push(Part::Literal(b"|".as_slice().into()));
    }
    parts.push(Part::Value(source, None));
}

/// Gives each value that another one follows its escape.
fn kept_apart(mut parts: Vec<Part>) -> Vec<Part> {
    let mut stop = None;
    let mut value_follows = false;
    for part in parts.iter_mut().rev() {
        match part {
            Part::Literal(text) => stop = text.first().copied(),
            Part::Value(_, escape) => {
                *escape = stop.filter(|_| value_follows).map(escape_for);
                value_follows = true;
            }
        }
    }
    parts
}

/// The three bytes of an escape must differ from each other, or reading it back would not be
/// possible.
fn escape_for(stop: u8) -> Escape {
    let escape = if stop == b'%' { b'~' } else { b'%' };
    let code = if stop == b'.' { b'-' } else { b'.' };
    Escape { stop, escape, code }
}

fn source(part: &str) -> Result<Source, KeyTemplateError> {
    let (kind, name) = match part.split_once('.') {
        Some((kind, name)) => (kind, Some(name)),
        None => (part, None),
    };
    let wrong = |what, example| KeyTemplateError::Name { found: part.to_owned(), what, example };
    match (kind, name) {
        ("ip", None) => Ok(Source::Ip),
        ("host", None) => Ok(Source::Host),
        ("method", None) => Ok(Source::Method),
        ("header", name) => name
            .filter(|name| is_token(name))
            .map(|name| Source::Header(name.to_ascii_lowercase().into()))
            .ok_or_else(|| wrong("header", "{header.X-Tenant}")),
        ("cookie", name) => name
            .filter(|name| is_token(name))
            .map(|name| Source::Cookie(name.into()))
            .ok_or_else(|| wrong("cookie", "{cookie.session}")),
        ("query", name) => name
            .filter(|name| !name.is_empty())
            .map(|name| Source::Query(name.into()))
            .ok_or_else(|| wrong("query parameter", "{query.user}")),
        ("path", name) => name
            .and_then(|name| name.parse().ok())
            .filter(|number| (1..=SEGMENT_MAX).contains(number))
            .map(Source::Segment)
            .ok_or_else(|| wrong("segment, counted from 1 to 64", "{path.2}")),
        ("user" | "api_key", None) | ("claim" | "body", Some(_)) => {
            Err(KeyTemplateError::NotYet(part.to_owned()))
        }
        _ => Err(unknown(part)),
    }
}

fn unknown(part: &str) -> KeyTemplateError {
    const NAMES: [&str; 7] =
        ["ip", "header.NAME", "cookie.NAME", "query.NAME", "path.N", "host", "method"];
    let meant = match part.split_once('.') {
        Some((kind, _)) => {
            let kinds = NAMES.iter().filter_map(|name| name.split_once('.')).map(|(kind, _)| kind);
            nearest(kind, kinds).and_then(|kind| {
                NAMES.into_iter().find(|name| name.split('.').next() == Some(kind))
            })
        }
        None => nearest(part, NAMES.into_iter()),
    };
    KeyTemplateError::UnknownPart { found: part.to_owned(), meant }
}

/// Whether a text can be the name of a header or a cookie.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
