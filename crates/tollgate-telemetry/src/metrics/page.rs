//! The text that a scraper reads, in either of the two forms it may ask for.
//!
//! They differ in three ways: OpenMetrics names a counter's family without `_total`, knows the
//! kind *info*, and ends with `# EOF`. The samples, which is what people search for, are alike.

use std::fmt::{Display, Write};

/// The form of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exposition {
    /// Prometheus' own text, which everything reads.
    #[default]
    Text,
    /// OpenMetrics, which a newer Prometheus asks for.
    OpenMetrics,
}

impl Exposition {
    /// The form that a request's `Accept` header asks for. OpenMetrics only if it is named.
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Text,
        }
    }

    /// What the page is sent as.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a family of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Kind {
    /// What the samples' name has more than the family's.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }

    const fn name(self, exposition: Exposition) -> &'static str {
        match (self, exposition) {
            (Self::Counter, _) => "counter",
            (Self::Histogram, _) => "histogram",
            (Self::Info, Exposition::OpenMetrics) => "info",
            (Self::Gauge | Self::Info, _) => "gauge",
        }
    }
}

/// A page being written: a family's head, then its samples.
pub(super) struct Page {
    text: String,
    exposition: Exposition,
    family: &'static str,
    kind: Kind,
}

impl Page {
    pub(super) fn new(exposition: Exposition) -> Self {
        Self { text: String::with_capacity(16 * 1024), exposition, family: "", kind: Kind::Gauge }
    }

    /// Begins a family. Its name goes without the suffix of its kind.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.family, self.kind) = (name, kind);
        let suffix = match self.exposition {
            Exposition::Text => kind.suffix(),
            Exposition::OpenMetrics => "",
        };
        let kind = kind.name(self.exposition);
        self.push(format_args!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"));
    }

    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.sample_of(self.kind.suffix(), labels, value);
    }

    /// A sample whose name has a suffix of its own, as those of a histogram do.
    pub(super) fn sample_of(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let family = self.family;
        self.push(format_args!("{family}{suffix}"));
        for (at, (name, value)) in labels.iter().enumerate() {
            self.push(format_args!("{}{name}=\"", if at == 0 { '{' } else { ',' }));
            self.push_escaped(value);
            self.text.push('"');
        }
        self.push(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    pub(super) fn finish(mut self) -> String {
        if self.exposition == Exposition::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn push_escaped(&mut self, value: &str) {
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }

    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to memory cannot fail.
        let _ = self.text.write_fmt(arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_scrapers_choice() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        assert_eq!(Exposition::accepted(Some(prometheus)), Exposition::OpenMetrics);
        assert_eq!(Exposition::accepted(Some("*/*")), Exposition::Text);
        assert_eq!(Exposition::accepted(None), Exposition::Text);
    }

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let mut page = Page::new(Exposition::Text);
        page.family("a", Kind::Gauge, "help");
        page.sample(&[("x", "1\"} 2\n\\"), ("y", "ü")], 3);
        let text = page.finish();
        assert_eq!(text.lines().last(), Some(r#"a{x="1\"} 2\n\\",y="ü"} 3"#));
    }
}
