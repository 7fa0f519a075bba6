//! The threads that serve: one runtime each, started together and stopped together.
//!
//! Threads are not pinned to cores: the kernel keeps a busy thread where its cache is warm, and
//! a pinned one would wait for its core while others are idle.

use std::{
    io,
    rc::Rc,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime::{Builder, LocalOptions},
    sync::watch,
};

use crate::{
    Serve, Sockets,
    accept::{accept, accept_waiting},
    watch::Roster,
};

/// One thread that serves, seen from inside.
#[derive(Debug)]
pub struct Worker {
    index: usize,
    roster: Rc<Roster>,
    stop: watch::Receiver<Option<Duration>>,
}

impl Worker {
    /// Which of the workers this is, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Accepts connections for `server` on this worker's socket, until the workers are stopped.
    /// A socket that was already taken is left to whoever took it.
    pub fn listen(&self, sockets: &Sockets, server: impl Serve) {
        let Some(socket) = sockets.take(self.index) else { return };
        let listener = match tokio::net::TcpListener::from_std(socket) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(addr = %sockets.local_addr(), %error, "cannot accept connections");
                return;
            }
        };
        let (sockets, roster) = (sockets.clone(), Rc::clone(&self.roster));
        let (server, mut stop) = (Rc::new(server), self.stop.clone());
        tokio::task::spawn_local(async move {
            tokio::select! {
                () = accept(&listener, &sockets, &roster, &server) => {}
                _ = stop.wait_for(Option::is_some) => {}
            }
            accept_waiting(listener, &sockets, &roster, &server);
        });
    }

    /// Waits for the word to stop, then for the connections; returns what became of them.
    async fn run(mut self) -> DrainReport {
        let walk = tokio::task::spawn_local(Rc::clone(&self.roster).walk());
        // An error means that the workers were dropped without a word: stop at once.
        let within = match self.stop.wait_for(Option::is_some).await {
            Ok(within) => within.unwrap_or_default(),
            Err(_) => Duration::ZERO,
        };
        // Lets the accepting tasks end first, so that no connection slips in behind the count.
        tokio::task::yield_now().await;
        let open = self.roster.len();
        self.roster.stop();
        let _ = tokio::time::timeout(within, self.roster.emptied()).await;
        walk.abort();
        let aborted = self.roster.len();
        DrainReport { finished: open.saturating_sub(aborted), aborted }
    }
}

/// The threads that serve, seen from outside.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<DrainReport>>,
    stop: watch::Sender<Option<Duration>>,
}

/// What became of the connections that were open when the workers were stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrainReport {
    /// Ended by themselves in time.
    pub finished: usize,
    /// Cut off when the time was up.
    pub aborted: usize,
}

impl Workers {
    /// Starts `count` threads called `name-0`, `name-1`, …; each runs `set_up` before it
    /// serves, and all have when this returns.
    pub fn start(
        count: usize,
        name: &str,
        set_up: impl Fn(&Worker) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(None);
        let (started, starting) = mpsc::channel();
        let set_up = Arc::new(set_up);
        let mut threads = Vec::with_capacity(count);
        for index in 0..count.max(1) {
            let (set_up, started) = (Arc::clone(&set_up), started.clone());
            let stop = stopped.clone();
            let thread = thread::Builder::new().name(format!("{name}-{index}"));
            threads.push(thread.spawn(move || serve(index, stop, &*set_up, started))?);
        }
        drop(started);
        // Ends when every thread has dropped its end.
        starting.iter().collect::<io::Result<()>>()?;
        Ok(Self { threads, stop })
    }

    /// Stops accepting, lets requests in flight finish for at most `within`, cuts off the rest.
    /// Blocks until that is done.
    pub fn stop(self, within: Duration) -> DrainReport {
        self.stop.send_replace(Some(within));
        let mut total = DrainReport::default();
        for thread in self.threads {
            match thread.join() {
                Ok(report) => {
                    total.finished += report.finished;
                    total.aborted += report.aborted;
                }
                Err(_) => tracing::error!("a worker had panicked before it was stopped"),
            }
        }
        total
    }
}

fn serve(
    index: usize,
    stop: watch::Receiver<Option<Duration>>,
    set_up: &(dyn Fn(&Worker) + Send + Sync),
    started: mpsc::Sender<io::Result<()>>,
) -> DrainReport {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            // The receiver only goes away once it has heard of a failure.
            let _ = started.send(Err(error));
            return DrainReport::default();
        }
    };
    runtime.block_on(async {
        let worker = Worker { index, roster: Roster::new(), stop };
        set_up(&worker);
        let _ = started.send(Ok(()));
        drop(started);
        worker.run().await
    })
}
