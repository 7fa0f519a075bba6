//! Who waits for its turn, and what happens when somebody leaves the queue.
//!
//! A place in the future is taken in the store at once, so its time is known and later callers
//! stand behind it. When somebody leaves, all behind it move up by one place and the last place
//! goes back to the store: only the newest can be returned without two callers ending up at the
//! same time. Where costs differ places cannot be exchanged; then the place is given up.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Whose queue: a policy and a key.
pub(crate) type Whose = (Box<str>, Box<[u8]>);

/// All queues of an engine. An empty one is not kept. Clones are the same queues.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queues {
    waiting: Arc<Mutex<HashMap<Whose, Vec<Place>>>>,
}

#[derive(Debug)]
struct Place {
    cost: u64,
    slot: Arc<Slot>,
}

/// What a waiting caller looks at itself. If it had to look for its place in the queue, everybody
/// behind somebody who leaves would search all of it: thousands of them for whole seconds.
#[derive(Debug)]
struct Slot {
    turn: Mutex<Instant>,
    moved_up: Notify,
}

impl Slot {
    fn turn(&self) -> Instant {
        *self.turn.lock()
    }
}

impl Queues {
    /// Waits for the turn that comes `after` from now. Returns how long it was; if the future is
    /// dropped before, `give_back` is called once there is a place to return.
    pub(crate) async fn wait(
        &self,
        whose: Whose,
        cost: u64,
        after: Duration,
        give_back: impl FnOnce(),
    ) -> Duration {
        let start = Instant::now();
        let ticket = self.join(whose, cost, start + after, give_back);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(ticket.slot.turn()) => break,
                () = ticket.slot.moved_up.notified() => {}
            }
        }
        ticket.done();
        start.elapsed()
    }

    /// Gives up a turn that would have come `after` from now, as if it had been waited for.
    pub(crate) fn leave(&self, whose: Whose, cost: u64, after: Duration, give_back: impl FnOnce()) {
        drop(self.join(whose, cost, Instant::now() + after, give_back));
    }

    fn join<F: FnOnce()>(
        &self,
        whose: Whose,
        cost: u64,
        turn: Instant,
        give_back: F,
    ) -> Ticket<'_, F> {
        let slot = Arc::new(Slot { turn: Mutex::new(turn), moved_up: Notify::new() });
        let mut waiting = self.waiting.lock();
        let queue = waiting.entry(whose.clone()).or_default();
        let behind = queue.partition_point(|place| place.slot.turn() <= turn);
        queue.insert(behind, Place { cost, slot: slot.clone() });
        Ticket { queues: self, whose, slot, give_back: Some(give_back) }
    }
}

/// One caller's place in a queue.
struct Ticket<'a, F: FnOnce()> {
    queues: &'a Queues,
    whose: Whose,
    slot: Arc<Slot>,
    give_back: Option<F>,
}

impl<F: FnOnce()> Ticket<'_, F> {
    /// The turn has come: nothing goes back.
    fn done(mut self) {
        self.give_back = None;
    }

    /// Leaves the queue; true if a place is left over at its end.
    fn leave(&self, move_up: bool) -> bool {
        let mut waiting = self.queues.waiting.lock();
        let Some(queue) = waiting.get_mut(&self.whose) else { return false };
        let Some(at) = queue.iter().position(|place| Arc::ptr_eq(&place.slot, &self.slot)) else {
            return false;
        };
        let alike = queue[at..].iter().all(|place| place.cost == queue[at].cost);
        let mut free = queue.remove(at).slot.turn();
        if move_up && alike {
            for place in &queue[at..] {
                std::mem::swap(&mut *place.slot.turn.lock(), &mut free);
                place.slot.moved_up.notify_one();
            }
        }
        if queue.is_empty() {
            waiting.remove(&self.whose);
        }
        alike
    }
}

impl<F: FnOnce()> Drop for Ticket<'_, F> {
    fn drop(&mut self) {
        let give_back = self.give_back.take();
        let left_over = self.leave(give_back.is_some());
        if let Some(give_back) = give_back.filter(|_| left_over) {
            give_back();
        }
    }
}
