//! How a connection learns that its time is up or that its worker is stopping.
//!
//! Nearly every deadline of a connection is moved long before it passes, so setting one must
//! cost next to nothing: here it is one store. In return one task per worker walks over all
//! connections every [`TICK`] and wakes those that are late. A deadline is therefore never
//! early, and late by two ticks at most.

use std::{
    cell::RefCell,
    pin::pin,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Poll, Waker},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// A walk over ten thousand connections takes some 50 µs; twenty a second cannot be measured.
pub(crate) const TICK: Duration = Duration::from_millis(50);

const TICKS_A_SECOND: u64 = 20;
const _: () = assert!(TICK.as_millis() * (TICKS_A_SECOND as u128) == 1_000);

/// No deadline.
const NEVER: u64 = u64::MAX;

/// The time that was set with [`Watch::set`] has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// One connection's view of the time, and of its worker's wish to stop.
#[derive(Debug)]
pub struct Watch {
    entry: Arc<Entry>,
    worker: Arc<Shared>,
}

/// What the connection and the walk both see. Atomics only because hyper wants its timers to be
/// `Send`; all of it happens on one thread.
#[derive(Debug)]
struct Entry {
    deadline: AtomicU64,
    place: AtomicUsize,
    waker: OnceLock<Waker>,
}

#[derive(Debug, Default)]
struct Shared {
    now: AtomicU64,
    stopping: AtomicBool,
}

impl Watch {
    /// From now on the connection has this long; replaces any earlier deadline.
    pub fn set(&self, after: Duration) {
        // One tick more, since `now` may already be a tick old.
        let ticks = ticks(after).saturating_add(1);
        self.entry.deadline.store(self.worker.now.load(Relaxed).saturating_add(ticks), Relaxed);
    }

    /// There is no deadline any more.
    pub fn clear(&self) {
        self.entry.deadline.store(NEVER, Relaxed);
    }

    /// Whether the deadline has passed.
    pub fn is_late(&self) -> bool {
        self.entry.deadline.load(Relaxed) <= self.worker.now.load(Relaxed)
    }

    /// Whether the worker is stopping: finish what has begun, begin nothing new.
    pub fn is_stopping(&self) -> bool {
        self.worker.stopping.load(Relaxed)
    }

    /// Waits for `work`, but not longer than the deadline.
    pub async fn bound<F: Future>(&self, work: F) -> Result<F::Output, Elapsed> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if self.is_late() => Poll::Ready(Err(Elapsed)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// A second handle on the same deadline, for a timer inside the connection.
    pub(crate) fn again(&self) -> Self {
        Self { entry: Arc::clone(&self.entry), worker: Arc::clone(&self.worker) }
    }

    /// Tells the walk which task to wake. The task of a connection stays the same to its end.
    pub(crate) async fn enlist(&self) {
        std::future::poll_fn(|cx| {
            self.entry.waker.get_or_init(|| cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }
}

/// Rounded up. Seconds apart from their parts, since a division of 128 bits would be the dearest
/// part of setting a deadline.
fn ticks(duration: Duration) -> u64 {
    let parts = duration.subsec_nanos().div_ceil(TICK.subsec_nanos());
    duration.as_secs().saturating_mul(TICKS_A_SECOND).saturating_add(u64::from(parts))
}

/// All connections of one worker.
#[derive(Debug)]
pub(crate) struct Roster {
    entries: RefCell<Vec<Arc<Entry>>>,
    shared: Arc<Shared>,
    start: Instant,
    changed: Notify,
}

impl Roster {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            entries: RefCell::default(),
            shared: Arc::default(),
            start: Instant::now(),
            changed: Notify::new(),
        })
    }

    /// Takes a connection in, for as long as the guard lives.
    pub(crate) fn enter(self: &Rc<Self>) -> (Watch, Membership) {
        let mut entries = self.entries.borrow_mut();
        if entries.is_empty() {
            // The walk was asleep, and so was its clock.
            self.tick();
            self.changed.notify_waiters();
        }
        let entry = Arc::new(Entry {
            deadline: AtomicU64::new(NEVER),
            place: AtomicUsize::new(entries.len()),
            waker: OnceLock::new(),
        });
        entries.push(Arc::clone(&entry));
        let watch = Watch { entry: Arc::clone(&entry), worker: Arc::clone(&self.shared) };
        (watch, Membership { roster: Rc::clone(self), entry })
    }

    /// How many connections are open.
    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Tells every connection to finish.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Relaxed);
        for entry in self.entries.borrow().iter() {
            wake(entry);
        }
    }

    /// Waits until no connection is left.
    pub(crate) async fn emptied(&self) {
        while self.len() > 0 {
            self.changed.notified().await;
        }
    }

    /// Wakes late connections, for ever. Sleeps while there are none, so that an idle process
    /// is idle.
    pub(crate) async fn walk(self: Rc<Self>) {
        loop {
            if self.len() == 0 {
                self.changed.notified().await;
                continue;
            }
            tokio::time::sleep(TICK).await;
            let now = self.tick();
            for entry in self.entries.borrow().iter() {
                if entry.deadline.load(Relaxed) <= now {
                    wake(entry);
                }
            }
        }
    }

    fn tick(&self) -> u64 {
        // Rounded down, so that time never seems to have passed before it has.
        let elapsed = self.start.elapsed().as_nanos() / TICK.as_nanos();
        let now = u64::try_from(elapsed).unwrap_or(NEVER - 1);
        self.shared.now.store(now, Relaxed);
        now
    }

    fn leave(&self, place: usize) {
        let mut entries = self.entries.borrow_mut();
        entries.swap_remove(place);
        if let Some(moved) = entries.get(place) {
            moved.place.store(place, Relaxed);
        }
        if entries.is_empty() {
            self.changed.notify_waiters();
        }
    }
}

fn wake(entry: &Entry) {
    if let Some(waker) = entry.waker.get() {
        waker.wake_by_ref();
    }
}

/// A connection's place among the others; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Membership {
    roster: Rc<Roster>,
    entry: Arc<Entry>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.roster.leave(self.entry.place.load(Relaxed));
    }
}
