//! Nonsense of every kind, and what must hold for all that is accepted.

use http::Method;
use proptest::prelude::*;

use super::{
    body::{Body, Framing},
    chunked::push_chunk,
    head::Scan,
    request::Request,
    response::Response,
};

/// Bytes that come close to a message: pieces that matter, in any order, among others.
fn nearly_a_message() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "GET",
        "POST",
        " ",
        "/",
        "/a?b",
        "http://h/",
        "*",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/1.1 200 OK",
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        ":",
        ": ",
        "\t",
        ",",
        "Host: h\r\n",
        "Host",
        "Content-Length: 5\r\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked\r\n",
        "chunked",
        "Connection: close, x\r\n",
        "Expect: 100-continue\r\n",
        "TE: trailers\r\n",
        "0",
        "5",
        "\0",
        "\u{e4}",
        "GET / HTTP/1.1\r\nHost: h\r\n",
        "POST /x HTTP/1.1\r\nHost: h\r\n",
    ]);
    let noise = prop::collection::vec(any::<u8>(), 0..4);
    let part = prop_oneof![8 => pieces.prop_map(|piece| piece.as_bytes().to_vec()), 1 => noise];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// What the gateway would make of these bytes.
fn request(bytes: &[u8]) -> Option<Request> {
    let end = Scan::default().end(bytes).ok()??;
    // The gateway takes empty lines away before it looks for a request.
    let mut request = Request::new();
    (!bytes.starts_with(b"\r\n") && request.read(bytes[..end].to_vec()).is_ok()).then_some(request)
}

proptest! {
    #[test]
    fn what_is_accepted_reads_the_same_when_it_is_written_anew(bytes in nearly_a_message()) {
        let Some(first) = request(&bytes) else { return Ok(()) };
        let mut again = Vec::new();
        again.extend_from_slice(first.method().as_str().as_bytes());
        again.push(b' ');
        again.extend_from_slice(first.target());
        again.extend_from_slice(b" HTTP/1.1\r\n");
        for line in first.lines() {
            again.extend_from_slice(line.name(first.bytes()));
            again.extend_from_slice(b": ");
            again.extend_from_slice(line.value(first.bytes()));
            again.extend_from_slice(b"\r\n");
        }
        if first.host().is_none() {
            again.extend_from_slice(b"host: h\r\n");
        }
        again.extend_from_slice(b"\r\n");
        let second = request(&again);
        let second = second.unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(&again)));
        prop_assert_eq!(first.path(), second.path());
        prop_assert_eq!(first.query(), second.query());
        prop_assert_eq!(first.framing, second.framing);
    }

    #[test]
    fn a_head_is_found_the_same_whatever_the_reads(bytes in nearly_a_message(), cut in 0..200_usize) {
        let whole = Scan::default().end(&bytes);
        let mut scan = Scan::default();
        let first = scan.end(&bytes[..cut.min(bytes.len())]);
        if first == Ok(None) {
            prop_assert_eq!(scan.end(&bytes), whole);
        } else {
            prop_assert_eq!(first, whole);
        }
    }

    #[test]
    fn no_answer_can_upset_the_reader(bytes in nearly_a_message()) {
        if let Ok(Some(end)) = Scan::default().end(&bytes) {
            let mut response = Response::new();
            if response.read(&bytes[..end], &Method::GET).is_ok() {
                prop_assert!((100..1000).contains(&response.status));
                prop_assert!(response.status_text(&bytes).len() >= 3);
            }
        }
    }

    #[test]
    fn chunks_come_out_as_they_went_in(
        data in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        cuts in prop::collection::vec(1..20_usize, 1..10),
    ) {
        let mut sent = Vec::new();
        for chunk in &data {
            push_chunk(&mut sent, chunk);
        }
        sent.extend_from_slice(b"0\r\n\r\n");
        let (mut body, mut found) = (Body::new(Framing::Chunked), Vec::new());
        let (mut input, mut cuts) = (&sent[..], cuts.into_iter().cycle());
        while !body.is_done() {
            let seen = &input[..cuts.next().unwrap().min(input.len())];
            let piece = body.next(seen).unwrap();
            found.extend_from_slice(&seen[piece.skip..piece.skip + piece.data]);
            input = &input[piece.skip + piece.data..];
        }
        prop_assert_eq!(found, data.concat());
        prop_assert!(input.is_empty());
    }

    #[test]
    fn no_chunks_can_upset_the_reader(bytes in prop::collection::vec(
        prop::sample::select(b"0123abfF;=\r\n\r\n\r\n x:\0".to_vec()), 0..200,
    )) {
        let mut body = Body::new(Framing::Chunked);
        let mut input = &bytes[..];
        while let Ok(piece) = body.next(input) {
            input = &input[piece.skip + piece.data..];
            if input.is_empty() || body.is_done() {
                break;
            }
            prop_assert!(piece.skip + piece.data > 0, "no progress");
        }
    }
}
