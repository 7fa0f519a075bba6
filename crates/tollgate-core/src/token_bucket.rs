//! Token bucket: tokens flow in at a rate up to a burst, a request takes some out.
//!
//! A caller with patience waits until what is missing has flown in.

use crate::{
    Ask, Patience, Verdict, Wait,
    bucket::{Bucket, Fill},
};

impl Bucket {
    /// Whether a request passes that the bucket could hold.
    pub(crate) fn check_tokens(&self, start: Fill, brim: Fill, ask: Ask) -> Verdict {
        let end = self.end(start, ask.cost);
        if end <= brim {
            return Verdict::pass(self.tokens(end, brim), self.until_full(end, ask.now));
        }
        let wait = self.micros_until(end, brim);
        match ask.patience {
            Patience::Micros(most) if wait <= most => {
                Verdict::pass_after(wait, self.until_full(end, ask.now))
            }
            _ => {
                let reset = self.until_full(start, ask.now);
                Verdict::refuse(self.tokens(start, brim), Wait::micros(wait), reset)
            }
        }
    }
}
