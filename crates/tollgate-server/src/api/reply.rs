//! Answers, good and bad, as HTTP responses.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::Full;
use tollgate_engine::CannotDecide;
use tollgate_http::{
    CorrelationId, correlation_id,
    problem::{self, Problem},
};

/// What is answered when all is well.
pub(crate) struct Reply {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    body: Bytes,
}

impl Reply {
    pub(crate) fn json(body: Vec<u8>) -> Self {
        const JSON: HeaderValue = HeaderValue::from_static("application/json");
        Self { status: StatusCode::OK, content_type: Some(JSON), body: body.into() }
    }

    pub(crate) fn text(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let content_type = Some(HeaderValue::from_static(content_type));
        Self { status: StatusCode::OK, content_type, body: body.into() }
    }

    pub(crate) fn empty() -> Self {
        Self { status: StatusCode::NO_CONTENT, content_type: None, body: Bytes::new() }
    }
}

/// Why there is no such answer.
#[derive(Debug)]
pub(crate) struct Failure {
    problem: Problem<'static>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { problem: Problem::new(status, detail), header: None }
    }

    pub(crate) fn bad(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn no_policy(id: &str) -> Self {
        CannotDecide::UnknownPolicy(shortened(id).into_owned()).into()
    }

    pub(crate) fn wrong_method(allow: &'static str) -> Self {
        let detail = format!("This path is served with {allow}.");
        let header = Some((ALLOW, HeaderValue::from_static(allow)));
        Self { header, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    /// For what may be otherwise in a second.
    pub(crate) fn busy(detail: &'static str) -> Self {
        let header = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        Self { header, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.problem.detail
    }
}

impl From<CannotDecide> for Failure {
    fn from(cause: CannotDecide) -> Self {
        let status = match cause {
            CannotDecide::UnknownPolicy(_) => StatusCode::NOT_FOUND,
            CannotDecide::EmptyKey | CannotDecide::LongKey(_) | CannotDecide::HighCost(_) => {
                StatusCode::BAD_REQUEST
            }
            CannotDecide::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, sentence(&cause.to_string()))
    }
}

/// The text as a sentence of its own.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}

/// As much of a caller's word as helps to find it again: answers do not grow with questions.
pub(crate) fn shortened(word: &str) -> Cow<'_, str> {
    const CHARACTERS_MAX: usize = 80;
    match word.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &word[..end]).into(),
        None => word.into(),
    }
}

/// Puts an answer on its way, with the name it is found by.
pub(crate) fn respond(answer: Result<Reply, Failure>, id: &CorrelationId) -> Response<Full<Bytes>> {
    const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
    let mut response = match answer {
        Ok(reply) => reply.into_response(),
        Err(failure) => failure.into_response(id),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    headers.insert(correlation_id::HEADER, id.header_value());
    response
}

impl Reply {
    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        if let Some(content_type) = self.content_type {
            response.headers_mut().insert(CONTENT_TYPE, content_type);
        }
        response
    }
}

impl Failure {
    fn into_response(self, id: &CorrelationId) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.problem.body(id.as_str())));
        *response.status_mut() = self.problem.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, problem::CONTENT_TYPE);
        headers.extend(self.header);
        response
    }
}
