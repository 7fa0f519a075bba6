//! Answers that are ours: problem documents, refusals by a limit, the echo.
//!
//! They are written into buffers of the worker, so that a refusal under attack allocates nothing.

use std::borrow::Cow;

use http::{Method, StatusCode};
use tollgate_core::Decision;
use tollgate_http::{cors, problem::Problem};
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
    /// Header lines, each with its line break.
    lines: Vec<u8>,
    body: Vec<u8>,
}

const PROBLEM: &[u8] = b"Content-Type: application/problem+json\r\n";

impl Reply {
    fn new(gateway: &Gateway, status: StatusCode, content_type: &[u8]) -> Self {
        let mut lines = gateway.buffers.take();
        lines.extend_from_slice(content_type);
        Self { status, lines, body: gateway.buffers.take() }
    }

    /// A problem in its usual words.
    pub(crate) fn problem(gateway: &Gateway, status: StatusCode, story: &Story) -> Self {
        Self::of(gateway, &Problem::of(status), story)
    }

    /// A problem in words of its own.
    pub(crate) fn detailed(
        gateway: &Gateway,
        status: StatusCode,
        detail: impl Into<Cow<'static, str>>,
        story: &Story,
    ) -> Self {
        Self::of(gateway, &Problem::new(status, detail), story)
    }

    fn of(gateway: &Gateway, problem: &Problem<'_>, story: &Story) -> Self {
        let mut reply = Self::new(gateway, problem.status, PROBLEM);
        problem.push(story.id.as_str(), &mut reply.body);
        reply
    }

    /// The path is served, but with these methods only.
    pub(crate) fn wrong_method(gateway: &Gateway, allowed: &[Method], story: &Story) -> Self {
        let mut reply = Self::problem(gateway, StatusCode::METHOD_NOT_ALLOWED, story);
        let allowed: Vec<_> = allowed.iter().map(Method::as_str).collect();
        push_line(&mut reply.lines, b"Allow", allowed.join(", ").as_bytes());
        reply
    }

    /// A limit has refused.
    pub(crate) fn limited(
        gateway: &Gateway,
        prepared: &Prepared,
        decision: &Decision,
        request: &Request,
        story: &Story,
    ) -> Self {
        let mut reply = if is_grpc(request) {
            grpc_exhausted(gateway, decision)
        } else {
            let mut reply = Self::new(gateway, StatusCode::TOO_MANY_REQUESTS, PROBLEM);
            prepared.quota.push(decision, story.id.as_str(), &mut reply.body);
            reply
        };
        prepared.headers.push_lines(decision, false, &mut reply.lines);
        reply
    }

    /// What `body` says, as JSON.
    pub(crate) fn json(gateway: &Gateway, body: &str) -> Self {
        let mut reply = Self::new(gateway, StatusCode::OK, b"Content-Type: application/json\r\n");
        reply.body.extend_from_slice(body.as_bytes());
        reply
    }

    /// Adds what a limit says.
    pub(crate) fn with_limit(mut self, shown: Option<(&Prepared, &Decision)>) -> Self {
        if let Some((prepared, decision)) = shown {
            prepared.headers.push_lines(decision, false, &mut self.lines);
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
            cors::push_lines(origin, &mut self.lines);
        }
        let is_whole = client.skip_body();
        let keep = is_whole && client.request.keep_alive && !watch.is_stopping();
        story.answered(self.status.as_u16());
        story.bytes = self.push(gateway, client, keep, story);
        gateway.buffers.give(self.lines);
        gateway.buffers.give(self.body);
        match (client.flush(gateway, watch).await, keep) {
            (true, true) => After::Keep,
            (true, false) if is_whole && client.input.unread().is_empty() => After::Close,
            (true, false) => After::Linger,
            (false, _) => After::Close,
        }
    }

    /// Writes the answer; gives the length of its body.
    fn push(&self, gateway: &Gateway, client: &mut Client, keep: bool, story: &Story) -> u64 {
        let Client { output, request, .. } = client;
        let out = output.buffer(&gateway.buffers);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(self.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.status.canonical_reason().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.lines);
        push_line(out, b"X-Correlation-ID", story.id.as_bytes());
        push_length(out, self.body.len() as u64);
        gateway.date.push(gateway.context.clock.now(), out);
        push_connection(out, keep, request.is_old);
        out.extend_from_slice(b"\r\n");
        if request.method() == Method::HEAD {
            return 0;
        }
        out.extend_from_slice(&self.body);
        self.body.len() as u64
    }
}

/// Appends a header line.
pub(crate) fn push_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line that tells a body's length.
pub(crate) fn push_length(out: &mut Vec<u8>, length: u64) {
    push_line(out, b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
}

/// Says what becomes of the connection, where that is not what the version implies.
pub(crate) fn push_connection(out: &mut Vec<u8>, keep: bool, is_old: bool) {
    if !keep {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if is_old {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
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
fn grpc_exhausted(gateway: &Gateway, decision: &Decision) -> Reply {
    let content_type = b"Content-Type: application/grpc\r\n";
    let mut reply = Reply::new(gateway, StatusCode::OK, content_type);
    push_line(&mut reply.lines, b"grpc-status", b"8");
    push_line(&mut reply.lines, b"grpc-message", b"Rate limit exceeded.");
    // A negative push-back tells the client not to retry at all.
    let pushback = decision
        .retry_after
        .duration()
        .map_or(-1, |wait| i64::try_from(wait.as_micros().div_ceil(1_000)).unwrap_or(i64::MAX));
    let mut number = itoa::Buffer::new();
    push_line(&mut reply.lines, b"grpc-retry-pushback-ms", number.format(pushback).as_bytes());
    reply
}
