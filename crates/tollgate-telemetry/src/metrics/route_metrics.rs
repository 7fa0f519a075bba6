//! What is counted for one route: its answers by status.
//!
//! A status finds its counter by two steps into tables that are made when first needed; a route
//! that only ever answers 200 and 429 holds two hundred places, not five.

use std::sync::OnceLock;

use super::Counter;

/// The counters of one route.
#[derive(Debug, Default)]
pub struct RouteMetrics {
    classes: [OnceLock<Box<Class>>; 5],
    other: Counter,
}

/// The statuses that begin with one digit.
#[derive(Debug)]
struct Class([OnceLock<Counter>; 100]);

impl RouteMetrics {
    /// Counts an answer with this status; what is no HTTP status counts as `other`.
    pub fn count(&self, status: u16) {
        match self.place(status) {
            Some(counter) => counter.inc(),
            None => self.other.inc(),
        }
    }

    fn place(&self, status: u16) -> Option<&Counter> {
        let class = usize::from(status / 100).checked_sub(1)?;
        let class = self.classes.get(class)?.get_or_init(Box::default);
        Some(class.0[usize::from(status % 100)].get_or_init(Counter::default))
    }

    /// Calls `show` with every status that was counted, in order.
    pub(super) fn each(&self, mut show: impl FnMut(&str, u64)) {
        for (digit, class) in (1..).zip(&self.classes) {
            let Some(class) = class.get() else { continue };
            for (rest, counter) in class.0.iter().enumerate() {
                if let Some(counter) = counter.get() {
                    show(itoa::Buffer::new().format(100 * digit + rest), counter.get());
                }
            }
        }
        if self.other.get() > 0 {
            show("other", self.other.get());
        }
    }
}

impl Default for Class {
    fn default() -> Self {
        Self([const { OnceLock::new() }; 100])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_own_count() {
        let route = RouteMetrics::default();
        for status in [200, 599, 200, 100, 429, 0, 99, 600, u16::MAX] {
            route.count(status);
        }
        let mut shown = Vec::new();
        route.each(|status, count| shown.push(format!("{status}={count}")));
        assert_eq!(shown, ["100=1", "200=2", "429=1", "599=1", "other=4"]);
    }
}
