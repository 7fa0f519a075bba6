//! Where one HTTP/1.1 response ends and what stands in it.
//!
//! Written for tests, from the receiving side only: it takes what a correct server may send and
//! calls everything else broken, so that a wrong server is found out rather than understood.

use std::ops::Range;

/// A response as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names as they were sent, values without surrounding blanks, in order.
    pub headers: Vec<(String, String)>,
    /// The body, with any chunking removed.
    pub body: Vec<u8>,
    /// What followed the last chunk.
    pub trailers: Vec<(String, String)>,
}

impl Response {
    /// The value of the first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// All values of the headers of that name, in order.
    pub fn header_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text; what is not UTF-8 is shown as such.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether this only announces the real response (100 to 199, without 101).
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// Whether the server said that it closes the connection.
    pub fn closes(&self) -> bool {
        self.header_all("connection").any(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// What is at the beginning of the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// Not yet a whole response.
    Part,
    /// A response whose body ends only where the connection does.
    UntilEnd(Response),
    /// A whole response, and how many bytes it took.
    Whole(Response, usize),
    /// Something that is no response.
    Broken(&'static str),
}

/// Reads the response at the beginning of `bytes`; `to_head` if the request was a HEAD.
pub fn read(bytes: &[u8], to_head: bool) -> Received {
    let Some(head) = find_bytes(bytes, b"\r\n\r\n").map(|end| end + 4) else {
        return Received::Part;
    };
    let Some(mut response) = read_head(&bytes[..head]) else {
        return Received::Broken("not a response head");
    };
    match length(&response, to_head) {
        Length::Known(length) => match bytes.get(head..head + length) {
            Some(body) => {
                response.body = body.to_vec();
                Received::Whole(response, head + length)
            }
            None => Received::Part,
        },
        Length::Chunked => read_chunks(response, bytes, head),
        Length::UntilEnd => {
            response.body = bytes[head..].to_vec();
            Received::UntilEnd(response)
        }
        Length::Contradicting => Received::Broken("contradicting lengths"),
    }
}

/// The same question as [`read`] answers, for who only counts responses and must be quick.
#[derive(Debug, PartialEq, Eq)]
pub enum Skipped {
    /// Not yet a whole response.
    Part,
    /// A whole response of `length` bytes.
    Whole {
        /// The status code.
        status: u16,
        /// How many bytes it took.
        length: usize,
        /// Whether the server said that it closes the connection.
        closes: bool,
    },
    /// No response, or one whose end only the connection's end would show.
    Broken,
}

/// Finds the end of the response at the beginning of `bytes`, without keeping any of it.
pub fn skip(bytes: &[u8]) -> Skipped {
    let Some(head) = find_bytes(bytes, b"\r\n\r\n").map(|end| end + 4) else {
        return Skipped::Part;
    };
    match outline(&bytes[..head]) {
        Some((_, body, _)) if bytes.len() < head + body => Skipped::Part,
        Some((status, body, closes)) => Skipped::Whole { status, length: head + body, closes },
        None => skip_slowly(bytes),
    }
}

/// Status, length of the body and whether the connection ends, of a head that states a length.
fn outline(head: &[u8]) -> Option<(u16, usize, bool)> {
    let status = str::from_utf8(head.strip_prefix(b"HTTP/1.1 ")?.get(..3)?).ok()?.parse().ok()?;
    let mut length = None;
    let mut closes = false;
    for line in head.split(|byte| *byte == b'\n') {
        if let Some(value) = value_of(line, b"content-length:") {
            length = value.parse().ok();
        } else if let Some(value) = value_of(line, b"connection:") {
            closes = value.eq_ignore_ascii_case("close");
        }
    }
    Some((status, length?, closes))
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let (found, value) = line.split_at_checked(name.len())?;
    let value = found.eq_ignore_ascii_case(name).then_some(value)?;
    str::from_utf8(value).ok().map(str::trim)
}

fn skip_slowly(bytes: &[u8]) -> Skipped {
    match read(bytes, false) {
        Received::Part => Skipped::Part,
        Received::Whole(response, length) => {
            Skipped::Whole { status: response.status, length, closes: response.closes() }
        }
        Received::UntilEnd(_) | Received::Broken(_) => Skipped::Broken,
    }
}

enum Length {
    Known(usize),
    Chunked,
    UntilEnd,
    Contradicting,
}

fn length(response: &Response, to_head: bool) -> Length {
    if to_head || response.status < 200 || matches!(response.status, 204 | 304) {
        return Length::Known(0);
    }
    let chunked = response.header("transfer-encoding").map(|value| value.to_ascii_lowercase());
    let mut lengths = response.header_all("content-length");
    match (chunked.as_deref(), lengths.next(), lengths.next()) {
        (Some("chunked"), None, None) => Length::Chunked,
        (None, Some(length), None) => length.parse().map_or(Length::Contradicting, Length::Known),
        (None, None, None) => Length::UntilEnd,
        _ => Length::Contradicting,
    }
}

fn read_head(head: &[u8]) -> Option<Response> {
    let text = str::from_utf8(head).ok()?;
    let (first, rest) = text.split_once("\r\n")?;
    let after_version = first.strip_prefix("HTTP/1.1 ").or(first.strip_prefix("HTTP/1.0 "))?;
    let status = after_version.get(..3)?.parse().ok()?;
    Some(Response { status, headers: read_fields(rest)?, body: Vec::new(), trailers: Vec::new() })
}

fn read_fields(text: &str) -> Option<Vec<(String, String)>> {
    let lines = text.split("\r\n").take_while(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        })
        .collect()
}

fn read_chunks(mut response: Response, bytes: &[u8], mut at: usize) -> Received {
    loop {
        let Some(line) = find_bytes(&bytes[at..], b"\r\n").map(|end| at..at + end) else {
            return Received::Part;
        };
        let Some(size) = chunk_size(&bytes[line.clone()]) else {
            return Received::Broken("not a chunk size");
        };
        if size == 0 {
            return read_trailers(response, bytes, line);
        }
        let data = line.end + 2;
        let Some(chunk) = bytes.get(data..data + size + 2) else {
            return Received::Part;
        };
        let Some(chunk) = chunk.strip_suffix(b"\r\n") else {
            return Received::Broken("chunk longer than its size");
        };
        response.body.extend_from_slice(chunk);
        at = data + size + 2;
    }
}

fn read_trailers(mut response: Response, bytes: &[u8], last: Range<usize>) -> Received {
    // The line break of the last chunk is looked at too: without trailers it begins the end.
    let Some(end) = find_bytes(&bytes[last.end..], b"\r\n\r\n").map(|end| last.end + end + 4)
    else {
        return Received::Part;
    };
    let fields = str::from_utf8(&bytes[last.end + 2..end]).ok().and_then(read_fields);
    match fields {
        Some(trailers) => {
            response.trailers = trailers;
            Received::Whole(response, end)
        }
        None => Received::Broken("not a trailer"),
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let text = str::from_utf8(line).ok()?;
    let digits = text.split(';').next()?.trim_end();
    usize::from_str_radix(digits, 16).ok()
}

fn find<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &str, status: u16, body: &str, rest: &str) {
        for end in 0..bytes.len() - rest.len() {
            assert_eq!(read(&bytes.as_bytes()[..end], false), Received::Part, "at {end}");
        }
        let Received::Whole(response, used) = read(bytes.as_bytes(), false) else {
            panic!("not a whole response");
        };
        let skipped = Skipped::Whole { status, length: used, closes: false };
        assert_eq!(skip(bytes.as_bytes()), skipped);
        assert_eq!((response.status, response.text().as_str()), (status, body));
        assert_eq!(&bytes[used..], rest);
    }

    #[test]
    fn a_response_ends_where_its_length_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP", 200, "hi", "HTTP");
        check("HTTP/1.1 204 No Content\r\n\r\n", 204, "", "");
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", 100, "", "HTTP/1.1 200 OK\r\n");
    }

    #[test]
    fn chunks_are_put_together() {
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        check(
            &format!("{chunked}3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n!"),
            200,
            "abc0123456789",
            "!",
        );
        let bytes = format!("{chunked}0\r\nSum: 7\r\n\r\n");
        let Received::Whole(response, _) = read(bytes.as_bytes(), false) else {
            panic!("not a whole response");
        };
        assert_eq!(response.trailers, [("Sum".to_owned(), "7".to_owned())]);
    }

    #[test]
    fn the_answer_to_head_has_no_body() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert!(matches!(read(bytes, true), Received::Whole(_, 38)));
        assert_eq!(read(bytes, false), Received::Part);
    }

    #[test]
    fn a_body_without_length_goes_on_to_the_end() {
        let Received::UntilEnd(response) = read(b"HTTP/1.0 200 OK\r\n\r\nso far", false) else {
            panic!("its end is known");
        };
        assert_eq!(response.text(), "so far");
    }

    #[test]
    fn nonsense_is_broken() {
        assert_eq!(read(b"ICY 200 OK\r\n\r\n", false), Received::Broken("not a response head"));
        let both = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(both, false), Received::Broken("contradicting lengths"));
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n";
        assert_eq!(read(chunks, false), Received::Broken("chunk longer than its size"));
    }
}
