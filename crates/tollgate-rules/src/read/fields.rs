//! A value with the way to it, and the keys of a section.

use super::keys::Section;
use crate::{
    mistake::Mark,
    yaml::{Entry, Node},
};

/// A value and the way to it.
#[derive(Debug, Clone)]
pub(crate) struct At<'n> {
    pub(crate) node: &'n Node,
    pub(crate) path: String,
}

impl<'n> At<'n> {
    pub(crate) const fn root(node: &'n Node) -> Self {
        Self { node, path: String::new() }
    }

    /// The item of a list.
    pub(crate) fn item(&self, node: &'n Node, index: usize) -> Self {
        Self { node, path: format!("{}[{index}]", self.path) }
    }

    pub(crate) const fn mark(&self) -> Mark {
        self.node.mark
    }
}

/// The keys of a section that stand in the text.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    pub(super) entries: &'n [Entry],
    pub(super) mark: Mark,
    pub(super) path: String,
    pub(super) section: &'static Section,
}

impl<'n> Fields<'n> {
    /// The value of a key, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<At<'n>> {
        debug_assert!(self.section.keys.contains(&key), "{key} is not in the section's table");
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(At { node: &entry.node, path: below(&self.path, key) })
    }

    /// Where a key stands, if it is there.
    pub(crate) fn key_mark(&self, key: &str) -> Option<Mark> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.mark)
    }
}

/// The way to a key of the section at `path`.
pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
