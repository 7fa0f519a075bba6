//! What a node holds, and what became of all it ever drew.

/// What a node holds, and what became of all it ever drew. Counted in tokens, unless it says
/// otherwise; `drawn` is always the sum of `spent`, `held`, `returned` and `lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseStats {
    /// Keys that are watched.
    pub keys: usize,
    /// Keys of which something is held.
    pub slices: usize,
    /// Held, and not yet spent.
    pub held: u64,
    /// Ever taken ahead.
    pub drawn: u64,
    /// Spent by this node's own decisions.
    pub spent: u64,
    /// Given back.
    pub returned: u64,
    /// Neither spent nor given back: expired, or given up because the store did not answer.
    pub lost: u64,
    /// Decisions made without asking the store; a count of requests.
    pub decided: u64,
    /// How often the store was asked for a slice; a count of requests.
    pub draws: u64,
}

/// The books of one shard. What is held is counted where it lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ledger {
    pub(super) drawn: u64,
    pub(super) spent: u64,
    pub(super) returned: u64,
    pub(super) lost: u64,
    pub(super) decided: u64,
    pub(super) draws: u64,
    /// On its way to the store, to be counted in or given back.
    pub(super) flying: u64,
}

impl LeaseStats {
    pub(super) fn add(&mut self, ledger: &Ledger) {
        self.held += ledger.flying;
        self.drawn += ledger.drawn;
        self.spent += ledger.spent;
        self.returned += ledger.returned;
        self.lost += ledger.lost;
        self.decided += ledger.decided;
        self.draws += ledger.draws;
    }
}
