//! Answers that are ours: problem documents, refusals by a limit, the echo.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tollgate_core::Decision;
use tollgate_http::{
    cors,
    problem::{self, Problem},
};
use tollgate_listen::Watch;

use crate::{
    client::{After, Client},
    gateway::Gateway,
    h1::{name::Name, request::Request},
    story::Story,
    table::Prepared,
};

/// An answer of ours.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// A problem in its usual words.
    pub(crate) fn problem(status: StatusCode, id: &str) -> Self {
        Self::of(&Problem::of(status), id)
    }

    /// A problem in words of its own.
    pub(crate) fn detailed(
        status: StatusCode,
        detail: impl Into<Cow<'static, str>>,
        id: &str,
    ) -> Self {
        Self::of(&Problem::new(status, detail), id)
    }

    fn of(problem: &Problem<'_>, id: &str) -> Self {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, problem::CONTENT_TYPE)]);
        Self { status: problem.status, headers, body: problem.body(id) }
    }

    /// The path is served, but with these methods only.
    pub(crate) fn wrong_method(allowed: &[Method], id: &str) -> Self {
        let mut reply = Self::problem(StatusCode::METHOD_NOT_ALLOWED, id);
        let allowed: Vec<_> = allowed.iter().map(Method::as_str).collect();
        if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
            reply.headers.insert(header::ALLOW, allowed);
        }
        reply
    }

    /// A limit has refused.
    pub(crate) fn limited(
        prepared: &Prepared,
        decision: &Decision,
        request: &Request,
        id: &str,
    ) -> Self {
        let mut reply = if is_grpc(request) {
            grpc_exhausted(decision)
        } else {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, problem::CONTENT_TYPE)]);
            let body = prepared.quota.body(decision, id);
            Self { status: StatusCode::TOO_MANY_REQUESTS, headers, body }
        };
        prepared.headers.write(decision, &mut reply.headers);
        reply
    }

    /// What `body` says, as JSON.
    pub(crate) fn json(body: impl Into<Bytes>) -> Self {
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
        Self { status: StatusCode::OK, headers, body: body.into() }
    }

    /// Adds what a limit says.
    pub(crate) fn with_limit(mut self, shown: Option<(&Prepared, &Decision)>) -> Self {
        if let Some((prepared, decision)) = shown {
            prepared.headers.write(decision, &mut self.headers);
        }
        self
    }

    /// Sends the answer to a request, whose body may still be on its way.
    pub(crate) async fn send(
        mut self,
        gateway: &Gateway,
        client: &mut Client,
        watch: &Watch,
        story: &mut Story,
    ) -> After {
        if let Some(origin) = client.request.known(Name::Origin) {
            self.let_scripts_read(origin);
        }
        let is_whole = client.skip_body();
        let keep = is_whole && client.request.keep_alive && !watch.is_stopping();
        story.answered(self.status.as_u16());
        let has_body = client.request.method() != Method::HEAD;
        story.bytes = if has_body { self.body.len() as u64 } else { 0 };
        self.push(gateway, client, keep, story);
        match (client.flush(gateway, watch).await, keep) {
            (true, true) => After::Keep,
            (true, false) if is_whole && client.input.unread().is_empty() => After::Close,
            (true, false) => After::Linger,
            (false, _) => After::Close,
        }
    }

    fn let_scripts_read(&mut self, origin: &[u8]) {
        let Ok(origin) = HeaderValue::from_bytes(origin) else { return };
        let request = HeaderMap::from_iter([(header::ORIGIN, origin)]);
        cors::let_scripts_read(&request, &mut self.headers);
    }

    fn push(&self, gateway: &Gateway, client: &mut Client, keep: bool, story: &Story) {
        let Client { output, request, .. } = client;
        let out = output.buffer(&gateway.buffers);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(self.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.status.canonical_reason().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        push_map(out, &self.headers);
        push_line(out, b"x-correlation-id", story.id(request).as_bytes());
        let length = itoa::Buffer::new().format(self.body.len()).as_bytes().to_owned();
        push_line(out, b"content-length", &length);
        gateway.date.push(gateway.context.clock.now(), out);
        push_connection(out, keep, request.is_old);
        out.extend_from_slice(b"\r\n");
        if request.method() != Method::HEAD {
            out.extend_from_slice(&self.body);
        }
    }
}

/// Appends a header line.
pub(crate) fn push_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends every line of a map.
pub(crate) fn push_map(out: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        push_line(out, name.as_str().as_bytes(), value.as_bytes());
    }
}

/// Says what becomes of the connection, where that is not what the version implies.
pub(crate) fn push_connection(out: &mut Vec<u8>, keep: bool, is_old: bool) {
    if !keep {
        out.extend_from_slice(b"connection: close\r\n");
    } else if is_old {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
}

fn is_grpc(request: &Request) -> bool {
    request.known(Name::ContentType).is_some_and(|kind| {
        let grpc = b"application/grpc";
        kind.len() >= grpc.len() && kind[..grpc.len()].eq_ignore_ascii_case(grpc)
    })
}

/// A gRPC client looks for its status beside a 200; of any other HTTP status it makes an error of
/// its own choosing, and most then retry at once.
fn grpc_exhausted(decision: &Decision) -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("8"));
    headers.insert("grpc-message", HeaderValue::from_static("Rate limit exceeded."));
    // A negative push-back tells the client not to retry at all.
    let pushback = decision
        .retry_after
        .duration()
        .map_or(-1, |wait| i64::try_from(wait.as_micros().div_ceil(1_000)).unwrap_or(i64::MAX));
    headers.insert("grpc-retry-pushback-ms", HeaderValue::from(pushback));
    Reply { status: StatusCode::OK, headers, body: Bytes::new() }
}
