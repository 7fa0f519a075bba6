//! The states that do not fit into a slot, each at a place that its slot knows.

use tollgate_core::{Fill, State};

/// States and the places between them that are free.
#[derive(Default)]
pub(super) struct List {
    states: Vec<State>,
    free: Vec<u32>,
    /// Bytes that the states hold elsewhere.
    heap_bytes: usize,
}

impl List {
    /// Puts a state at a free place and says which.
    pub(super) fn add(&mut self, state: State) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            if self.states.len() == self.states.capacity() {
                self.states.reserve_exact(growth(self.states.len()));
            }
            self.states.push(EMPTY);
            u32::try_from(self.states.len() - 1).expect("a shard holds far fewer than 2^32 keys")
        });
        self.put(place, state);
        place
    }

    /// Puts a state back to its place.
    pub(super) fn put(&mut self, place: u32, state: State) {
        self.heap_bytes += heap_bytes(&state);
        self.states[place as usize] = state;
    }

    /// Takes a state out; its place stays taken.
    pub(super) fn lift(&mut self, place: u32) -> State {
        let state = std::mem::replace(&mut self.states[place as usize], EMPTY);
        self.heap_bytes -= heap_bytes(&state);
        state
    }

    /// Gives a place up, with whatever is there.
    pub(super) fn remove(&mut self, place: u32) {
        self.lift(place);
        self.free.push(place);
    }

    /// The state at a place.
    pub(super) fn get(&self, place: u32) -> &State {
        &self.states[place as usize]
    }

    pub(super) const fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    pub(super) const fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>() + self.heap_bytes
    }

    /// What [`List::bytes`] would be with one more.
    pub(super) const fn bytes_with_one_more(&self) -> usize {
        let full = self.free.is_empty() && self.states.len() == self.states.capacity();
        let grown = if full { growth(self.states.len()) * size_of::<State>() } else { 0 };
        self.bytes() + grown
    }

    /// Whether moving the states together would free most of the list.
    pub(super) const fn is_sparse(&self) -> bool {
        self.free.len() * 4 > self.states.len() * 3
    }

    /// Moves the states together; every place that is held changes.
    pub(super) fn compact<'a>(&mut self, places: impl Iterator<Item = &'a mut u32>) {
        let mut together = Vec::with_capacity(self.states.len() - self.free.len());
        for place in places {
            together.push(std::mem::replace(&mut self.states[*place as usize], EMPTY));
            *place = u32::try_from(together.len() - 1).expect("fewer than before, which fitted");
        }
        self.states = together;
        self.free = Vec::new();
    }
}

/// Stands where nothing is.
const EMPTY: State = State::Fill(Fill { micros: 0, part: 0 });

/// By how many states the list grows.
const fn growth(len: usize) -> usize {
    len / 4 + 4
}

fn heap_bytes(state: &State) -> usize {
    match state {
        State::Log(log) => log.heap_bytes(),
        State::Leases(leases) => leases.heap_bytes(),
        _ => 0,
    }
}
