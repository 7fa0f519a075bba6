//! One line for every request, without any request waiting for a disk.
//!
//! A request writes its line into a queue in memory; one thread takes what has gathered there and
//! writes it in one go. When the queue is full the line is dropped and counted: a slow disk costs
//! lines, never requests. Stopping writes what is queued, so a normal stop loses nothing.
//!
//! The queue is one buffer behind a lock that is held for the copy of a line; lines are formatted
//! before, outside of it, in a buffer that the thread keeps.

mod line;
mod queue;
mod writer;

use std::{cell::RefCell, io, net::IpAddr, path::PathBuf, sync::Arc, thread, time::Duration};

use self::{
    queue::Queue,
    writer::{Target, write_all_lines},
};
use crate::metrics::Counter;

/// How much may wait for the disk: some 16,000 lines, half a second of a busy node.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a stop waits for a target that takes nothing, such as a stuck pipe.
const STOP_WAIT_MAX: Duration = Duration::from_secs(5);

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON object a line, in ASCII.
    #[default]
    Json,
    /// Words to read, separated by spaces.
    Text,
}

/// What is told of one request. Every text may come from the client: each is escaped.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When it came, in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// Whose it is, by the trusted-proxy rule.
    pub client: IpAddr,
    /// Its method.
    pub method: &'a str,
    /// Its path.
    pub path: &'a str,
    /// The answer's status.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// From its head to the end of its answer.
    pub duration: Duration,
    /// The route it took.
    pub route: Option<&'a str>,
    /// The policy whose limit it was shown.
    pub policy: Option<&'a str>,
    /// Whether it was refused by a limit.
    pub limited: bool,
    /// Whether a policy in dry run would have refused it.
    pub dry_run_limited: bool,
    /// Where it was sent on to.
    pub upstream: Option<&'a str>,
    /// By which it is found in other logs.
    pub correlation_id: &'a str,
}

/// The access log. Dropping it writes what is queued.
#[derive(Debug)]
pub struct AccessLog {
    format: Format,
    queue: Arc<Queue>,
}

impl AccessLog {
    /// Writes to the file at `path`, or to standard output without one.
    ///
    /// Lines that found no room, or that the target would not take, are counted in `dropped`.
    pub fn start(format: Format, path: Option<PathBuf>, dropped: Counter) -> io::Result<Self> {
        let target = match path {
            Some(path) => Target::file(path)?,
            None => Target::other(Box::new(io::stdout())),
        };
        Self::to(format, target, dropped)
    }

    fn to(format: Format, target: Target, dropped: Counter) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(QUEUE_BYTES_MAX, dropped));
        let reader = Arc::clone(&queue);
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_all_lines(&reader, target))?;
        Ok(Self { format, queue })
    }

    /// Queues the line of one request. Never waits for the target.
    pub fn write(&self, entry: &Entry<'_>) {
        thread_local! {
            static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            match self.format {
                Format::Json => line::push_json(line, entry),
                Format::Text => line::push_text(line, entry),
            }
            self.queue.push(line);
        });
    }

    /// Opens the file anew, once all lines up to now are in the old one: for log rotation.
    pub fn reopen(&self) {
        self.queue.ask_reopen();
    }

    /// Waits until all lines up to now are with the target; false if that took too long.
    pub fn flush(&self, wait_max: Duration) -> bool {
        self.queue.wait_for(self.queue.last_ticket(), wait_max)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.queue.stop(STOP_WAIT_MAX);
    }
}

#[cfg(test)]
mod tests;
