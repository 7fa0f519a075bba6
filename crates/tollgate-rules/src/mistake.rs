//! What is wrong with a configuration, shown where it stands.

use std::fmt;

/// One mistake and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The name of the text, as a rule a file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The way to the value, such as `policies[0].limits[1].rate`; empty for the whole text.
    pub path: String,
    /// What is wrong and what would be right.
    pub text: String,
}

/// All mistakes of one configuration, by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    all: Vec<Mistake>,
}

impl Mistakes {
    /// The mistakes, by line.
    pub fn all(&self) -> &[Mistake] {
        &self.all
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Mistake { file, line, column, path, text } in &self.all {
            writeln!(f, "{file}:{line}:{column}: {path}: {text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
