//! Reading shapes: sections, lists, and what is missing or unknown in them.

use super::{
    fields::{At, Fields, below},
    keys::Section,
};
use crate::{
    mistake::{Findings, Mark, shown},
    suggest::nearest,
    yaml::Value,
};

/// Reads values and notes every mistake.
#[derive(Debug)]
pub(crate) struct Reader<'f> {
    findings: &'f mut Findings,
}

impl<'f> Reader<'f> {
    pub(crate) const fn new(findings: &'f mut Findings) -> Self {
        Self { findings }
    }

    /// Notes a mistake about a value.
    pub(crate) fn mistake(&mut self, at: &At<'_>, text: impl Into<String>) {
        self.findings.add(at.mark(), &at.path, text.into());
    }

    /// Notes a mistake about a place without a value.
    pub(crate) fn mistake_at(&mut self, mark: Mark, path: &str, text: impl Into<String>) {
        self.findings.add(mark, path, text.into());
    }

    /// Notes that a value works, but hardly as it was meant.
    pub(crate) fn hint(&mut self, at: &At<'_>, text: impl Into<String>) {
        self.findings.add_hint(at.mark(), &at.path, text.into());
    }

    /// Notes that a setting is known but waits for a later version.
    pub(crate) fn not_yet(&mut self, fields: &Fields<'_>, key: &str, what: &str) {
        let mark = fields.key_mark(key).unwrap_or(fields.mark);
        let path = below(&fields.path, key);
        self.mistake_at(mark, &path, format!("{what} is not available yet in this version"));
    }

    /// The keys of a section; unknown ones are noted.
    pub(crate) fn fields<'n>(
        &mut self,
        at: &At<'n>,
        section: &'static Section,
    ) -> Option<Fields<'n>> {
        let Value::Map(entries) = &at.node.value else {
            self.wrong_shape(at, &format!("keys and values ({})", section.keys.join(", ")));
            return None;
        };
        let fields = Fields { entries, mark: at.mark(), path: at.path.clone(), section };
        for entry in entries.iter().filter(|entry| !section.keys.contains(&&*entry.key)) {
            self.unknown_key(&fields, &entry.key, entry.mark);
        }
        Some(fields)
    }

    /// The section under a key, if it is there.
    pub(crate) fn section<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        section: &'static Section,
    ) -> Option<Fields<'n>> {
        fields.get(key).and_then(|at| self.fields(&at, section))
    }

    fn unknown_key(&mut self, fields: &Fields<'_>, key: &str, mark: Mark) {
        let keys = fields.section.keys;
        let text = match nearest(key, keys.iter().copied()) {
            Some(meant) => format!("no such setting: did you mean {meant}?"),
            None => format!("no such setting: here stand {}", keys.join(", ")),
        };
        let key: String = key.chars().take(60).filter(|c| !c.is_control()).collect();
        self.mistake_at(mark, &below(&fields.path, &key), text);
    }

    /// The value of a key that must be there.
    pub(crate) fn required<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        like: &str,
    ) -> Option<At<'n>> {
        let at = fields.get(key);
        if at.is_none() {
            let text = format!("{key} is missing: write {like}");
            self.mistake_at(fields.mark, &fields.path, text);
        }
        at
    }

    /// The items of the list under a key; none if it is not there.
    pub(crate) fn items<'n>(&mut self, fields: &Fields<'n>, key: &str, of: &str) -> Vec<At<'n>> {
        let Some(at) = fields.get(key) else { return Vec::new() };
        let Value::List(items) = &at.node.value else {
            self.wrong_shape(&at, &format!("a list of {of}"));
            return Vec::new();
        };
        items.iter().enumerate().map(|(index, node)| at.item(node, index)).collect()
    }

    /// Notes that something else was expected here.
    pub(crate) fn wrong_shape(&mut self, at: &At<'_>, expected: &str) {
        let found = match &at.node.value {
            Value::Broken => return,
            Value::Null => {
                let text = format!("has no value: leave the key out, or write {expected}");
                return self.mistake(at, text);
            }
            Value::Scalar(text) => shown(text),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "keys and values".to_owned(),
        };
        self.mistake(at, format!("found {found}, expected {expected}"));
    }
}
