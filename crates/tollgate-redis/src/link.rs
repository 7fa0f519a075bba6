//! One thread's connections to one server, with their queue.
//!
//! Requests share calls without waiting for company: while fewer than two calls are under way a
//! request goes at once, with whoever asks in the same turn of the runtime; else it gathers with
//! others until one of the two is back. Two and not one, so that the server has the next call at hand
//! when it is done with the last; and each on a connection of its own, because a server that finds
//! both on one answers them together, and then node and server take turns instead of working at once.
//! The second is opened when there is use for it. Only takes that nothing can follow up go by it: a
//! place that is given back must not overtake the request that takes it.
//!
//! A call takes no longer than the time-out of the oldest request in it, connecting included; since
//! every call that ends is followed by the next at once, nobody in the queue waits longer either. A
//! call that was given up may still be answered; the library keeps replies in step, and a connection
//! from before the breaker opened is never used again.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

use crate::{
    ErrorKind,
    base::Base,
    call::Outcome,
    dial::Connection,
    exchange::{self, Answered},
    fault::Fault,
    redirect,
    request::Request,
    server::Server,
};

/// More in one call would keep the server from others for too long: 128 take it about half a
/// millisecond.
const BATCH_MAX: usize = 128;

/// Calls under way at once.
const CALLS_MAX: usize = 2;

/// So many requests are worth two calls.
const DIVIDED_FROM: usize = 16;

/// What a node does in a tenth of a second when it is very busy: whoever comes later would time
/// out anyway.
const WAITING_MAX: usize = 16_384;

/// A connection and who waits for it.
pub(crate) struct Link {
    base: Arc<Base>,
    pub(crate) server: Arc<Server>,
    runtime: Handle,
    queue: Mutex<Queue>,
    lines: [Mutex<Line>; CALLS_MAX],
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// On which lines a call is under way.
    busy: [bool; CALLS_MAX],
    /// Whether a call is about to set out: it takes along what comes until then.
    starting: bool,
}

/// The connection, if there is one.
#[derive(Default)]
enum Line {
    #[default]
    Hung,
    /// Whoever needs it waits for the same attempt, which outlives any of them.
    Dialing(Dialing),
    Live(Live),
}

type Dialing = watch::Receiver<Option<Result<Live, Fault>>>;

/// A connection and the generation of the breaker that it was made in.
#[derive(Clone)]
struct Live {
    connection: Connection,
    generation: u64,
}

/// A request and who waits for its outcome.
pub(crate) struct Waiting {
    /// On the heap, because it is handed on a few times.
    pub(crate) request: Box<Request>,
    /// The slot of the cluster that it goes to; 0 where there are none.
    pub(crate) slot: u16,
    pub(crate) deadline: Instant,
    /// Whether one caller asks it with others, and wants all answers: they are not divided.
    pub(crate) grouped: bool,
    pub(crate) way: Way,
    pub(crate) reply: oneshot::Sender<Result<Outcome, Fault>>,
}

/// How a request came to this server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Way {
    /// How often it was sent elsewhere.
    pub(crate) redirects: u8,
    /// The slot is just moving here: the server wants to be told that we know.
    pub(crate) asking: bool,
    /// The slot is moving: it must not share a call with the keys of others.
    pub(crate) alone: bool,
}

impl Link {
    pub(crate) fn new(base: Arc<Base>, server: Arc<Server>, runtime: Handle) -> Self {
        let (queue, lines) = (Mutex::default(), Default::default());
        Self { base, server, runtime, queue, lines }
    }

    /// Takes requests on; each is answered by its deadline.
    pub(crate) fn submit(self: &Arc<Self>, requests: impl IntoIterator<Item = Waiting>) {
        self.queue.lock().take_on(requests, &self.base);
        self.begin();
    }

    /// Begins a call if one may go.
    fn begin(self: &Arc<Self>) {
        let Some((line, batch)) = self.queue.lock().begun() else { return };
        // Not under the lock: a runtime that is shutting down drops what it is given.
        let link = Arc::clone(self);
        let caller = Caller { link, line, batch, sent: false, started: false };
        self.runtime.spawn(caller.run());
    }

    /// Whether nobody waits and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.queue.lock().busy.contains(&true)
    }

    /// Whether it has a connection that works, as far as is known.
    #[cfg(test)]
    pub(crate) fn is_live(&self) -> bool {
        matches!(&*self.lines[0].lock(), Line::Live(live) if live.is_good(&self.server))
    }

    /// Closes the connections once the calls under way are done.
    pub(crate) fn hang_up(&self) {
        self.lines.iter().for_each(|line| *line.lock() = Line::Hung);
    }

    /// Closes one connection, unless it is being made anew already.
    fn let_go(&self, line: usize) {
        let mut line = self.lines[line].lock();
        if matches!(*line, Line::Live(_)) {
            *line = Line::Hung;
        }
    }

    /// Asks for anything, whatever the breaker says: for probes and heartbeats.
    pub(crate) async fn ask(self: &Arc<Self>, command: &Cmd) -> Result<Value, Fault> {
        let timeout = self.base.timeout();
        let mut live = self.live(0).await?;
        let asked = tokio::time::timeout(timeout, live.connection.ask(command)).await;
        let asked = asked.unwrap_or_else(|_| Err(Fault::timed_out(timeout)));
        if asked.is_err() {
            // A probe must not be fooled by a connection that carries nothing any more.
            self.hang_up();
        }
        asked
    }

    /// The connection, made now if need be.
    async fn live(self: &Arc<Self>, line: usize) -> Result<Live, Fault> {
        let mut dialing = match self.line(line) {
            Ok(live) => return Ok(live),
            Err(dialing) => dialing,
        };
        match dialing.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(dialed)) => dialed.clone(),
            _ => Err(Fault::new(ErrorKind::Connection, "connection lost")),
        }
    }

    /// The connection, or the attempt to get one.
    fn line(self: &Arc<Self>, number: usize) -> Result<Live, Dialing> {
        let mut line = self.lines[number].lock();
        match &*line {
            Line::Live(live) if live.is_good(&self.server) => return Ok(live.clone()),
            Line::Dialing(dialing) if dialing.has_changed().is_ok() => return Err(dialing.clone()),
            _ => {}
        }
        let (done, dialing) = watch::channel(None);
        *line = Line::Dialing(dialing.clone());
        drop(line);
        self.runtime.spawn(Arc::clone(self).dial(number, done));
        Err(dialing)
    }

    async fn dial(self: Arc<Self>, line: usize, done: watch::Sender<Option<Result<Live, Fault>>>) {
        let generation = self.server.breaker.generation();
        let dialed = self.base.connect(&self.server).await;
        let dialed = dialed.map(|connection| Live { connection, generation });
        *self.lines[line].lock() = match &dialed {
            Ok(live) => Line::Live(live.clone()),
            Err(_) => Line::Hung,
        };
        done.send_replace(Some(dialed));
    }
}

impl Live {
    fn is_good(&self, server: &Server) -> bool {
        self.generation == server.breaker.generation() && !self.connection.is_closed()
    }
}

impl Queue {
    /// Queues what there is room for.
    fn take_on(&mut self, requests: impl IntoIterator<Item = Waiting>, base: &Base) {
        for waiting in requests {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(waiting);
                continue;
            }
            base.observer.failed(ErrorKind::Overloaded);
            let text = "too many requests wait for it";
            waiting.answer(Err(Fault::new(ErrorKind::Overloaded, text)));
        }
    }

    /// The line and the first requests of a call that may go now.
    fn begun(&mut self) -> Option<(usize, Vec<Waiting>)> {
        let line = self.busy.iter().position(|busy| !busy).filter(|_| !self.starting)?;
        let mut batch = Vec::new();
        self.fill(line, &mut batch, 1);
        if batch.is_empty() {
            return None;
        }
        (self.busy[line], self.starting) = (true, true);
        Some((line, batch))
    }

    /// Adds what has come since a call was begun. Of many a part is left for the other line and a
    /// part for whichever comes back first: with all of them under way, both lines would be
    /// answered together, and the server would wait for those that were.
    fn top_up(&mut self, line: usize, batch: &mut Vec<Waiting>) {
        self.starting = false;
        let all = self.waiting.len() + batch.len();
        let alone = self.busy.iter().filter(|busy| **busy).count() == 1;
        let parts = if all < DIVIDED_FROM { 1 } else { 2 + usize::from(alone) };
        self.fill(line, batch, all.div_ceil(parts));
    }

    /// Fills a batch up to this many with what may go by this line, and goes on to the end of a group.
    fn fill(&mut self, line: usize, batch: &mut Vec<Waiting>, most: usize) {
        while batch.len() < BATCH_MAX {
            let full = batch.len() >= most;
            let next = self.waiting.pop_front_if(|next| {
                (next.grouped || !full) && (line == 0 || next.request.is_free())
            });
            let Some(next) = next else { return };
            batch.push(next);
        }
    }
}

impl Waiting {
    /// Answers whoever waits, if they still do.
    pub(crate) fn answer(self, outcome: Result<Outcome, Fault>) {
        let _ = self.reply.send(outcome);
    }
}

/// One call.
struct Caller {
    link: Arc<Link>,
    line: usize,
    batch: Vec<Waiting>,
    sent: bool,
    started: bool,
}

impl Caller {
    async fn run(mut self) {
        if !self.started {
            self.started = true;
            self.link.queue.lock().top_up(self.line, &mut self.batch);
            // What was left, if anything.
            self.link.begin();
        }
        let (began, generation) = (Instant::now(), self.link.server.breaker.generation());
        let asked = self.ask_in_time(began).await;
        if asked.as_ref().is_err_and(|failed| failed.fault.kind == ErrorKind::Timeout) {
            // It may carry nothing any more. Others that work would keep the breaker closed, and
            // whoever goes by this one would wait in vain for as long as the system believes in it.
            self.link.let_go(self.line);
        }
        if self.followed() {
            // It sets out before those that are answered now come with their next requests: the
            // server need not wait for them.
            tokio::task::yield_now().await;
        }
        match asked {
            Ok(answered) => self.settle(answered, began, generation),
            Err(fault) => self.fail(&fault, generation),
        }
    }

    /// Gives the line to the next call; false if nobody waits.
    fn followed(&self) -> bool {
        let mut batch = Vec::new();
        let mut queue = self.link.queue.lock();
        queue.fill(self.line, &mut batch, BATCH_MAX);
        queue.busy[self.line] = !batch.is_empty();
        drop(queue);
        if batch.is_empty() {
            return false;
        }
        let (link, line) = (Arc::clone(&self.link), self.line);
        let next = Self { link, line, batch, sent: false, started: true };
        self.link.runtime.spawn(next.run());
        true
    }

    /// What the server says to one batch, by the time that the oldest of it has.
    async fn ask_in_time(&mut self, now: Instant) -> Result<Vec<Answered>, Failed> {
        let link = Arc::clone(&self.link);
        if let Some(fault) = link.server.breaker.refusal() {
            return Err(Failed { fault, counts: false });
        }
        self.drop_late(now);
        let Some(deadline) = self.batch.iter().map(|waiting| waiting.deadline).min() else {
            return Ok(Vec::new());
        };
        let asked = timeout_at(deadline, self.ask()).await;
        let asked = asked.unwrap_or_else(|_| Err(Fault::timed_out(link.base.timeout())));
        asked.map_err(|fault| Failed { fault, counts: true })
    }

    async fn ask(&mut self) -> Result<Vec<Answered>, Fault> {
        let live = self.link.live(self.line).await?;
        self.sent = true;
        exchange::exchange(live.connection, &self.link.base.scripts, &mut self.batch).await
    }

    /// Hands everybody what the server said to them.
    fn settle(&mut self, answered: Vec<Answered>, began: Instant, generation: u64) {
        if self.batch.is_empty() {
            return;
        }
        let (base, server) = (&self.link.base, &self.link.server);
        let decisions = self.batch.iter().filter(|waiting| waiting.request.decides()).count();
        base.observer.round_trip(began.elapsed(), self.batch.len(), decisions);
        let mut batch = self.batch.drain(..);
        for answered in answered {
            let group = batch.by_ref().take(answered.requests);
            match answered.outcomes {
                Ok(outcomes) => {
                    server.breaker.succeed();
                    group.zip(outcomes).for_each(|(waiting, it)| waiting.answer(Ok(it)));
                }
                Err(error) => {
                    let group = group.collect();
                    if let Some((group, fault)) = redirect::elsewhere(base, server, group, error) {
                        base.failed(server, &fault, generation);
                        group.into_iter().for_each(|waiting| waiting.answer(Err(fault.clone())));
                    }
                }
            }
        }
    }

    /// Lets go of those whose time is over: they must not cut short that of the others.
    fn drop_late(&mut self, now: Instant) {
        let timeout = self.link.base.timeout();
        for late in self.batch.extract_if(.., |waiting| waiting.deadline <= now) {
            late.answer(Err(Fault::timed_out(timeout)));
        }
    }

    fn fail(&mut self, Failed { fault, counts }: &Failed, generation: u64) {
        if *counts {
            self.link.base.failed(&self.link.server, fault, generation);
        }
        for waiting in self.batch.drain(..) {
            waiting.answer(Err(fault.clone()));
        }
    }
}

/// A call that brought nothing.
struct Failed {
    fault: Fault,
    /// Whether it was tried at all.
    counts: bool,
}

impl Drop for Caller {
    /// Ordinarily everybody has been answered. If not, the runtime is being shut down: what was not
    /// sent yet, such as places that are freed by the very tasks that end now, goes another way.
    fn drop(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut queue = self.link.queue.lock();
        queue.busy[self.line] = false;
        queue.starting &= self.started;
        let mut left: Vec<_> = queue.waiting.drain(..).collect();
        drop(queue);
        if !self.sent {
            left.append(&mut self.batch);
        }
        if self.link.runtime.id() != self.link.base.background.id() {
            self.link.base.background_lane().submit(left);
        }
    }
}
