//! Leaky bucket: a queue of fixed size that drains at a fixed rate.
//!
//! As a meter (a caller without patience) a request passes at once while the queue has room;
//! that is a token bucket seen from below. As a queue (a caller with patience) a request that
//! finds room goes on only when all before it have drained, so that what comes out is evenly
//! spaced. In both uses a full queue refuses the newest.

use std::time::Duration;

use crate::{
    Ask, Patience, Verdict, Wait,
    bucket::{Bucket, Fill},
};

impl Bucket {
    /// Whether a request passes that the queue could hold.
    pub(crate) fn check_queue(&self, start: Fill, brim: Fill, ask: Ask) -> Verdict {
        let Patience::Micros(most) = ask.patience else {
            return self.check_tokens(start, brim, ask);
        };
        let end = self.end(start, ask.cost);
        let turn = self.micros_until_full(start, ask.now);
        if end <= brim && turn <= most {
            let pass = Verdict::pass(self.tokens(end, brim), self.until_full(end, ask.now));
            return Verdict { wait: Duration::from_micros(turn), ..pass };
        }
        // Until there is room, and until the turn is near enough.
        let wait = self.micros_until(end, brim).max(turn.saturating_sub(most));
        let reset = self.until_full(start, ask.now);
        Verdict::refuse(self.tokens(start, brim), Wait::micros(wait), reset)
    }
}
