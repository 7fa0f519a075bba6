//! A header's value before it is written anywhere.

use http::HeaderValue;

use crate::decimal;

/// A value, in the parts it is made of.
pub(super) enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text of ours.
    Fixed(&'static str),
    /// A text made when the configuration was loaded.
    Prepared(&'a str),
    /// Such a text, and `remaining;t=window` after it.
    State { prepared: &'a str, remaining: u64, window: u64 },
}

impl Value<'_> {
    pub(super) fn into_header_value(self) -> HeaderValue {
        match self {
            Self::Number(number) => decimal::header_value(number),
            Self::Fixed(text) => HeaderValue::from_static(text),
            Self::Prepared(_) | Self::State { .. } => {
                let mut text = Vec::with_capacity(96);
                self.push(&mut text);
                HeaderValue::from_bytes(&text).expect("a structured field is ASCII")
            }
        }
    }

    pub(super) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => push_number(out, *number),
            Self::Fixed(text) => out.extend_from_slice(text.as_bytes()),
            Self::Prepared(text) => out.extend_from_slice(text.as_bytes()),
            Self::State { prepared, remaining, window } => {
                out.extend_from_slice(prepared.as_bytes());
                push_number(out, *remaining);
                out.extend_from_slice(b";t=");
                push_number(out, *window);
            }
        }
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
