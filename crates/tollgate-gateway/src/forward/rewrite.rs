//! Which header lines pass, which are dropped and which are added, in both directions.
//!
//! No `Via` is added: several servers stop compressing when they see one, and no peer sends it by
//! default. The client's `Host` is kept, since that is what it asked for.

use tollgate_rules::forwarded_path;

use super::Shown;
use crate::{
    client::Client,
    gateway::Gateway,
    h1::{
        body::Framing,
        head::{Line, push_lines},
        name::Name,
        request::Request,
        response::Response,
    },
    reply::{push_connection, push_length, push_line},
    story::Story,
};

/// Writes the head that goes to the upstream.
pub(crate) fn push_request(
    out: &mut Vec<u8>,
    client: &Client,
    trusted: bool,
    story: &Story,
    authority: &str,
) {
    let request = &client.request;
    let bytes = request.bytes();
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    push_target(out, request);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    push_line(out, b"Host", request.host_bytes().unwrap_or(authority.as_bytes()));
    push_lines(out, bytes, request.lines(), |line| passes_on(request, line, trusted));
    push_forwarded(out, client, trusted);
    push_line(out, b"X-Correlation-ID", story.id.as_bytes());
    if request.wants_trailers {
        out.extend_from_slice(b"TE: trailers\r\nConnection: TE\r\n");
    }
    push_framing(out, request.framing);
    out.extend_from_slice(b"\r\n");
}

/// As it was sent, but for a path that the upstream could take for another one than we have.
fn push_target(out: &mut Vec<u8>, request: &Request) {
    let path = request.path();
    out.extend_from_slice(forwarded_path(path).as_bytes());
    out.extend_from_slice(&request.target()[path.len()..]);
}

fn passes_on(request: &Request, line: &Line, trusted: bool) -> bool {
    match line.known {
        // Written anew, or answered here.
        Name::Host | Name::Expect | Name::CorrelationId | Name::XForwardedFor => false,
        // Behind some servers it would stand in for the one that is meant.
        Name::LookAlike => false,
        // From a stranger these would be taken for ours.
        Name::Forwarded | Name::XForwardedHost | Name::XForwardedProto => trusted,
        known => !known.is_hop_by_hop() && !request.ends_here(line),
    }
}

/// Tells the upstream who asked, for what host and how.
fn push_forwarded(out: &mut Vec<u8>, client: &Client, trusted: bool) {
    let request = &client.request;
    let bytes = request.bytes();
    out.extend_from_slice(b"X-Forwarded-For: ");
    let mut has = (false, false);
    for line in request.lines() {
        match line.known {
            // What a stranger says of others is not passed on as if we had seen it.
            Name::XForwardedFor if trusted => {
                out.extend_from_slice(line.value(bytes));
                out.extend_from_slice(b", ");
            }
            Name::XForwardedProto => has.0 = trusted,
            Name::XForwardedHost => has.1 = trusted,
            _ => {}
        }
    }
    out.extend_from_slice(client.peer_text.as_bytes());
    out.extend_from_slice(b"\r\n");
    if !has.0 {
        out.extend_from_slice(b"X-Forwarded-Proto: http\r\n");
    }
    if let (false, Some(host)) = (has.1, request.host_bytes()) {
        push_line(out, b"X-Forwarded-Host", host);
    }
}

fn push_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Empty | Framing::UntilClose => {}
        Framing::Length(length) => push_length(out, length),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

/// How the answer's body is delimited for this client.
pub(crate) fn framing_back(response: &Response, request: &Request) -> Framing {
    match response.framing {
        // HTTP/1.0 knows no chunks.
        Framing::Chunked | Framing::UntilClose if request.is_old => Framing::UntilClose,
        Framing::UntilClose => Framing::Chunked,
        framing => framing,
    }
}

/// Writes the head that goes back to the client.
pub(crate) fn push_response(
    gateway: &Gateway,
    client: &mut Client,
    head: &[u8],
    framing: Framing,
    keep: bool,
    story: &Story,
    shown: Shown<'_>,
) {
    let Client { output, request, response, .. } = client;
    let response = &*response;
    let out = output.buffer(&gateway.buffers);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(response.status_text(head));
    out.extend_from_slice(b"\r\n");
    let mut opens = false;
    push_lines(out, head, response.lines(), |line| {
        opens |= line.known == Name::AccessControlAllowOrigin;
        comes_back(response, line, head, shown)
    });
    if let Some((prepared, decision)) = shown {
        prepared.headers.push_lines(decision, opens, out);
    }
    push_line(out, b"X-Correlation-ID", story.id.as_bytes());
    if !response.has_date {
        gateway.date.push(gateway.context.clock.now(), out);
    }
    match (framing, response.length) {
        // An answer to HEAD tells the length of the body it would have had.
        (Framing::Empty, Some(length)) if response.status != 204 => {
            push_framing(out, Framing::Length(length));
        }
        (framing, _) => push_framing(out, framing),
    }
    push_connection(out, keep, request.is_old);
    out.extend_from_slice(b"\r\n");
}

fn comes_back(response: &Response, line: &Line, head: &[u8], shown: Shown<'_>) -> bool {
    match line.known {
        Name::CorrelationId => false,
        // Two limits in one answer could only be mixed up; ours is the one that holds here.
        known if known.is_rate_limit() => {
            !shown.is_some_and(|(prepared, _)| prepared.headers.replaces(line.name(head)))
        }
        known => !known.is_hop_by_hop() && !response.ends_here(line, head),
    }
}
