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

/// Collects mistakes while a text is read, and hints at what works but hardly as meant.
#[derive(Debug)]
pub(crate) struct Findings {
    file: String,
    all: Vec<Mistake>,
    more: usize,
    hints: Vec<Mistake>,
}

impl Findings {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), all: Vec::new(), more: 0, hints: Vec::new() }
    }

    pub(crate) fn add(&mut self, mark: Mark, path: &str, text: String) {
        if self.all.len() == KEPT_MAX {
            self.more += 1;
            return;
        }
        let mistake = self.found(mark, path, text);
        self.all.push(mistake);
    }

    /// Notes what works, but hardly as it was meant.
    pub(crate) fn add_hint(&mut self, mark: Mark, path: &str, text: String) {
        if self.hints.len() < KEPT_MAX {
            let hint = self.found(mark, path, text);
            self.hints.push(hint);
        }
    }

    fn found(&self, Mark { line, column }: Mark, path: &str, text: String) -> Mistake {
        let (file, path) = (self.file.clone(), path.to_owned());
        Mistake { file, line, column, path, text, excerpt: Default::default() }
    }

    /// All mistakes in `source`, or all hints if there is none; by line and with the lines.
    pub(crate) fn finish(mut self, source: &str) -> Result<Vec<Mistake>, Mistakes> {
        if self.all.is_empty() {
            excerpts(&mut self.hints, source);
            return Ok(self.hints);
        }
        excerpts(&mut self.all, source);
        Err(Mistakes { all: self.all, more: self.more })
    }
}

/// Sorts by line and adds the lines.
fn excerpts(found: &mut [Mistake], source: &str) {
    found.sort_by_key(|mistake| (mistake.line, mistake.column));
    let mut lines = (1_usize..).zip(lines(source));
    let mut current = lines.next();
    for mistake in found {
        while current.is_some_and(|(number, _)| number < mistake.line) {
            current = lines.next();
        }
        if let Some((_, line)) = current.filter(|(_, line)| line.len() <= LINE_BYTES_MAX) {
            mistake.excerpt = excerpt(&without_passwords(line), mistake.column - 1);
        }
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

/// The line with a star for every letter of a password in an address: mistakes end up in logs,
/// and a password may stand right beside one. The columns stay as they are.
fn without_passwords(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(['"', '\'']).unwrap_or(after.len());
        let end = after[..end].find(", ").unwrap_or(end);
        let (address, behind) = after.split_at(end);
        let (user, host) = address.split_at(address.rfind('@').unwrap_or(0));
        let (name, password) = user.split_at(user.find(':').map_or(user.len(), |at| at + 1));
        let query = host.find("password=").map_or(host.len(), |at| at + 9);
        shown.push_str(name);
        shown.extend(password.chars().map(|_| '*'));
        shown.push_str(&host[..query]);
        shown.extend(host[query..].chars().map(|_| '*'));
        rest = behind;
    }
    shown.push_str(rest);
    shown
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
        let mistakes =
            findings([(3, 4), (1, 1), (9, 1)]).finish("one\r\ntwo\r\n  three").unwrap_err();
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
        assert_eq!(findings([]).finish("one"), Ok(Vec::new()));
    }

    #[test]
    fn very_many_are_counted_not_printed() {
        let mistakes = findings((1..=1_200).map(|line| (line, 1))).finish("").unwrap_err();
        assert_eq!(mistakes.count(), 1_200);
        assert_eq!(mistakes.all().len(), 1_000);
        assert_eq!(mistakes.to_string().lines().last(), Some("and 1150 more"));
    }

    #[test]
    fn a_hint_is_told_only_where_nothing_is_wrong() {
        let hint = |mut findings: Findings| {
            findings.add_hint(Mark { line: 1, column: 1 }, "some.path", "is odd".to_owned());
            findings.finish("one")
        };
        assert_eq!(
            hint(findings([])).unwrap()[0].to_string(),
            "a.yaml:1:1: some.path: is odd\n    one\n    ^"
        );
        assert_eq!(hint(findings([(1, 1)])).unwrap_err().count(), 1);
    }

    #[test]
    fn a_password_is_never_shown() {
        let check = |line, expected| assert_eq!(without_passwords(line), expected);
        check("url: redis://me:secret@host:1/0", "url: redis://me:******@host:1/0");
        check("url: redis://:p@ss/w:d@host", "url: redis://:********@host");
        check("url: 'rediss://:é é@a,b@c' # x@y", "url: 'rediss://:*******@c' # x@y");
        check("[\"http://a:1\", \"http://u:pw@b\"]", "[\"http://a:1\", \"http://u:**@b\"]");
        check("{url: redis://u:p@a, ca: b@c}", "{url: redis://u:*@a, ca: b@c}");
        check(
            "redis+sentinel://h/m?sentinel_password=ab",
            "redis+sentinel://h/m?sentinel_password=**",
        );
        check("redis://me@host, ://", "redis://me@host, ://");
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
