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
    /// The writer is at work on a batch it took.
    writing: bool,
    /// Somebody waits for the lines: do not gather more.
    hurry: bool,
    stopping: bool,
    stopped: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.waiting.lines == 0 && !self.waiting.reopen && !self.writing
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
        let full = state.waiting.bytes.len() > self.bytes_max / 2;
        let first = state.waiting.lines == 1;
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
        state.hurry = true;
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn wait_until_written(&self, wait_max: Duration) -> bool {
        let mut state = self.lock();
        state.hurry = true;
        self.wake.notify_one();
        let busy = |state: &mut State| !state.is_idle() && !state.stopped;
        let waited = self.written.wait_timeout_while(state, wait_max, busy);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_idle()
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
        last.bytes.clear();
        (last.lines, last.reopen) = (0, false);
        let mut state = self.lock();
        state.writing = false;
        self.written.notify_all();
        state = wait_while(&self.wake, state, |state| state.is_idle() && !state.stopping);
        if !state.stopping {
            let gathering = |state: &mut State| !state.hurry && !state.stopping;
            let gathered = self.wake.wait_timeout_while(state, GATHER, gathering);
            state = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stopping && state.is_idle() {
            state.stopped = true;
            self.written.notify_all();
            return None;
        }
        state.writing = true;
        state.hurry = false;
        Some(mem::replace(&mut state.waiting, last))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait_while<'a>(
    wake: &Condvar,
    state: MutexGuard<'a, State>,
    mut condition: impl FnMut(&State) -> bool,
) -> MutexGuard<'a, State> {
    wake.wait_while(state, |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
}
