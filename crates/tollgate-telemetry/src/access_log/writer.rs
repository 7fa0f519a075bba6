//! The thread that brings lines to a file or to standard output.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::queue::{Batch, Queue};

/// Where lines go.
pub(super) struct Target {
    out: Box<dyn Write + Send>,
    /// Where it can be opened anew.
    path: Option<PathBuf>,
}

impl Target {
    pub(super) fn file(path: PathBuf) -> io::Result<Self> {
        Ok(Self { out: Box::new(open(&path)?), path: Some(path) })
    }

    pub(super) fn other(out: Box<dyn Write + Send>) -> Self {
        Self { out, path: None }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.out.write_all(lines)?;
        self.out.flush()
    }

    /// Goes on with the old file when the new one cannot be had.
    fn reopen(&mut self) {
        let Some(path) = &self.path else { return };
        match open(path) {
            Ok(file) => self.out = Box::new(file),
            Err(cause) => tracing::error!(
                path = %path.display(), %cause,
                "access log cannot be opened anew; going on with the old file"
            ),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

/// Writes until the log is stopped and all is written. Told of once: when lines begin to be lost,
/// and when they are written again.
pub(super) fn write_all_lines(queue: &Queue, mut target: Target) {
    let mut batch = Batch::default();
    let mut losing = false;
    while let Some(next) = queue.next(batch) {
        batch = next;
        match target.write(&batch.bytes) {
            Ok(()) if losing => {
                losing = false;
                tracing::info!("access log is written again");
            }
            Ok(()) => {}
            Err(cause) => {
                queue.count_lost(batch.lines);
                if !losing {
                    tracing::error!(%cause, "access log cannot be written; lines are lost");
                }
                losing = true;
            }
        }
        if batch.reopen {
            target.reopen();
        }
    }
}
