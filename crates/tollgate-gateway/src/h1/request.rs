//! What a request's head asks for, and which requests are refused before anybody looks at them.
//!
//! A request is only passed on if every server would read it the same way. Where RFC 9112 lets
//! a server choose between repairing and refusing (both lengths given, a length given twice,
//! two hosts), this refuses: repairing is where smuggling begins.

use std::ops::Range;

use http::{Method, StatusCode};

use super::{
    body::Framing,
    head::{HeadError, Line, Lines},
    name::Name,
    tokens::{self, Connection, has_token},
};

/// Longer than any method in the registry.
const METHOD_MAX: usize = 32;

/// A request that is answered with an error instead of being passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What to answer.
    pub(crate) status: StatusCode,
    /// Why, for a person.
    pub(crate) detail: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self { status, detail }
    }

    const fn bad(detail: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::BareLineFeed => Self::bad("A line does not end with CR LF."),
            HeadError::Folded => Self::bad("A header line is folded or begins with a space."),
            HeadError::NoColon => Self::bad("A header line has no colon."),
            HeadError::BadName => Self::bad("A header name has a character it must not have."),
            HeadError::BadValue => Self::bad("A header value has a control character."),
            HeadError::TooMany => Self::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "The request has more than 100 header lines.",
            ),
        }
    }
}

/// The head of a request. Owns its bytes, since it is needed until the answer has ended; made
/// once for a connection and filled for each request.
#[derive(Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    lines: Lines,
    method: Method,
    target: Range<usize>,
    query: Option<usize>,
    host: Option<Range<usize>>,
    /// Whether the client speaks HTTP/1.0.
    pub(crate) is_old: bool,
    /// How its body is delimited.
    pub(crate) framing: Framing,
    /// Whether the connection may serve another request.
    pub(crate) keep_alive: bool,
    /// Whether `Connection` names fields that end here.
    pub(crate) names_fields: bool,
    /// Whether the client waits for a `100 Continue`.
    pub(crate) expects_continue: bool,
    /// Whether the client wants to see trailers.
    pub(crate) wants_trailers: bool,
}

impl Request {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            lines: Lines::default(),
            method: Method::GET,
            target: 0..0,
            query: None,
            host: None,
            is_old: false,
            framing: Framing::Empty,
            keep_alive: true,
            names_fields: false,
            expects_continue: false,
            wants_trailers: false,
        }
    }

    /// Reads a head, which ends with its empty line.
    pub(crate) fn read(&mut self, head: Vec<u8>) -> Result<(), Refusal> {
        self.bytes = head;
        self.host = None;
        self.names_fields = false;
        self.expects_continue = false;
        self.wants_trailers = false;
        let line = self.request_line()?;
        let mut lines = std::mem::take(&mut self.lines);
        let read = lines.read(&self.bytes, line).map_err(Refusal::from);
        let understood = read.and_then(|()| self.understand(&lines));
        self.lines = lines;
        understood?;
        self.absolute_form()
    }

    /// Gives the buffer back for other use.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The bytes that places of lines refer to.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The header lines in their order.
    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter()
    }

    /// The method.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query, as they were sent.
    pub(crate) fn target(&self) -> &[u8] {
        &self.bytes[self.target.clone()]
    }

    /// The path, as it was sent.
    pub(crate) fn path(&self) -> &str {
        text(&self.bytes[self.target.start..self.query.map_or(self.target.end, |at| at - 1)])
    }

    /// What stands after the question mark.
    pub(crate) fn query(&self) -> Option<&str> {
        self.query.map(|at| text(&self.bytes[at..self.target.end]))
    }

    /// The host it names, with its port if it names one.
    pub(crate) fn host(&self) -> Option<&str> {
        self.host_bytes().map(text)
    }

    /// The same as bytes.
    pub(crate) fn host_bytes(&self) -> Option<&[u8]> {
        self.host.clone().map(|place| &self.bytes[place])
    }

    /// The first value of a header that is known by name.
    pub(crate) fn known(&self, name: Name) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| line.known == name)?;
        Some(line.value(&self.bytes))
    }

    /// The value of a header that is there just once; the name in any case. Of two nobody could
    /// tell which of them the upstream believes.
    pub(crate) fn only_header(&self, name: &[u8]) -> Option<&[u8]> {
        let named = |line: &&Line| line.name(&self.bytes).eq_ignore_ascii_case(name);
        let mut found = self.lines.iter().filter(named);
        let line = found.next()?;
        found.next().is_none().then(|| line.value(&self.bytes))
    }

    /// Whether `Connection` names this field.
    pub(crate) fn ends_here(&self, line: &Line) -> bool {
        self.names_fields
            && self.lines.iter().any(|other| {
                other.known == Name::Connection
                    && has_token(other.value(&self.bytes), line.name(&self.bytes))
            })
    }

    /// Reads the first line; gives the place after it.
    fn request_line(&mut self) -> Result<usize, Refusal> {
        const BAD: Refusal = Refusal::bad("The request line is not `METHOD TARGET HTTP/1.1`.");
        let feed = memchr::memchr(b'\n', &self.bytes).ok_or(BAD)?;
        let line = &self.bytes[..feed - 1];
        let space = memchr::memchr(b' ', line).ok_or(BAD)?;
        let last = memchr::memrchr(b' ', line).ok_or(BAD)?;
        let (method, version) = (&line[..space], &line[last + 1..]);
        if last == space || method.len() > METHOD_MAX || !tokens::is_token(method) {
            return Err(BAD);
        }
        self.is_old = is_old(version)?;
        self.method = Method::from_bytes(method).map_err(|_| BAD)?;
        if self.method == Method::CONNECT {
            let status = StatusCode::NOT_IMPLEMENTED;
            return Err(Refusal::new(status, "CONNECT is not offered here."));
        }
        self.target = space + 1..last;
        let target = &self.bytes[self.target.clone()];
        if !target.iter().all(|&byte| is_target_byte(byte)) || target.is_empty() {
            return Err(Refusal::bad("The request target has a character it must not have."));
        }
        self.query = memchr::memchr(b'?', target).map(|at| self.target.start + at + 1);
        Ok(feed + 1)
    }

    /// Takes from the lines what the gateway itself must know.
    fn understand(&mut self, lines: &Lines) -> Result<(), Refusal> {
        let (mut host, mut length, mut encoding) = (None, None, None);
        let mut connection = Connection::default();
        for line in lines.iter() {
            let value = line.value(&self.bytes);
            match line.known {
                Name::Host => once(&mut host, value, "The request has more than one Host.")?,
                Name::ContentLength => {
                    once(&mut length, value, "The request has more than one Content-Length.")?;
                }
                Name::TransferEncoding => {
                    once(&mut encoding, value, "The request has more than one Transfer-Encoding.")?;
                }
                Name::Connection => connection.read(value),
                Name::Te => self.wants_trailers |= has_token(value, b"trailers"),
                Name::Expect if value.eq_ignore_ascii_case(b"100-continue") => {
                    self.expects_continue = !self.is_old;
                }
                Name::Expect => {
                    let status = StatusCode::EXPECTATION_FAILED;
                    return Err(Refusal::new(status, "Only 100-continue can be expected."));
                }
                _ => {}
            }
        }
        self.framing = framing(length, encoding, self.is_old)?;
        self.keep_alive = connection.keeps(self.is_old);
        self.names_fields = connection.names_fields;
        self.host = self.host_place(host)?;
        Ok(())
    }

    fn host_place(&self, host: Option<&[u8]>) -> Result<Option<Range<usize>>, Refusal> {
        match host {
            None if self.is_old => Ok(None),
            None => Err(Refusal::bad("The request has no Host.")),
            Some(host) if is_host(host) => {
                let start = host.as_ptr() as usize - self.bytes.as_ptr() as usize;
                Ok(Some(start..start + host.len()))
            }
            Some(_) => Err(Refusal::bad("The Host is not a host name with a port.")),
        }
    }

    /// Makes `/path` of `http://host/path`, which names its host twice: both must agree.
    fn absolute_form(&mut self) -> Result<(), Refusal> {
        let target = &self.bytes[self.target.clone()];
        if target[0] == b'/' || (target == b"*" && self.method == Method::OPTIONS) {
            return Ok(());
        }
        const BAD: Refusal = Refusal::bad("The request target is neither a path nor a URL.");
        let scheme = memchr::memmem::find(target, b"://").ok_or(BAD)?;
        if !target[..scheme].eq_ignore_ascii_case(b"http")
            && !target[..scheme].eq_ignore_ascii_case(b"https")
        {
            return Err(BAD);
        }
        let authority = scheme + 3;
        let rest = &target[authority..];
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).ok_or(BAD)?;
        if rest[end] != b'/' {
            return Err(BAD);
        }
        let named = self.host.clone().map(|place| &self.bytes[place]);
        if named.is_some_and(|host| !host.eq_ignore_ascii_case(&rest[..end])) {
            return Err(Refusal::bad("The Host is not the host of the request target."));
        }
        if !is_host(&rest[..end]) {
            return Err(BAD);
        }
        let start = self.target.start + authority;
        self.host = Some(start..start + end);
        self.target.start = start + end;
        Ok(())
    }
}

fn is_old(version: &[u8]) -> Result<bool, Refusal> {
    match version {
        b"HTTP/1.1" => Ok(false),
        b"HTTP/1.0" => Ok(true),
        _ if version.starts_with(b"HTTP/") => {
            let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
            Err(Refusal::new(status, "Only HTTP/1.1 and HTTP/1.0 are spoken here."))
        }
        _ => Err(Refusal::bad("The request line is not `METHOD TARGET HTTP/1.1`.")),
    }
}

/// Remembers the value of a line that must not come twice.
fn once<'a>(
    slot: &mut Option<&'a [u8]>,
    value: &'a [u8],
    twice: &'static str,
) -> Result<(), Refusal> {
    if slot.replace(value).is_some() { Err(Refusal::bad(twice)) } else { Ok(()) }
}

fn framing(
    length: Option<&[u8]>,
    encoding: Option<&[u8]>,
    is_old: bool,
) -> Result<Framing, Refusal> {
    let Some(encoding) = encoding else {
        let Some(length) = length else { return Ok(Framing::Empty) };
        let length = decimal(length).ok_or(Refusal::bad("The Content-Length is not a number."))?;
        return Ok(Framing::Length(length));
    };
    if length.is_some() {
        return Err(Refusal::bad("The request has both Content-Length and Transfer-Encoding."));
    }
    if is_old {
        return Err(Refusal::bad("HTTP/1.0 has no Transfer-Encoding."));
    }
    if encoding.eq_ignore_ascii_case(b"chunked") {
        return Ok(Framing::Chunked);
    }
    match tokens::tokens(encoding).last() {
        Some(last) if last.eq_ignore_ascii_case(b"chunked") => Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "Of transfer encodings only chunked is offered here.",
        )),
        _ => Err(Refusal::bad("The last Transfer-Encoding is not chunked.")),
    }
}

/// Digits only: no sign, no space, no list.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    // 18 digits always fit, and no body is longer.
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// Visible ASCII, without the fragment that only a browser may see.
const fn is_target_byte(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && byte != b'#'
}

/// A name or an IPv6 address in brackets, with or without a port.
fn is_host(host: &[u8]) -> bool {
    let is_name_byte =
        |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'~');
    let is_address_byte = |&byte: &u8| is_name_byte(&byte) || matches!(byte, b':' | b'%');
    let (name, port) = match host.strip_prefix(b"[") {
        Some(inside) => {
            let Some(end) = memchr::memchr(b']', inside) else { return false };
            if !inside[..end].iter().all(is_address_byte) {
                return false;
            }
            (&inside[..end], &inside[end + 1..])
        }
        None => {
            let end = memchr::memchr(b':', host).unwrap_or(host.len());
            if !host[..end].iter().all(|byte| is_name_byte(byte) || *byte == b'%') {
                return false;
            }
            host.split_at(end)
        }
    };
    let is_port = |port: &[u8]| port.len() <= 5 && port.iter().all(u8::is_ascii_digit);
    !name.is_empty() && (port.is_empty() || port.strip_prefix(b":").is_some_and(is_port))
}

/// What was checked to be ASCII.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests;
