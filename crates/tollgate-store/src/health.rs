//! Whether a store across a network can be asked, for those who wait for a change.

use tokio::sync::watch;

/// How a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It answers.
    Up,
    /// It cannot be asked, in the user's words: why.
    Down(String),
}

/// A store's condition, told by the store and watched by others.
#[derive(Debug, Clone)]
pub struct Health {
    condition: watch::Sender<Condition>,
}

impl Health {
    /// A store of which nothing is known yet; it counts as up until it says otherwise.
    pub fn new() -> Self {
        Self { condition: watch::Sender::new(Condition::Up) }
    }

    /// Notes the condition; whoever watches is told if it has changed.
    pub fn set(&self, condition: Condition) {
        self.condition.send_if_modified(|old| {
            let changed = *old != condition;
            *old = condition;
            changed
        });
    }

    /// The condition now.
    pub fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    /// Whether the store answers.
    pub fn is_up(&self) -> bool {
        *self.condition.borrow() == Condition::Up
    }

    /// To wait for changes.
    pub fn watch(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}
