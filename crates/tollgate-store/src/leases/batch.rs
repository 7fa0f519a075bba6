//! Many requests at once: some decided here, some drawn for, the rest asked in one step.

use std::{pin::Pin, task::Poll};

use tollgate_core::Decision;

use crate::{Answer, Store, StoreError, Take};

/// A batch under way.
pub(super) struct Batch<'a> {
    decisions: Vec<Option<Decision>>,
    /// Those that only the store decides, and their places.
    alone: Vec<Take<'a>>,
    places: Vec<usize>,
    waiting: Vec<(usize, Answer<'a, Decision>)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(count: usize) -> Self {
        let (alone, places, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Self { decisions: vec![None; count], alone, places, waiting }
    }

    pub(super) fn decided(&mut self, at: usize, decision: Decision) {
        self.decisions[at] = Some(decision);
    }

    pub(super) fn alone(&mut self, at: usize, take: Take<'a>) {
        self.alone.push(take);
        self.places.push(at);
    }

    pub(super) fn waiting(&mut self, at: usize, answer: Answer<'a, Decision>) {
        self.waiting.push((at, answer));
    }

    /// All decisions, in order: at once where all are there.
    pub(super) fn answer(self, store: &'a impl Store) -> Answer<'a, Vec<Decision>> {
        if self.alone.is_empty() && self.waiting.is_empty() {
            return Answer::ready(self.decisions.into_iter().flatten().collect());
        }
        Answer::Waiting(Box::pin(self.wait(store)))
    }

    async fn wait(self, store: &impl Store) -> Result<Vec<Decision>, StoreError> {
        let Self { mut decisions, alone, places, mut waiting } = self;
        let mut rest = (!alone.is_empty()).then(|| store.take_each(&alone));
        std::future::poll_fn(|context| {
            if let Some(answer) = &mut rest
                && let Poll::Ready(rest_decided) = Pin::new(answer).poll(context)
            {
                for (at, decision) in places.iter().zip(rest_decided?) {
                    decisions[*at] = Some(decision);
                }
                rest = None;
            }
            let mut failed = None;
            waiting.retain_mut(|(at, answer)| match Pin::new(answer).poll(context) {
                Poll::Ready(Ok(decision)) => {
                    decisions[*at] = Some(decision);
                    false
                }
                Poll::Ready(Err(error)) => {
                    failed = Some(error);
                    false
                }
                Poll::Pending => true,
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if rest.is_none() && waiting.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await?;
        let count = decisions.len();
        let decisions: Vec<_> = decisions.into_iter().flatten().collect();
        match decisions.len() == count {
            true => Ok(decisions),
            false => Err(StoreError::Unavailable("it answered only a part of a batch".to_owned())),
        }
    }
}
