//! Any text as a configuration: it is read or its mistakes are told, each at a place that exists.

use http::Method;
use tollgate_rules::{Mistakes, RuleSet};

/// Reads the bytes as a configuration.
pub fn read(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let environment = |name: &str| (name == "SET").then(|| "8080".to_owned());
    match tollgate_rules::read("fuzz.yaml", text, &environment) {
        Ok(config) => routes_are_found(&config.rules),
        Err(mistakes) => mistakes_stand_in(&mistakes, text),
    }
}

/// Every published route is found by its own path.
fn routes_are_found(rules: &RuleSet) {
    for route in rules.routes() {
        let method = route.methods.first().unwrap_or(&Method::GET);
        // Whatever is found, perhaps a more special route: looking must not fail.
        let _ = rules.matches(method, route.host.as_deref(), &route.path);
    }
}

fn mistakes_stand_in(mistakes: &Mistakes, text: &str) {
    let printed = mistakes.to_string();
    assert!(!mistakes.all().is_empty(), "refused without a mistake");
    assert!(printed.len() < 1 << 20, "{} bytes of mistakes", printed.len());
    // Whatever YAML takes for the end of a line, there are no more lines than bytes.
    let line_max = text.len() + 1;
    for mistake in mistakes.all() {
        assert!((1..=line_max).contains(&mistake.line), "{mistake}");
        assert!(mistake.column >= 1, "{mistake}");
        assert!(!mistake.text.is_empty(), "{mistake}");
    }
}
