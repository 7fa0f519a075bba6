//! What must hold for every parser whatever it is given: no panic, and the promises each makes.
//!
//! Every module has one function `read` that takes any bytes. libFuzzer calls it through
//! `fuzz_targets/` (`make soak`); `tests/bounded.rs` calls it with a fixed number of mutations of
//! the texts in `seeds/`, in every test run.

pub mod client_addr;
pub mod configuration;
pub mod http_message;
pub mod key_template;
pub mod rate;

/// A parser under test.
pub type Target = fn(&[u8]);

/// All targets, by the names of their seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("configuration", configuration::read),
    ("key_template", key_template::read),
    ("client_addr", client_addr::read),
    ("rate", rate::read),
    ("http_message", http_message::read),
];
