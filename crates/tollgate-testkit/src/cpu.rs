//! How much processor time a program used, and on which core it runs.
//!
//! The figure is the scheduler's own (`/proc/PID/task/*/schedstat`, in nanoseconds), summed over
//! all threads and child processes: `utime` and `stime` count in hundredths of a second, which is
//! too coarse for runs of a second. Threads that have ended are not in it, so the programs
//! measured must keep theirs.

use std::{fs, io, path::Path, process::Command, time::Duration};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::process::descendants;

/// One processor core, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core(pub usize);

impl Core {
    /// Keeps the current thread on this core.
    pub fn pin_current_thread(self) -> io::Result<()> {
        let mut cores = CpuSet::new();
        cores.set(self.0);
        Ok(sched_setaffinity(None, &cores)?)
    }

    /// The same command, kept on this core with all it starts.
    pub fn pin(self, command: &Command) -> Command {
        let mut pinned = Command::new("taskset");
        pinned.arg("-c").arg(self.0.to_string()).arg(command.get_program());
        pinned.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => pinned.env(name, value),
                None => pinned.env_remove(name),
            };
        }
        pinned
    }
}

/// The processor time that process `id`, its threads and its children have used so far.
pub fn cpu_time(id: u32) -> io::Result<Duration> {
    let children = descendants(id)?.into_iter().map(cpu_time_alone);
    children.chain([cpu_time_alone(id)]).sum()
}

/// The same without its children.
pub fn cpu_time_alone(id: u32) -> io::Result<Duration> {
    fs::read_dir(format!("/proc/{id}/task"))?.map(|task| on_cpu(&task?.path())).sum()
}

/// How long the current thread has waited, ready to run, for a core that others had.
pub fn waited_for_core() -> io::Result<Duration> {
    schedstat(Path::new("/proc/thread-self"), 1)
}

/// How long the threads of process `id` have waited so, all together.
pub fn waited_for_cores(id: u32) -> io::Result<Duration> {
    fs::read_dir(format!("/proc/{id}/task"))?.map(|task| schedstat(&task?.path(), 1)).sum()
}

/// The bytes of memory that process `id` holds right now.
pub fn resident_bytes(id: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.parse::<u64>().ok());
    kibibytes.map(|number| number * 1024).ok_or_else(|| unreadable("VmRSS"))
}

fn on_cpu(task: &Path) -> io::Result<Duration> {
    schedstat(task, 0)
}

fn schedstat(task: &Path, field: usize) -> io::Result<Duration> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let nanos = text.split_whitespace().nth(field).and_then(|word| word.parse().ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| unreadable("schedstat"))
}

fn unreadable(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no number in {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{process::Process, wait::PATIENCE};

    fn busy_shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start(Core(0).pin(&command)).unwrap()
    }

    #[test]
    fn a_busy_child_of_the_program_is_counted() {
        let mut process = busy_shell("sh -c 'while :; do :; done' & wait");
        let bound = Duration::from_millis(50);
        process
            .wait_for(PATIENCE, |process| (cpu_time(process.id()).ok()? > bound).then_some(()))
            .unwrap();
    }

    #[test]
    fn a_pinned_program_stays_on_its_core() {
        let mut process = busy_shell("grep Cpus_allowed_list /proc/self/status; exec sleep 1000");
        process.wait_for_output(PATIENCE, "Cpus_allowed_list:\t0\n").unwrap();
    }

    #[test]
    fn waiting_for_a_core_only_grows() {
        let before = waited_for_core().unwrap();
        assert!(waited_for_core().unwrap() >= before);
        let before = waited_for_cores(std::process::id()).unwrap();
        assert!(waited_for_cores(std::process::id()).unwrap() >= before);
    }

    #[test]
    fn memory_is_counted_in_bytes() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
    }

    #[test]
    fn a_program_that_is_gone_is_an_error() {
        assert!(cpu_time(u32::MAX).is_err());
        assert!(resident_bytes(u32::MAX).is_err());
    }
}
