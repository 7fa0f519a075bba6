//! What came of a request.

use smallvec::SmallVec;
use tollgate_core::{COST_MAX, Decision};
use tollgate_store::StoreError;

use crate::{engine::KEY_BYTES_MAX, lease::Held};

/// The answer to one request.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it may go on.
    pub allowed: bool,
    /// The limit to show; none where no limit applies.
    pub shown: Option<Shown>,
    /// Policies in dry run that would have refused.
    pub dry_run: SmallVec<[usize; 2]>,
    /// Places held while the request is in flight; dropping it frees them. Boxed, because few
    /// requests hold any and all would carry its size.
    pub held: Option<Box<Held>>,
}

/// One limit and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The policy, as a place in the rule set.
    pub policy: usize,
    /// The limit, as a place in the policy.
    pub limit: usize,
    /// What it says.
    pub decision: Decision,
}

impl Outcome {
    /// Nothing limits this request.
    pub(crate) fn unlimited() -> Self {
        Self { allowed: true, shown: None, dry_run: SmallVec::new(), held: None }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotDecide {
    /// No policy has this name.
    #[error("there is no policy {0:?}")]
    UnknownPolicy(String),
    /// A key that names nobody.
    #[error("the key is empty: name whom to count")]
    EmptyKey,
    /// A key longer than anybody's name.
    #[error("the key has {0} bytes: at most {KEY_BYTES_MAX}")]
    LongKey(usize),
    /// A cost that cannot be counted exactly.
    #[error("the cost is {0}: at most {COST_MAX}")]
    HighCost(u64),
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}
