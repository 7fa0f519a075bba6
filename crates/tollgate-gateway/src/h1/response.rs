//! What an upstream's head says.

use http::Method;

use super::{
    body::Framing,
    head::{HeadError, Line, Lines},
    name::Name,
    request::decimal,
    tokens::{Connection, has_token},
};

/// Why an upstream's answer cannot be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadAnswer {
    #[error("{0}")]
    Head(#[from] HeadError),
    #[error("the status line is not `HTTP/1.1 200 OK`")]
    StatusLine,
    #[error("there is more than one Content-Length, or it is not a number")]
    Length,
    #[error("there are both Content-Length and Transfer-Encoding")]
    LengthAndEncoding,
    #[error("the Transfer-Encoding is not chunked")]
    Encoding,
    #[error("it switches to another protocol, which nobody asked for")]
    Switch,
}

/// The head of an answer; its lines are places in the bytes it was read from.
#[derive(Debug)]
pub(crate) struct Response {
    lines: Lines,
    /// The status.
    pub(crate) status: u16,
    /// Where the reason ends; it begins after the status.
    reason_end: usize,
    /// How its body is delimited.
    pub(crate) framing: Framing,
    /// The length it gives, which an answer to `HEAD` has without a body.
    pub(crate) length: Option<u64>,
    /// Whether the connection may serve another request.
    pub(crate) keep_alive: bool,
    /// Whether it tells when it was made.
    pub(crate) has_date: bool,
    names_fields: bool,
}

/// Where the status stands in `HTTP/1.1 200 OK`.
const STATUS: usize = 9;

impl Response {
    pub(crate) fn new() -> Self {
        Self {
            lines: Lines::default(),
            status: 0,
            reason_end: 0,
            framing: Framing::Empty,
            length: None,
            keep_alive: false,
            has_date: false,
            names_fields: false,
        }
    }

    /// Reads a head, which ends with its empty line; `method` is that of the request.
    pub(crate) fn read(&mut self, head: &[u8], method: &Method) -> Result<(), BadAnswer> {
        let feed = memchr::memchr(b'\n', head).ok_or(BadAnswer::StatusLine)?;
        let is_old = self.status_line(&head[..feed - 1])?;
        let mut lines = std::mem::take(&mut self.lines);
        let read = lines.read(head, feed + 1).map_err(BadAnswer::from);
        let understood = read.and_then(|()| self.understand(head, &lines, is_old, method));
        self.lines = lines;
        understood
    }

    /// Status and reason, as they were sent.
    pub(crate) fn status_text<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        &head[STATUS..self.reason_end]
    }

    /// The header lines in their order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// Whether another answer to the same request follows.
    pub(crate) const fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Whether `Connection` names this field.
    pub(crate) fn ends_here(&self, line: &Line, head: &[u8]) -> bool {
        self.names_fields
            && self.lines.iter().any(|other| {
                other.known == Name::Connection && has_token(other.value(head), line.name(head))
            })
    }

    fn status_line(&mut self, line: &[u8]) -> Result<bool, BadAnswer> {
        let is_old = match line.get(..STATUS) {
            Some(b"HTTP/1.1 ") => false,
            Some(b"HTTP/1.0 ") => true,
            _ => return Err(BadAnswer::StatusLine),
        };
        let (digits, reason) = line[STATUS..].split_at_checked(3).ok_or(BadAnswer::StatusLine)?;
        let status = decimal(digits).ok_or(BadAnswer::StatusLine)?;
        let is_reason = reason.is_empty() || (reason[0] == b' ' && super::head::is_value(reason));
        if !(100..=999).contains(&status) || !is_reason {
            return Err(BadAnswer::StatusLine);
        }
        self.status = u16::try_from(status).map_err(|_| BadAnswer::StatusLine)?;
        self.reason_end = line.len();
        Ok(is_old)
    }

    fn understand(
        &mut self,
        head: &[u8],
        lines: &Lines,
        is_old: bool,
        method: &Method,
    ) -> Result<(), BadAnswer> {
        self.has_date = false;
        let (mut length, mut encoding) = (None, None);
        let mut connection = Connection::default();
        for line in lines.iter() {
            let value = line.value(head);
            match line.known {
                Name::ContentLength if length.is_some() => return Err(BadAnswer::Length),
                Name::ContentLength => length = Some(decimal(value).ok_or(BadAnswer::Length)?),
                Name::TransferEncoding if encoding.is_some() => return Err(BadAnswer::Encoding),
                Name::TransferEncoding => encoding = Some(value),
                Name::Connection => connection.read(value),
                Name::Date => self.has_date = true,
                _ => {}
            }
        }
        self.framing = self.framing(length, encoding, method)?;
        self.length = length;
        self.keep_alive = connection.keeps(is_old) && self.framing != Framing::UntilClose;
        self.names_fields = connection.names_fields;
        Ok(())
    }

    fn framing(
        &self,
        length: Option<u64>,
        encoding: Option<&[u8]>,
        method: &Method,
    ) -> Result<Framing, BadAnswer> {
        if self.status == 101 {
            return Err(BadAnswer::Switch);
        }
        if length.is_some() && encoding.is_some() {
            return Err(BadAnswer::LengthAndEncoding);
        }
        let is_bare = self.status < 200 || self.status == 204 || self.status == 304;
        if is_bare || method == Method::HEAD {
            return Ok(Framing::Empty);
        }
        match (encoding, length) {
            (Some(encoding), _) if encoding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Framing::Chunked)
            }
            (Some(_), _) => Err(BadAnswer::Encoding),
            (None, Some(length)) => Ok(Framing::Length(length)),
            (None, None) => Ok(Framing::UntilClose),
        }
    }
}

#[cfg(test)]
mod tests;
