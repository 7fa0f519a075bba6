//! An answer that is either there already or still on its way.
//!
//! The memory store answers without waiting, so a decision on it must not cost an allocation for
//! a future; a store across a network has to wait. One type serves both behind one trait object.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::StoreError;

/// What a store returns: await it.
pub enum Answer<'a, T> {
    /// Known already. Empty once it was taken out.
    Ready(Option<Result<T, StoreError>>),
    /// On its way.
    Waiting(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<'a, T> Answer<'a, T> {
    /// An answer that is there.
    pub const fn ready(value: T) -> Self {
        Self::Ready(Some(Ok(value)))
    }

    /// The same with something done on its arrival: at once and without an allocation where it is
    /// there already.
    pub(crate) fn then<U>(
        self,
        arrived: impl FnOnce(Result<T, StoreError>) -> Result<U, StoreError> + Send + 'a,
    ) -> Answer<'a, U>
    where
        T: 'a,
    {
        match self {
            Self::Ready(answer) => Answer::Ready(answer.map(arrived)),
            Self::Waiting(answer) => Answer::Waiting(Box::pin(async { arrived(answer.await) })),
        }
    }
}

impl<T: Unpin> Future for Answer<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            },
            Self::Waiting(future) => future.as_mut().poll(context),
        }
    }
}
