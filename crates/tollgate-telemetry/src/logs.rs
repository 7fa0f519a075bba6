//! Where the program's own messages go: to standard error, as text for people or JSON for machines.
//!
//! What is shown is decided by `TOLLGATE_LOG`, else by `RUST_LOG`, else it is `info` and above.
//! Standard output is left to the access log, so that the two can be told apart.

use std::io::{self, IsTerminal};

use tracing::Dispatch;
use tracing_subscriber::{
    EnvFilter,
    filter::ParseError,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry,
};

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A line to read, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why messages cannot be shown as asked.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The filter in the environment makes no sense.
    #[error(
        "{variable}={value:?} is no log filter ({cause}); write for example `info` or `warn,tollgate_gateway=debug`"
    )]
    Filter {
        /// Which variable it stands in.
        variable: &'static str,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        cause: ParseError,
    },
    /// The logs of this process are set up already.
    #[error("logs are set up already")]
    Twice,
}

/// Sets up the messages of this process.
pub fn init(format: Format) -> Result<(), LogsError> {
    let filter = filter(&|name| std::env::var(name).ok())?;
    let messages = messages(format, filter, io::stderr, io::stderr().is_terminal());
    tracing::dispatcher::set_global_default(messages).map_err(|_| LogsError::Twice)
}

fn messages<W>(format: Format, filter: EnvFilter, out: W, colours: bool) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(out);
    match format {
        Format::Text => Dispatch::new(registry().with(filter).with(lines.with_ansi(colours))),
        Format::Json => {
            let lines = lines.with_ansi(false).json().flatten_event(true);
            Dispatch::new(registry().with(filter).with(lines))
        }
    }
}

fn filter(env: &dyn Fn(&str) -> Option<String>) -> Result<EnvFilter, LogsError> {
    for variable in ["TOLLGATE_LOG", "RUST_LOG"] {
        if let Some(value) = env(variable).filter(|value| !value.is_empty()) {
            return EnvFilter::builder().parse(&value).map_err(|cause| LogsError::Filter {
                variable,
                value,
                cause,
            });
        }
    }
    Ok(EnvFilter::new("info"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use expect_test::expect;

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn said(format: Format, speak: fn()) -> String {
        let memory = Memory::default();
        let out = memory.clone();
        let messages = messages(format, EnvFilter::new("info"), move || out.clone(), false);
        tracing::dispatcher::with_default(&messages, speak);
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn speak() {
        tracing::warn!(cause = "refused", "Redis unavailable");
        tracing::debug!("not shown");
    }

    #[test]
    fn a_json_message_is_one_flat_object() {
        let said = said(Format::Json, speak);
        let value: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(value["level"], "WARN");
        assert_eq!(value["message"], "Redis unavailable");
        assert_eq!(value["cause"], "refused");
        assert_eq!(value["target"], "tollgate_telemetry::logs::tests");
        assert!(value["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_text_message_is_one_line() {
        let said = said(Format::Text, speak);
        let expected =
            " WARN tollgate_telemetry::logs::tests: Redis unavailable cause=\"refused\"\n";
        assert!(said.ends_with(expected), "{said}");
        assert_eq!(said.lines().count(), 1);
    }

    fn shown(env: &[(&str, &str)]) -> String {
        let env = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        filter(&env).map_or_else(|error| error.to_string(), |filter| filter.to_string())
    }

    #[test]
    fn our_own_variable_comes_first() {
        assert_eq!(shown(&[]), "info");
        assert_eq!(shown(&[("RUST_LOG", "warn")]), "warn");
        assert_eq!(shown(&[("RUST_LOG", "warn"), ("TOLLGATE_LOG", "debug")]), "debug");
        assert_eq!(shown(&[("RUST_LOG", ""), ("TOLLGATE_LOG", "")]), "info");
    }

    #[test]
    fn a_broken_filter_is_named() {
        expect![[r#"TOLLGATE_LOG="a=b=c" is no log filter (error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5); write for example `info` or `warn,tollgate_gateway=debug`"#]]
            .assert_eq(&shown(&[("TOLLGATE_LOG", "a=b=c")]));
    }
}
