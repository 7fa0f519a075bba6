//! What the outside tells a running program.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT stop, SIGHUP reloads.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Stop,
    Reload,
}

impl Signals {
    /// From here on the program decides what signals do.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.term.recv() => Asked::Stop,
            _ = self.int.recv() => Asked::Stop,
            _ = self.hup.recv() => Asked::Reload,
        }
    }
}
