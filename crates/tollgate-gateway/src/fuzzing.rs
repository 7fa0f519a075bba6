//! A way in for fuzzers: any bytes as a client's request and as an upstream's answer, through the
//! readers that are private otherwise, and what must hold of all they accept.
//!
//! Only built with the feature `fuzzing`; nothing here is part of the crate's interface.

use http::Method;

use crate::h1::{
    body::{Body, Framing},
    chunked::{ChunkError, push_chunk},
    head::{HeadError, Scan},
    request::Request,
    response::Response,
};

/// Reads the bytes as a request and as an answer. The first byte says how large the reads are.
pub fn read(bytes: &[u8]) {
    let Some((step, message)) = bytes.split_first() else { return };
    let step = usize::from(*step).max(1);
    let end = Scan::default().end(message);
    assert_eq!(end_by_steps(message, step), end, "the end depends on the reads");
    let Ok(Some(end)) = end else { return };
    let (head, rest) = message.split_at(end);
    if head.len() > 2 {
        if let Some(framing) = read_request(head) {
            read_body(framing, rest, step);
        }
        for method in [Method::GET, Method::HEAD] {
            if let Some(framing) = read_response(head, &method) {
                read_body(framing, rest, step);
            }
        }
    }
    read_body(Framing::Chunked, message, step);
}

fn end_by_steps(message: &[u8], step: usize) -> Result<Option<usize>, HeadError> {
    let mut scan = Scan::default();
    for shown in (0..message.len()).step_by(step) {
        match scan.end(&message[..shown]) {
            Ok(None) => {}
            found => return found,
        }
    }
    scan.end(message)
}

/// How the body of a request is delimited, if the request would be passed on.
fn read_request(head: &[u8]) -> Option<Framing> {
    let mut request = Request::new();
    request.read(head.to_vec()).ok()?;
    assert!(request.framing != Framing::UntilClose, "a request without an end");
    assert!(request.target().starts_with(b"/") || request.target() == b"*", "not a path");
    let mut again = Request::new();
    let read = again.read(written(&request));
    assert!(read.is_ok(), "accepted only the first time: {read:?}");
    assert_eq!(again.method(), request.method());
    assert_eq!(again.target(), request.target());
    assert_eq!((again.path(), again.query()), (request.path(), request.query()));
    assert_eq!(again.framing, request.framing, "another body");
    // A target may spell the host in other letters than the Host line.
    let lower = |request: &Request| request.host().map(str::to_ascii_lowercase);
    if request.host().is_some() {
        assert_eq!(lower(&again), lower(&request));
    }
    Some(request.framing)
}

/// The request as it would be sent on, had nothing to be added.
fn written(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(request.target());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for line in request.lines() {
        out.extend_from_slice(line.name(request.bytes()));
        out.extend_from_slice(b": ");
        out.extend_from_slice(line.value(request.bytes()));
        out.extend_from_slice(b"\r\n");
    }
    if request.host_bytes().is_none() {
        out.extend_from_slice(b"Host: h\r\n");
    } else if request.only_header(b"host").is_none() {
        // Only the target of an old request named it.
        crate::reply::push_line(&mut out, b"Host", request.host_bytes().unwrap_or_default());
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// How the body of an answer is delimited, if it would be passed on.
fn read_response(head: &[u8], method: &Method) -> Option<Framing> {
    let mut response = Response::new();
    response.read(head, method).ok()?;
    assert!((100..1_000).contains(&response.status), "no status");
    assert!(response.status_text(head).len() >= 3, "no status text");
    let is_bare = *method == Method::HEAD || matches!(response.status, 100..=199 | 204 | 304);
    assert!(!is_bare || response.framing == Framing::Empty, "a body where none can be");
    Some(response.framing)
}

/// Reads a body at once and in steps, and writes what came out anew.
fn read_body(framing: Framing, bytes: &[u8], step: usize) {
    let whole = taken(framing, bytes, bytes.len());
    assert_eq!(taken(framing, bytes, step), whole, "the body depends on the reads");
    let (Ok((data, _)), Framing::Chunked) = (whole, framing) else { return };
    let mut again = Vec::new();
    for piece in data.chunks(step) {
        push_chunk(&mut again, piece);
    }
    again.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(taken(framing, &again, step), Ok((data, again.len())), "chunks do not come back");
}

/// The data of a body and how many bytes it took, shown `step` bytes at a time.
fn taken(
    framing: Framing,
    bytes: &[u8],
    step: usize,
) -> Result<(Vec<u8>, usize), Option<ChunkError>> {
    let (mut body, mut data, mut used) = (Body::new(framing), Vec::new(), 0);
    while !body.is_done() {
        let seen = &bytes[used..bytes.len().min(used + step)];
        if seen.is_empty() {
            return if body.end() { Ok((data, used)) } else { Err(None) };
        }
        let piece = body.next(seen).map_err(Some)?;
        assert!(piece.skip + piece.data > 0, "no progress");
        data.extend_from_slice(&seen[piece.skip..piece.skip + piece.data]);
        used += piece.skip + piece.data;
    }
    Ok((data, used))
}
