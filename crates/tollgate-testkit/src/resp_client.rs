//! One blocking connection to a Redis, for tests that set something up or look at what is there.
//!
//! It sends a command and reads its reply; nothing is pooled, retried or mapped. Only the second
//! version of the protocol is spoken, which every server understands.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::wait::PATIENCE;

/// What a server replied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK` and its like.
    Simple(String),
    /// `-ERR …`, without the dash.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Several replies.
    Array(Vec<Reply>),
    /// Nothing.
    Nil,
}

impl Reply {
    /// What it says, as text; of an array, its parts with spaces between.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Array(parts) => parts.iter().map(Self::text).collect::<Vec<_>>().join(" "),
            Self::Nil => String::new(),
        }
    }

    /// The number it is.
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            other => other.text().parse().unwrap(),
        }
    }

    /// The parts of an array; nothing of anything else.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Array(parts) => parts,
            _ => &[],
        }
    }

    /// Itself; panics with the server's words if it is an error.
    #[track_caller]
    pub fn fine(self) -> Self {
        assert!(!matches!(self, Self::Error(_)), "{}", self.text());
        self
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct RespClient {
    stream: BufReader<TcpStream>,
}

impl RespClient {
    /// Connects; from now on nothing waits longer than [`PATIENCE`].
    pub fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command given as words with spaces between, and reads its reply.
    pub fn ask(&mut self, command: &str) -> io::Result<Reply> {
        let words: Vec<_> = command.split_whitespace().collect();
        self.command(&words)
    }

    /// Sends a command whose words may hold anything, and reads its reply.
    pub fn command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Only sends it.
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes)
    }

    /// The next reply.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| broken(&line))?;
        let number = || rest.parse::<i64>().map_err(|_| broken(&line));
        match kind {
            "+" => Ok(Reply::Simple(rest.to_owned())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            ":" => Ok(Reply::Integer(number()?)),
            "$" => usize::try_from(number()?).map_or(Ok(Reply::Nil), |length| self.bulk(length)),
            "*" => usize::try_from(number()?).map_or(Ok(Reply::Nil), |count| self.array(count)),
            _ => Err(broken(&line)),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let whole = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(whole.to_owned())
    }

    fn bulk(&mut self, length: usize) -> io::Result<Reply> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Reply::Bulk(bytes))
    }

    fn array(&mut self, count: usize) -> io::Result<Reply> {
        (0..count).map(|_| self.receive()).collect::<io::Result<_>>().map(Reply::Array)
    }
}

fn broken(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {line:?}"))
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// What a client reads of a server that says `bytes` and hangs up.
    fn reads(bytes: &'static str) -> io::Result<Reply> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || listener.accept().unwrap().0.write_all(bytes.as_bytes()).unwrap());
        RespClient::open(addr)?.receive()
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        assert_eq!(reads("+OK\r\n").unwrap(), Reply::Simple("OK".into()));
        assert_eq!(reads("-ERR no\r\n").unwrap(), Reply::Error("ERR no".into()));
        let nested = reads("*4\r\n:7\r\n$3\r\na\nb\r\n$-1\r\n*0\r\n").unwrap();
        let parts =
            vec![Reply::Integer(7), Reply::Bulk(b"a\nb".into()), Reply::Nil, Reply::Array(vec![])];
        assert_eq!(nested, Reply::Array(parts));
    }

    #[test]
    fn a_reply_cut_short_is_an_error() {
        assert!(reads("$5\r\nab").is_err());
        assert!(reads("+O").is_err());
        assert_eq!(reads("what\r\n").unwrap_err().to_string(), "not a reply: \"what\"");
    }
}
