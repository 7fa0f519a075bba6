//! Which header lines pass, which are dropped and which are added, in both directions.
//!
//! No `Via` is added: several servers stop compressing when they see one, and no peer sends it by
//! default. The client's `Host` is kept, since that is what it asked for.

use std::{io::Write as _, net::IpAddr};

use http::header;

use super::Shown;
use crate::{
    client::Client,
    gateway::Gateway,
    h1::{body::Framing, head::Line, name::Name, request::Request, response::Response},
    reply::{push_connection, push_line, push_map},
    story::Story,
};

/// Writes the head that goes to the upstream.
pub(crate) fn push_request(
    out: &mut Vec<u8>,
    request: &Request,
    peer: IpAddr,
    trusted: bool,
    story: &Story,
    authority: &str,
) {
    let bytes = request.bytes();
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(request.target().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    push_line(out, b"host", request.host().unwrap_or(authority).as_bytes());
    for line in request.lines() {
        if passes_on(request, line, trusted) {
            out.extend_from_slice(line.text(bytes));
            out.extend_from_slice(b"\r\n");
        }
    }
    push_forwarded(out, request, peer, trusted);
    push_line(out, b"x-correlation-id", story.id(request).as_bytes());
    if request.wants_trailers {
        out.extend_from_slice(b"te: trailers\r\nconnection: te\r\n");
    }
    push_framing(out, request.framing);
    out.extend_from_slice(b"\r\n");
}

fn passes_on(request: &Request, line: &Line, trusted: bool) -> bool {
    match line.known {
        // Written anew, or answered here.
        Name::Host | Name::Expect | Name::CorrelationId | Name::XForwardedFor => false,
        // From a stranger these would be taken for ours.
        Name::Forwarded | Name::XForwardedHost | Name::XForwardedProto => trusted,
        known => !known.is_hop_by_hop() && !request.ends_here(line),
    }
}

/// Tells the upstream who asked, for what host and how.
fn push_forwarded(out: &mut Vec<u8>, request: &Request, peer: IpAddr, trusted: bool) {
    let bytes = request.bytes();
    out.extend_from_slice(b"x-forwarded-for: ");
    let mut has = (false, false);
    for line in request.lines() {
        match line.known {
            Name::XForwardedFor => {
                out.extend_from_slice(line.value(bytes));
                out.extend_from_slice(b", ");
            }
            Name::XForwardedProto => has.0 = trusted,
            Name::XForwardedHost => has.1 = trusted,
            _ => {}
        }
    }
    write!(out, "{}\r\n", peer.to_canonical()).expect("writing to a buffer cannot fail");
    if !has.0 {
        out.extend_from_slice(b"x-forwarded-proto: http\r\n");
    }
    if let (false, Some(host)) = (has.1, request.host()) {
        push_line(out, b"x-forwarded-host", host.as_bytes());
    }
}

fn push_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Empty | Framing::UntilClose => {}
        Framing::Length(length) => {
            let mut number = itoa::Buffer::new();
            push_line(out, b"content-length", number.format(length).as_bytes());
        }
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
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
#[expect(clippy::too_many_arguments, reason = "all of them become lines of one head")]
pub(crate) fn push_response(
    gateway: &Gateway,
    client: &mut Client,
    head: &[u8],
    response: &Response,
    framing: Framing,
    keep: bool,
    story: &Story,
    shown: Shown<'_>,
) {
    let Client { output, request, .. } = client;
    let out = output.buffer(&gateway.buffers);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(response.status_text(head));
    out.extend_from_slice(b"\r\n");
    let mut opens = false;
    for line in response.lines() {
        opens |= line.known == Name::AccessControlAllowOrigin;
        if comes_back(response, line, head, shown.is_some()) {
            out.extend_from_slice(line.text(head));
            out.extend_from_slice(b"\r\n");
        }
    }
    push_limit(gateway, out, shown, opens);
    push_line(out, b"x-correlation-id", story.id(request).as_bytes());
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

fn comes_back(response: &Response, line: &Line, head: &[u8], is_limited: bool) -> bool {
    match line.known {
        Name::CorrelationId => false,
        // Two limits in one answer could only be mixed up; ours is the one that holds here.
        known if known.is_rate_limit() => !is_limited,
        known => !known.is_hop_by_hop() && !response.ends_here(line, head),
    }
}

fn push_limit(gateway: &Gateway, out: &mut Vec<u8>, shown: Shown<'_>, opens: bool) {
    let Some((prepared, decision)) = shown else { return };
    let mut headers = gateway.headers.borrow_mut();
    headers.clear();
    if opens {
        // Not to be sent: it tells the writer that a script of another origin may read this.
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, header::HeaderValue::from_static("*"));
    }
    prepared.headers.write(decision, &mut headers);
    headers.remove(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    push_map(out, &headers);
}
