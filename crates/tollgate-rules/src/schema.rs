//! The configuration described for editors and other programs.
//!
//! It is a file of its own, written by hand, since its descriptions are documentation. Tests
//! hold it against the table of keys that the reader uses, and both against examples.

/// The JSON Schema (draft 2020-12) of the configuration.
pub fn schema() -> &'static str {
    include_str!("schema.json")
}

#[cfg(test)]
mod tests;
