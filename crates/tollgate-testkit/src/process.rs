//! Another program, running for as long as a test needs it.
//!
//! What it prints is kept, because "did not start" without its last words helps nobody. It and
//! what it started are killed by their ids when the value is dropped, also when the test panics:
//! workers of nginx would outlive their master. They stay in the test's process group, so that
//! an interrupted test run takes them along.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{TookTooLong, wait_for, wait_until};

/// Enough for a start-up text and a stack trace; a program that logs without end is cut off here.
const OUTPUT_MAX: usize = 256 * 1024;

/// Pipes are read at once; this is for a machine that is busy with other things.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

/// Why a program is not running.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started at all.
    #[error("{name} could not be started: {source}")]
    NotStarted {
        /// What was to be started.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended by itself.
    #[error("{name} ended with {status}; it said:\n{output}")]
    Ended {
        /// What had been started.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        output: String,
    },
    /// It runs, but does not do what was waited for.
    #[error("{name}: {cause}; it said:\n{output}")]
    NotReady {
        /// What had been started.
        name: String,
        /// How long was waited.
        cause: TookTooLong,
        /// What it printed.
        output: String,
    },
}

impl Process {
    /// Starts `command` with nothing on its input and its output kept.
    pub fn start(mut command: Command) -> Result<Self, ProcessError> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| ProcessError::NotStarted { name: name.clone(), source })?;
        let output = Arc::default();
        let stdout = child.stdout.take().map(|pipe| keep(pipe, Arc::clone(&output)));
        let stderr = child.stderr.take().map(|pipe| keep(pipe, Arc::clone(&output)));
        let readers = stdout.into_iter().chain(stderr).collect();
        Ok(Self { name, child, output, readers })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far, on both outputs, line by line.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `condition` gives a value; fails at once when the program ends before.
    pub fn wait_for<T>(
        &mut self,
        bound: Duration,
        mut condition: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, ProcessError> {
        let waited = wait_for(bound, || {
            // Asked in this order: what was true when it ended still counts.
            let ended = self.ended();
            match condition(self) {
                Some(value) => Some(Ok(value)),
                None => ended.map(Err),
            }
        });
        match waited {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(status)) => Err(self.ended_with(status)),
            Err(cause) => Err(self.not_ready(cause)),
        }
    }

    /// Waits until it has printed `text`.
    pub fn wait_for_output(&mut self, bound: Duration, text: &str) -> Result<(), ProcessError> {
        self.wait_for(bound, |process| process.output().contains(text).then_some(()))
    }

    /// Waits until it has ended by itself.
    pub fn wait_for_end(&mut self, bound: Duration) -> Result<ExitStatus, ProcessError> {
        wait_for(bound, || self.ended()).map_err(|cause| self.not_ready(cause))
    }

    /// Sends it a signal, such as [`Signal::TERM`] or [`Signal::HUP`].
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Ends it and what it started, as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        // Looked up first: orphans can no longer be told from strangers. The parent goes first,
        // or it would replace its children. All this fails only for what is gone already.
        let orphans = match self.child.try_wait() {
            Ok(None) => descendants(self.id()).unwrap_or_default(),
            _ => Vec::new(),
        };
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in orphans.into_iter().filter_map(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// How it ended, once its last words have been read too.
    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        // Its own children may still hold the pipes open; then what came by now must do.
        let _ = wait_until(LAST_WORDS, || self.readers.iter().all(JoinHandle::is_finished));
        Some(status)
    }

    fn ended_with(&self, status: ExitStatus) -> ProcessError {
        ProcessError::Ended { name: self.name.clone(), status, output: self.output() }
    }

    fn not_ready(&self, cause: TookTooLong) -> ProcessError {
        ProcessError::NotReady { name: self.name.clone(), cause, output: self.output() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// All processes that process `id` started, directly or through others, and that still run.
pub fn descendants(id: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        let children = fs::read_to_string(task?.path().join("children"))?;
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            found.push(child);
            // It may have ended since; then it has no children either.
            found.extend(descendants(child).unwrap_or_default());
        }
    }
    Ok(found)
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn keep(from: impl Read + Send + 'static, output: Arc<Mutex<String>>) -> JoinHandle<()> {
    // The thread ends with the program, whose end closes the pipe.
    thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() + line.len() <= OUTPUT_MAX {
                kept.push_str(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::PATIENCE;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start(command).unwrap()
    }

    #[test]
    fn a_program_that_ends_early_is_quoted() {
        let mut process = shell("echo no such port >&2; exit 3");
        process.wait_for_output(PATIENCE, "no such port").unwrap();
        let error = process.wait_for_output(PATIENCE, "ready").unwrap_err();
        assert_eq!(error.to_string(), "sh ended with exit status: 3; it said:\nno such port\n");
    }

    #[test]
    fn a_program_that_is_never_ready_is_given_up() {
        let mut process = shell("echo thinking; exec sleep 1000");
        process.wait_for_output(PATIENCE, "thinking").unwrap();
        let error = process.wait_for_output(Duration::from_millis(5), "ready").unwrap_err();
        assert_eq!(error.to_string(), "sh: still not so after 5ms; it said:\nthinking\n");
    }

    #[test]
    fn a_signal_reaches_the_program() {
        let mut process = shell("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");
        process.wait_for_output(PATIENCE, "up").unwrap();
        process.signal(Signal::TERM).unwrap();
        assert!(process.wait_for_end(PATIENCE).unwrap().success());
    }

    fn runs(id: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains("State:") && !status.contains("State:\tZ")
    }

    #[test]
    fn dropping_it_ends_the_program_and_its_children() {
        let mut process = shell("sleep 1000 & echo up; wait");
        process.wait_for_output(PATIENCE, "up").unwrap();
        let mut family = descendants(process.id()).unwrap();
        family.push(process.id());
        assert_eq!(family.iter().filter(|id| runs(**id)).count(), 2);
        drop(process);
        wait_until(PATIENCE, || !family.iter().any(|id| runs(*id))).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Process::start(Command::new("no-such-program")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program could not be started: No such file or directory (os error 2)"
        );
    }
}
