//! What is wrong with a configuration, shown where it stands.
//!
//! All mistakes are told at once, so that a file is mended in one go. What is kept and what is
//! printed is bounded: a file of the wrong kind would otherwise give one mistake per line.

use std::fmt;

/// More than anyone mends in one go; further ones are only counted.
const KEPT_MAX: usize = 1_000;

/// A few screens; the rest is told as a number.
const PRINTED_MAX: usize = 50;

/// How much of a source line is printed; longer ones are cut around the mistake.
const WIDTH_MAX: usize = 120;

/// A longer line was not written by people, and cutting it a thousand times would take long.
const LINE_BYTES_MAX: usize = 64 << 10;

/// How much of a value is repeated in a text.
const SHOWN_MAX: usize = 60;

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
    /// The line around the place, and where the place is in it.
    excerpt: (String, usize),
}

/// All mistakes of one configuration, by line; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    all: Vec<Mistake>,
    more: usize,
}

impl Mistakes {
    /// The mistakes, by line; of very many the first thousand found.
    pub fn all(&self) -> &[Mistake] {
        &self.all
    }

    /// How many there are, kept or not.
    pub fn count(&self) -> usize {
        self.all.len() + self.more
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.all.iter().take(PRINTED_MAX).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{mistake}")?;
        }
        match self.count().saturating_sub(PRINTED_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.text)?;
        match &self.excerpt {
            (line, _) if line.is_empty() => Ok(()),
            (line, caret) => write!(f, "\n    {line}\n    {:caret$}^", ""),
        }
    }
}

/// Collects mistakes while a text is read.
#[derive(Debug)]
pub(crate) struct Findings {
    file: String,
    all: Vec<Mistake>,
    more: usize,
}

impl Findings {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), all: Vec::new(), more: 0 }
    }

    pub(crate) fn add(&mut self, mark: Mark, path: &str, text: String) {
        if self.all.len() == KEPT_MAX {
            self.more += 1;
            return;
        }
        let Mark { line, column } = mark;
        let (file, path) = (self.file.clone(), path.to_owned());
        self.all.push(Mistake { file, line, column, path, text, excerpt: Default::default() });
    }

    /// All that was found in `source`, by line and with the lines; `None` if nothing was.
    pub(crate) fn finish(mut self, source: &str) -> Option<Mistakes> {
        if self.all.is_empty() {
            return None;
        }
        self.all.sort_by_key(|mistake| (mistake.line, mistake.column));
        let mut lines = (1_usize..).zip(lines(source));
        let mut current = lines.next();
        for mistake in &mut self.all {
            while current.is_some_and(|(number, _)| number < mistake.line) {
                current = lines.next();
            }
            if let Some((_, line)) = current.filter(|(_, line)| line.len() <= LINE_BYTES_MAX) {
                mistake.excerpt = excerpt(line, mistake.column - 1);
            }
        }
        Some(Mistakes { all: self.all, more: self.more })
    }
}

/// A place in a text; line and column count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value found, in quotes and short enough for a line.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// The lines of a text as YAML counts them.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.trim_start_matches('\u{feff}').split('\n');
    lines.flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// The part of a line around a column, and where the column is in it. Tabs become spaces and
/// control characters points, so that the caret stands right and a terminal stays sane.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let indent = line.chars().take_while(|c| c.is_whitespace()).count().min(column);
    let start = if column - indent < WIDTH_MAX { indent } else { column - WIDTH_MAX / 2 };
    let visible = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '·',
        c => c,
    };
    let text: String = line.chars().skip(start).take(WIDTH_MAX).map(visible).collect();
    (text.trim_end().to_owned(), column - start)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn findings(marks: impl IntoIterator<Item = (usize, usize)>) -> Findings {
        let mut findings = Findings::new("a.yaml");
        for (line, column) in marks {
            findings.add(Mark { line, column }, "some.path", "is wrong".to_owned());
        }
        findings
    }

    #[test]
    fn mistakes_come_by_line_with_a_caret_under_the_place() {
        let mistakes = findings([(3, 4), (1, 1), (9, 1)]).finish("one\r\ntwo\r\n  three").unwrap();
        expect![[r#"
            a.yaml:1:1: some.path: is wrong
                one
                ^
            a.yaml:3:4: some.path: is wrong
                three
                 ^
            a.yaml:9:1: some.path: is wrong"#]]
        .assert_eq(&mistakes.to_string());
    }

    #[test]
    fn nothing_found_is_no_mistake() {
        assert_eq!(findings([]).finish("one"), None);
    }

    #[test]
    fn very_many_are_counted_not_printed() {
        let mistakes = findings((1..=1_200).map(|line| (line, 1))).finish("").unwrap();
        assert_eq!(mistakes.count(), 1_200);
        assert_eq!(mistakes.all().len(), 1_000);
        assert_eq!(mistakes.to_string().lines().last(), Some("and 1150 more"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_mistake() {
        let line = format!("{}\tX{}", "a".repeat(300), "b".repeat(300));
        let (text, caret) = excerpt(&line, 301);
        assert_eq!(text.chars().count(), WIDTH_MAX);
        assert_eq!(text.chars().nth(caret), Some('X'));
        assert_eq!(shown(&"é".repeat(100)), format!("\"{}\"…", "é".repeat(60)));
    }
}
