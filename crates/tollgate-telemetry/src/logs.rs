//! Where the program's own messages go: to standard error, as text for people or JSON for machines.
//!
//! What is shown is decided by `TOLLGATE_LOG`, else by `RUST_LOG`, else it is `info` and above.
//! Standard output is left to the access log, so that the two can be told apart.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt, layer::SubscriberExt, registry};

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
    let base = registry().with(filter);
    let messages = fmt::layer().with_writer(io::stderr);
    let done = match format {
        Format::Text => {
            let messages = messages.with_ansi(io::stderr().is_terminal());
            tracing::subscriber::set_global_default(base.with(messages))
        }
        Format::Json => tracing::subscriber::set_global_default(
            base.with(messages.json().flatten_event(true).with_ansi(false)),
        ),
    };
    done.map_err(|_| LogsError::Twice)
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
    use expect_test::expect;

    use super::*;

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
