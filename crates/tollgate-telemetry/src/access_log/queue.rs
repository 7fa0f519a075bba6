//! Lines on their way from requests to the writer.

use std::{
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::metrics::Counter;

/// How long lines gather before they are written: a reader at a terminal does not notice, and a
/// busy node wakes the writer twenty times a second, not once a request.
const GATHER: Duration = Duration::from_millis(50);

/// Lines that gathered, and what the writer should do besides writing them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) lines: u64,
    /// Whether to open the file anew afterwards.
    pub(super) reopen: bool,
    /// How often something was asked for: a line or a new file.
    tickets: u64,
}

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is something for the writer.
    wake: Condvar,
    /// The writer has done something.
    written: Condvar,
    bytes_max: usize,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct State {
    waiting: Batch,
    /// Tickets given out, and those the writer is done with.
    tickets: u64,
    tickets_done: u64,
    /// Somebody waits for the lines: do not gather more.
    hurry: bool,
    stopping: bool,
    stopped: bool,
}

impl State {
    fn give_ticket(&mut self) {
        self.tickets += 1;
        self.waiting.tickets += 1;
    }
}

impl Queue {
    pub(super) fn new(bytes_max: usize, dropped: Counter) -> Self {
        let (wake, written) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::default(), wake, written, bytes_max, dropped }
    }

    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.stopping || state.waiting.bytes.len() + line.len() > self.bytes_max {
            drop(state);
            self.dropped.inc();
            return;
        }
        state.waiting.bytes.extend_from_slice(line);
        state.waiting.lines += 1;
        state.give_ticket();
        let full = state.waiting.bytes.len() > self.bytes_max / 2;
        let first = state.waiting.tickets == 1;
        state.hurry |= full;
        drop(state);
        if first || full {
            self.wake.notify_one();
        }
    }

    pub(super) fn count_lost(&self, lines: u64) {
        self.dropped.add(lines);
    }

    pub(super) fn ask_reopen(&self) {
        let mut state = self.lock();
        state.waiting.reopen = true;
        state.give_ticket();
        state.hurry = true;
        drop(state);
        self.wake.notify_one();
    }

    /// The ticket of what was asked for last.
    pub(super) fn last_ticket(&self) -> u64 {
        self.lock().tickets
    }

    /// Waits until all up to this ticket is done; what comes later is not waited for, so that it
    /// ends under any load.
    pub(super) fn wait_for(&self, ticket: u64, wait_max: Duration) -> bool {
        let mut state = self.lock();
        state.hurry = true;
        self.wake.notify_one();
        let busy = |state: &mut State| state.tickets_done < ticket && !state.stopped;
        let waited = self.written.wait_timeout_while(state, wait_max, busy);
        waited.unwrap_or_else(PoisonError::into_inner).0.tickets_done >= ticket
    }

    pub(super) fn stop(&self, wait_max: Duration) {
        let mut state = self.lock();
        state.stopping = true;
        self.wake.notify_one();
        let running = |state: &mut State| !state.stopped;
        // Whether it is done or gave up, there is nothing more to be done about it.
        drop(self.written.wait_timeout_while(state, wait_max, running));
    }

    /// The next batch, into whose place the buffers of the `last` one go; none once all is
    /// written and the log has stopped.
    pub(super) fn next(&self, mut last: Batch) -> Option<Batch> {
        let mut state = self.lock();
        state.tickets_done += last.tickets;
        self.written.notify_all();
        last.bytes.clear();
        (last.lines, last.reopen, last.tickets) = (0, false, 0);

        let nothing = |state: &mut State| state.waiting.tickets == 0 && !state.stopping;
        state = self.wake.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        let gathering = |state: &mut State| !state.hurry && !state.stopping;
        let gathered = self.wake.wait_timeout_while(state, GATHER, gathering);
        state = gathered.unwrap_or_else(PoisonError::into_inner).0;

        if state.waiting.tickets == 0 {
            state.stopped = true;
            self.written.notify_all();
            return None;
        }
        state.hurry = false;
        Some(mem::replace(&mut state.waiting, last))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(bytes_max: usize) -> Queue {
        Queue::new(bytes_max, Counter::default())
    }

    #[test]
    fn later_lines_are_not_waited_for() {
        let queue = queue(100);
        queue.push(b"a\n");
        let ticket = queue.last_ticket();
        assert!(!queue.wait_for(ticket, Duration::ZERO));
        let batch = queue.next(Batch::default()).unwrap();
        assert_eq!(batch.bytes, b"a\n");

        queue.push(b"b\n");
        assert!(!queue.wait_for(ticket, Duration::ZERO), "the first is not yet done");
        let batch = queue.next(batch).unwrap();
        assert_eq!(batch.bytes, b"b\n");
        assert!(queue.wait_for(ticket, Duration::ZERO));
        assert!(!queue.wait_for(queue.last_ticket(), Duration::ZERO));
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let queue = queue(5);
        for line in [b"a\n", b"b\n", b"c\n"] {
            queue.push(line);
        }
        assert_eq!(queue.dropped.get(), 1);
        let batch = queue.next(Batch::default()).unwrap();
        assert_eq!((&*batch.bytes, batch.lines), (&b"a\nb\n"[..], 2));
    }

    #[test]
    fn a_stopped_queue_gives_what_it_has_and_takes_no_more() {
        let queue = queue(100);
        queue.push(b"a\n");
        queue.stop(Duration::ZERO);
        queue.push(b"b\n");
        let batch = queue.next(Batch::default()).unwrap();
        assert_eq!(batch.bytes, b"a\n");
        assert!(queue.next(batch).is_none());
        assert_eq!(queue.dropped.get(), 1);
    }
}
