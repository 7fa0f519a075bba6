//! What a body asks for, read strictly.
//!
//! A field that is not known is more likely a mistake than a wish for the default, so it is
//! refused by name; so is a field given twice, of which nobody knows which one counts. Texts
//! without escapes are borrowed from the body. All values are plain, so nothing nests.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor},
};
use tollgate_core::COST_MAX;
use tollgate_engine::{CannotDecide, KEY_BYTES_MAX};

use super::reply::shortened;

/// A batch of more would keep everybody else on its thread waiting for over a millisecond.
pub(crate) const CHECKS_MAX: usize = 1_000;

/// Ten minutes: longer than any client or proxy holds a request open.
pub(crate) const MAX_WAIT_MS_MAX: u64 = 600_000;

/// What every question has: of which policy, about whom, and how much.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask<'a> {
    pub(crate) policy: Cow<'a, str>,
    pub(crate) key: Cow<'a, str>,
    pub(crate) cost: Option<u64>,
    pub(crate) max_wait_ms: Option<u64>,
    pub(crate) lease: Option<u64>,
}

impl Ask<'_> {
    /// What a request costs that does not say so.
    const COST_DEFAULT: u64 = 1;

    pub(crate) fn cost(&self) -> u64 {
        self.cost.unwrap_or(Self::COST_DEFAULT)
    }
}

/// Which fields a question may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A decision, at once.
    Check,
    /// A decision that may wait.
    Acquire,
    /// Giving back.
    Refund,
}

impl Form {
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Check => &["policy", "key", "cost"],
            Self::Acquire => &["policy", "key", "cost", "max_wait_ms"],
            Self::Refund => &["policy", "key", "cost", "lease"],
        }
    }
}

/// Reads one question.
pub(crate) fn ask(form: Form, body: &[u8]) -> Result<Ask<'_>, BodyError> {
    read(form, body)
}

/// Reads a batch of checks.
pub(crate) fn batch(body: &[u8]) -> Result<Vec<Ask<'_>>, BodyError> {
    read(Batch, body)
}

fn read<'de, S: DeserializeSeed<'de>>(seed: S, body: &'de [u8]) -> Result<S::Value, BodyError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = seed.deserialize(&mut json).map_err(BodyError)?;
    json.end().map_err(BodyError)?;
    Ok(value)
}

/// What is wrong with a body, and where.
#[derive(Debug)]
pub(crate) struct BodyError(serde_json::Error);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.0.line(), self.0.column());
        let text = self.0.to_string();
        let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        write!(f, "The body is wrong at line {line}, column {column}: {}.", without_middle(text))
    }
}

/// The text with its middle left out if it is long: it may quote what the caller sent, and what
/// would have been right stands at its end.
fn without_middle(text: &str) -> Cow<'_, str> {
    const END_BYTES: usize = 150;
    if text.len() <= 3 * END_BYTES {
        return text.into();
    }
    let head = text.floor_char_boundary(END_BYTES);
    let tail = text.ceil_char_boundary(text.len() - END_BYTES);
    format!("{} … {}", &text[..head], &text[tail..]).into()
}

impl<'de> DeserializeSeed<'de> for Form {
    type Value = Ask<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Ask<'de>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Form {
    type Value = Ask<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `policy` and `key`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ask<'de>, A::Error> {
        let (mut policy, mut key) = (None, None);
        let (mut cost, mut max_wait_ms, mut lease) = (None, None, None);
        while let Some(field) = map.next_key_seed(Name(self.fields()))? {
            match field {
                "policy" => fill(&mut policy, field, map.next_value_seed(Text(field))?)?,
                "key" => fill(&mut key, field, map.next_value_seed(Key)?)?,
                "cost" => {
                    fill(&mut cost, field, map.next_value_seed(Number(field, COST_MAX))?)?;
                }
                "max_wait_ms" => {
                    let number = Number(field, MAX_WAIT_MS_MAX);
                    fill(&mut max_wait_ms, field, map.next_value_seed(number)?)?;
                }
                _ => fill(&mut lease, field, map.next_value_seed(Lease)?)?,
            }
        }
        let policy = policy.ok_or_else(|| A::Error::missing_field("policy"))?;
        let key = key.ok_or_else(|| A::Error::missing_field("key"))?;
        Ok(Ask { policy, key, cost, max_wait_ms, lease })
    }
}

fn fill<T, E: Error>(place: &mut Option<T>, field: &'static str, value: T) -> Result<(), E> {
    match place.replace(value) {
        Some(_) => Err(E::duplicate_field(field)),
        None => Ok(()),
    }
}

/// The name of a field, one of these.
#[derive(Clone, Copy)]
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<&'static str, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<&'static str, E> {
        let known = self.0.iter().find(|known| **known == name);
        known.copied().ok_or_else(|| E::unknown_field(&shortened(name), self.0))
    }
}

/// A text, for the field of this name.
struct Text(&'static str);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` to be a string", self.0)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A text that can be counted by.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        let key = Text("key").deserialize(json)?;
        match key.len() {
            0 => Err(D::Error::custom(CannotDecide::EmptyKey)),
            long if long > KEY_BYTES_MAX => Err(D::Error::custom(CannotDecide::LongKey(long))),
            _ => Ok(key),
        }
    }
}

/// A whole number up to a greatest one, for the field of this name.
struct Number(&'static str, u64);

impl<'de> DeserializeSeed<'de> for Number {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_u64(self)
    }
}

impl Visitor<'_> for Number {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` to be a whole number from 0 to {}", self.0, self.1)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        if number > self.1 {
            return Err(E::invalid_value(Unexpected::Unsigned(number), &self));
        }
        Ok(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        // Only negative numbers come this way.
        Err(E::invalid_value(Unexpected::Signed(number), &self))
    }
}

/// The name of a lease. A string, because not every reader of JSON keeps all digits of a number.
struct Lease;

impl<'de> DeserializeSeed<'de> for Lease {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Lease {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`lease` to be the string that came with the decision")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let lease = if digits { text.parse().ok() } else { None };
        lease.ok_or_else(|| E::invalid_value(Unexpected::Str(&shortened(text)), &self))
    }
}

/// `{"checks": […]}`.
struct Batch;

impl<'de> DeserializeSeed<'de> for Batch {
    type Value = Vec<Ask<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Batch {
    type Value = Vec<Ask<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `checks`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut checks = None;
        while let Some(field) = map.next_key_seed(Name(&["checks"]))? {
            fill(&mut checks, field, map.next_value_seed(Checks)?)?;
        }
        checks.ok_or_else(|| A::Error::missing_field("checks"))
    }
}

/// The checks of a batch.
struct Checks;

impl<'de> DeserializeSeed<'de> for Checks {
    type Value = Vec<Ask<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Checks {
    type Value = Vec<Ask<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`checks` to be a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut checks = Vec::new();
        loop {
            let at = checks.len();
            let named = |error: A::Error| A::Error::custom(format!("checks[{at}]: {error}"));
            match list.next_element_seed(Form::Check).map_err(named)? {
                None => return Ok(checks),
                Some(_) if at == CHECKS_MAX => {
                    let text = format!("more than {CHECKS_MAX} checks: send several batches");
                    return Err(A::Error::custom(text));
                }
                Some(check) => checks.push(check),
            }
        }
    }
}

#[cfg(test)]
mod tests;
