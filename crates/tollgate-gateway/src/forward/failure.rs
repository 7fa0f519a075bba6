//! Why a request got no answer from its upstream, and what the client is told.

use std::io;

use http::StatusCode;

use super::unreachable;
use crate::{
    h1::{chunked::ChunkError, response::BadAnswer},
    wire::pump::PumpError,
};

/// Why there is no answer to pass on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the client left")]
    ClientLeft,
    #[error("the client stopped sending")]
    ClientSilent,
    #[error("the request's body is larger than allowed")]
    TooLarge,
    #[error("the request's chunks are malformed: {0}")]
    BadChunk(ChunkError),
    #[error("of {tried} upstreams none can be reached: {cause}")]
    Unreachable { tried: usize, cause: io::Error },
    #[error("there is no upstream")]
    NoUpstream,
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("the connection was closed without an answer")]
    Closed,
    #[error("the connection was closed in the middle of the answer's head")]
    CutHead,
    #[error("the answer's head is too large")]
    LargeHead,
    #[error("the answer is malformed: {0}")]
    BadAnswer(#[from] BadAnswer),
    #[error("the answer's body is malformed: {0:?}")]
    BadBody(PumpError),
    #[error("there is no answer in time")]
    NoAnswer,
}

impl From<PumpError> for Failure {
    fn from(error: PumpError) -> Self {
        match error {
            PumpError::Cut => Self::ClientLeft,
            PumpError::Chunk(error) => Self::BadChunk(error),
            PumpError::TooLarge => Self::TooLarge,
            PumpError::To(error) => Self::Broken(error),
        }
    }
}

impl Failure {
    /// What the client is told; nothing if it has left.
    pub(crate) fn answer(&self) -> Option<(StatusCode, &'static str)> {
        let answer = match self {
            Self::ClientLeft => return None,
            Self::ClientSilent => {
                (StatusCode::REQUEST_TIMEOUT, "The request's body did not arrive in time.")
            }
            Self::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "The request's body is larger than allowed.")
            }
            Self::BadChunk(_) => (StatusCode::BAD_REQUEST, "The request's chunks are malformed."),
            Self::Unreachable { tried, .. } => match unreachable(*tried) {
                status @ StatusCode::BAD_GATEWAY => (status, "The upstream cannot be reached."),
                status => (status, "None of the upstreams can be reached."),
            },
            Self::NoUpstream => (StatusCode::SERVICE_UNAVAILABLE, "The route has no upstream."),
            Self::Broken(_) | Self::Closed | Self::CutHead => {
                (StatusCode::BAD_GATEWAY, "The upstream closed the connection without an answer.")
            }
            Self::LargeHead | Self::BadAnswer(_) | Self::BadBody(_) => {
                (StatusCode::BAD_GATEWAY, "The upstream's answer is malformed.")
            }
            Self::NoAnswer => (StatusCode::GATEWAY_TIMEOUT, "The upstream did not answer in time."),
        };
        Some(answer)
    }

    /// Whether a kept connection may just have been closed before the request reached it.
    pub(crate) fn was_stale(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Closed)
    }

    /// Whether it is the upstream that fails, not the client.
    pub(crate) fn is_upstreams(&self) -> bool {
        !matches!(self, Self::ClientLeft | Self::ClientSilent | Self::TooLarge | Self::BadChunk(_))
    }

    /// Whether the client's connection is left in the middle of a body.
    pub(crate) fn is_mid_body(&self) -> bool {
        matches!(self, Self::ClientSilent | Self::TooLarge | Self::BadChunk(_))
    }
}
