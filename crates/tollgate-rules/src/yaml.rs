//! What a YAML text says, with the place of every value.
//!
//! A plain tree instead of typed reading: only so can one pass tell all mistakes at once and
//! each with its line. YAML that only hides things is refused with a mistake: aliases (a short
//! text that unfolds without end), tags, several documents, the same key twice. Size and depth
//! are bounded, so no text costs more than a small multiple of its own length.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::mistake::{Findings, Mark, shown};

/// Some 40,000 routes; more belongs in a database.
const BYTES_MAX: usize = 16 << 20;

/// Our own sections nest six deep.
const DEPTH_MAX: usize = 32;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) mark: Mark,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// Something already reported; readers pass over it in silence.
    Broken,
}

/// One key of a map and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) mark: Mark,
    pub(crate) node: Node,
}

/// Reads a text into a tree; `None` if it has no shape at all, which is then reported.
pub(crate) fn parse(text: &str, findings: &mut Findings) -> Option<Node> {
    let start = Mark { line: 1, column: 1 };
    if text.len() > BYTES_MAX {
        let size = text.len();
        findings.add(start, "", format!("the text has {size} bytes: at most 16MiB are read"));
        return None;
    }
    let mut builder = Builder { findings, open: Vec::new(), root: None, documents: 0 };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => builder.event(event, span)?,
            Err(error) => return builder.broken(&error, text),
        }
    }
    // An empty text, or one of comments only, is a configuration that asks for nothing.
    Some(builder.root.unwrap_or(Node { mark: start, value: Value::Map(Vec::new()) }))
}

/// A list or map whose end has not come yet.
enum Open {
    List { mark: Mark, items: Vec<Node> },
    Map { mark: Mark, entries: Vec<Entry>, key: Option<(String, Mark)> },
}

struct Builder<'a> {
    findings: &'a mut Findings,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

impl Builder<'_> {
    /// Takes one event; `None` ends the reading.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let mark = mark(span);
        match event {
            Event::DocumentStart(_) => self.document(mark)?,
            Event::Scalar(text, style, _, tag) => {
                self.no_tag(mark, tag.is_some());
                self.put(Node { mark, value: scalar(&text, style) });
            }
            Event::SequenceStart(_, tag) => {
                self.no_tag(mark, tag.is_some());
                self.open(mark, Open::List { mark, items: Vec::new() })?;
            }
            Event::MappingStart(_, tag) => {
                self.no_tag(mark, tag.is_some());
                self.open(mark, Open::Map { mark, entries: Vec::new(), key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(_) => {
                self.mistake(mark, "aliases (*name) are not read: write the value out");
                self.put(Node { mark, value: Value::Broken });
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn document(&mut self, mark: Mark) -> Option<()> {
        self.documents += 1;
        if self.documents > 1 {
            self.mistake(mark, "a second document begins here (---): a configuration is one");
            return None;
        }
        Some(())
    }

    fn open(&mut self, mark: Mark, open: Open) -> Option<()> {
        if self.open.len() == DEPTH_MAX {
            self.mistake(mark, "nested too deeply: no setting is more than 32 levels down");
            return None;
        }
        self.open.push(open);
        Some(())
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::List { mark, items }) => self.put(Node { mark, value: Value::List(items) }),
            Some(Open::Map { mark, entries, .. }) => {
                let entries = self.without_doubles(entries);
                self.put(Node { mark, value: Value::Map(entries) });
            }
            None => {}
        }
    }

    /// Puts a finished value where it belongs: into the list, as key or value of the map, or
    /// as the whole text.
    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some((key, mark)) => entries.push(Entry { key, mark, node }),
                None => {
                    let mark = node.mark;
                    *key = Some((key_text(node, self.findings), mark));
                }
            },
        }
    }

    fn without_doubles(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut first = std::collections::HashMap::new();
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            match first.get(&entry.key) {
                None => {
                    first.insert(entry.key.clone(), entry.mark.line);
                    kept.push(entry);
                }
                Some(line) => self.mistake(
                    entry.mark,
                    &format!(
                        "{} stands here a second time, first in line {line}",
                        shown(&entry.key)
                    ),
                ),
            }
        }
        kept
    }

    fn no_tag(&mut self, mark: Mark, tagged: bool) {
        if tagged {
            self.mistake(mark, "tags (!name) are not read: leave it out");
        }
    }

    fn mistake(&mut self, mark: Mark, text: &str) {
        self.findings.add(mark, "", text.to_owned());
    }

    fn broken(&mut self, error: &ScanError, text: &str) -> Option<Node> {
        let marker = error.marker();
        let mark = Mark { line: marker.line(), column: marker.col() + 1 };
        let mut told = format!("this is not YAML: {}", error.info());
        if opens_reference(text, marker.index()) {
            told.push_str("; within [ ] and { } put quotes around it: \"${NAME}\"");
        }
        self.mistake(mark, &told);
        None
    }
}

/// Whether the reader stumbled over the brace of a `${`: inside `[ ]` and `{ }` a brace is
/// YAML's own sign.
fn opens_reference(text: &str, index: usize) -> bool {
    let mut around = text.trim_start_matches('\u{feff}').chars().skip(index.saturating_sub(1));
    (around.next(), around.next()) == (Some('$'), Some('{'))
}

fn mark(span: Span) -> Mark {
    Mark { line: span.start.line(), column: span.start.col() + 1 }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Value::Null;
    }
    Value::Scalar(text.to_owned())
}

fn key_text(node: Node, findings: &mut Findings) -> String {
    match node.value {
        Value::Scalar(text) => text,
        Value::Broken => String::new(),
        _ => {
            findings.add(node.mark, "", "a key must be a word".to_owned());
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn written(node: &Node) -> String {
        let Mark { line, column } = node.mark;
        let value = match &node.value {
            Value::Null => "null".to_owned(),
            Value::Broken => "broken".to_owned(),
            Value::Scalar(text) => format!("{text:?}"),
            Value::List(items) => format!("{:?}", items.iter().map(written).collect::<Vec<_>>()),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| format!("({} {})", entry.key, written(&entry.node)))
                .collect(),
        };
        format!("{line}:{column} {value}").replace('\\', "")
    }

    fn read(text: &str) -> String {
        let mut findings = Findings::new("a.yaml");
        let node = parse(text, &mut findings);
        match findings.finish(text) {
            Err(mistakes) => mistakes.to_string(),
            Ok(_) => written(&node.unwrap()),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&read(text));
    }

    #[test]
    fn every_value_knows_its_place() {
        check("a: 1\nb: {c: x}\n", expect![[r#"1:1 (a 1:4 "1")(b 2:4 (c 2:8 "x"))"#]]);
        check("é: ~\n", expect!["1:1 (é 1:4 null)"]);
        check("", expect!["1:1 "]);
        check("# nothing\n", expect!["1:1 "]);
        check("\"null\"", expect![[r#"1:1 "null""#]]);
    }

    #[test]
    fn what_only_hides_things_is_refused() {
        check(
            "a: &x 1\nb: *x\nc: !t 2\na: 3\n",
            expect![[r#"
                a.yaml:2:4: aliases (*name) are not read: write the value out
                    b: *x
                       ^
                a.yaml:3:4: tags (!name) are not read: leave it out
                    c: !t 2
                       ^
                a.yaml:4:1: "a" stands here a second time, first in line 1
                    a: 3
                    ^"#]],
        );
        check(
            "a: 1\n---\nb: 2\n",
            expect![[r#"
                a.yaml:2:1: a second document begins here (---): a configuration is one
                    ---
                    ^"#]],
        );
        check(
            "? [a]\n: 1\n",
            expect![[r#"
                a.yaml:1:3: a key must be a word
                    ? [a]
                      ^"#]],
        );
    }

    #[test]
    fn broken_yaml_is_shown_where_it_breaks() {
        check(
            "a:\n\tb: 1\n",
            expect![[r#"
                a.yaml:2:2: this is not YAML: tabs disallowed within this context (block indentation)
                    b: 1
                    ^"#]],
        );
        check(
            "a: [${X}]\n",
            expect![[r#"
                a.yaml:1:6: this is not YAML: while parsing a flow sequence, expected ',' or ']'; within [ ] and { } put quotes around it: "${NAME}"
                    a: [${X}]
                         ^"#]],
        );
    }

    #[test]
    fn depth_and_size_are_bounded() {
        assert!(read(&"[".repeat(200)).contains("nested too deeply"));
        assert!(read(&"- ".repeat(100_000)).contains("nested too deeply"));
        assert!(read(&" ".repeat(BYTES_MAX + 1)).contains("at most 16MiB"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\PC|[\n\t &*!|>{}\\[\\],:#\"'-]){0,200}") {
            read(&text);
        }
    }
}
