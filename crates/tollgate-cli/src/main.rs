//! The `tollgate` program: what was typed, what comes of it, and the exit code.
//!
//! Exit codes: 0 fine, 64 bad usage or configuration, 70 anything else that went wrong.

mod listeners;
mod quickstart;
mod reload;
mod run;
mod signals;
mod source;
mod stores;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};
use tollgate_telemetry::logs;

use crate::source::Source;

// Faster than the system's on many small allocations from many threads, which is what serving is.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FINE: u8 = 0;
const BAD_USAGE: u8 = 64;
const FAILED: u8 = 70;

/// A gateway, a decision service and a library that limit request rates.
#[derive(Parser)]
#[command(name = "tollgate", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs everything the configuration asks for; without a file, a quickstart on loopback.
    Run {
        /// The configuration, in YAML. It is read again when it changes and on SIGHUP.
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The form of the program's messages on standard error.
        #[arg(long, value_name = "FORM", default_value = "text")]
        log: LogForm,
    },
    /// Reads the configuration as `run` does and prints every mistake with file and line.
    Check {
        /// The configuration, in YAML.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Prints the JSON Schema of the configuration, for editors.
    Schema,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogForm {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => {
            // Help and version come this way too, and are no mistakes.
            let code = if told.use_stderr() { BAD_USAGE } else { FINE };
            let _ = told.print();
            return code.into();
        }
    };
    match arguments.command {
        Command::Run { config, log } => run(config, log),
        Command::Check { config } => check(config),
        Command::Schema => {
            println!("{}", tollgate_rules::schema().trim_end());
            FINE.into()
        }
    }
}

fn run(config: Option<PathBuf>, log: LogForm) -> ExitCode {
    let form = match log {
        LogForm::Text => logs::Format::Text,
        LogForm::Json => logs::Format::Json,
    };
    if let Err(error) = logs::init(form) {
        eprintln!("{error}");
        return BAD_USAGE.into();
    }
    let source = config.map_or(Source::Quickstart, Source::File);
    let config = match source.read() {
        Ok(read) => read,
        Err(error) => {
            eprintln!("{error}");
            return BAD_USAGE.into();
        }
    };
    match run::run(&source, config) {
        Ok(()) => FINE.into(),
        Err(error) => {
            tracing::error!("{error:#}");
            FAILED.into()
        }
    }
}

fn check(config: PathBuf) -> ExitCode {
    match Source::File(config.clone()).read() {
        Ok(read) => {
            for hint in &read.config.hints {
                eprintln!("hint: {hint}");
            }
            let rules = &read.config.rules;
            let (policies, routes) = (rules.policies().len(), rules.routes().len());
            println!("{}: fine ({policies} policies, {routes} published routes)", config.display());
            FINE.into()
        }
        Err(error) => {
            eprintln!("{error}");
            BAD_USAGE.into()
        }
    }
}
