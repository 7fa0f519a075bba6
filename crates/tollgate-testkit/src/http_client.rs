//! One HTTP/1.1 connection whose bytes a test writes itself.
//!
//! A real client would mend or refuse just what tests want to send: smuggled requests, bodies cut
//! short, several requests at once. Here the request is text and goes out as it is.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

pub use crate::response::Response;
use crate::{
    response::{Received, read},
    wait::PATIENCE,
};

/// Far above any body in our tests; more is a server that does not stop.
const RESPONSE_MAX: usize = 64 * 1024 * 1024;

/// A connection and what was received on it but not yet read.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    ended: bool,
}

impl Connection {
    /// Connects; from now on nothing waits longer than [`PATIENCE`].
    pub fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, received: Vec::new(), ended: false })
    }

    /// The address the server sees.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Sends these bytes and nothing else.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Ends our direction only, as a client that has said all and still listens.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// The next response, an interim one (`100 Continue`) included.
    pub fn receive(&mut self) -> io::Result<Response> {
        self.receive_to(false)
    }

    /// The next response when the request was a HEAD.
    pub fn receive_to_head(&mut self) -> io::Result<Response> {
        self.receive_to(true)
    }

    /// Sends a request and gives its response.
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> io::Result<Response> {
        self.send(request)?;
        self.receive()
    }

    /// Everything the server still sends until it ends the connection.
    pub fn receive_rest(&mut self) -> io::Result<Vec<u8>> {
        while self.receive_more()? {}
        Ok(std::mem::take(&mut self.received))
    }

    /// Waits for the first byte of whatever comes next, or gives false if it is the end.
    pub fn receive_any(&mut self) -> io::Result<bool> {
        Ok(!self.received.is_empty() || self.receive_more()?)
    }

    fn receive_to(&mut self, head: bool) -> io::Result<Response> {
        loop {
            match read(&self.received, head) {
                Received::Whole(response, used) => {
                    self.received.drain(..used);
                    return Ok(response);
                }
                Received::UntilEnd(response) if self.ended => {
                    self.received.clear();
                    return Ok(response);
                }
                Received::Broken(why) => return Err(self.broken(why)),
                Received::Part if self.ended => return Err(self.broken("cut short")),
                Received::Part | Received::UntilEnd(_) => self.receive_more()?,
            };
        }
    }

    /// Whether anything came; false is the end of the connection.
    fn receive_more(&mut self) -> io::Result<bool> {
        if self.received.len() > RESPONSE_MAX {
            return Err(self.broken("too long"));
        }
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer)?;
        self.received.extend_from_slice(&buffer[..count]);
        self.ended = count == 0;
        Ok(count > 0)
    }

    fn broken(&self, why: &str) -> io::Error {
        let shown = self.received.len().min(500);
        let text = String::from_utf8_lossy(&self.received[..shown]);
        io::Error::new(io::ErrorKind::InvalidData, format!("response {why}: {text:?}"))
    }
}

/// Sends one request on a connection of its own and gives the final response.
pub fn exchange(addr: SocketAddr, request: impl AsRef<[u8]>) -> io::Result<Response> {
    let mut connection = Connection::open(addr)?;
    let mut response = connection.exchange(request)?;
    while response.is_interim() {
        response = connection.receive()?;
    }
    Ok(response)
}

/// A GET without a body on a connection of its own.
pub fn get(addr: SocketAddr, target: &str) -> io::Result<Response> {
    exchange(addr, format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\n\r\n"))
}

/// A POST of JSON on a connection of its own.
pub fn post_json(addr: SocketAddr, target: &str, json: &str) -> io::Result<Response> {
    exchange(addr, json_request(addr, target, json))
}

/// The bytes of a POST of JSON.
pub fn json_request(addr: SocketAddr, target: &str, json: &str) -> String {
    let length = json.len();
    format!(
        "POST {target} HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{json}"
    )
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// A server that reads one request head and then writes `answer`.
    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        addr
    }

    #[test]
    fn interim_responses_come_before_the_final_one() {
        let addr = answering(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        );
        assert_eq!(get(addr, "/").unwrap().text(), "hi");
    }

    #[test]
    fn a_body_without_length_is_read_to_the_end() {
        let addr = answering("HTTP/1.1 200 OK\r\n\r\nall of it");
        assert_eq!(get(addr, "/").unwrap().text(), "all of it");
    }

    #[test]
    fn a_response_cut_short_is_quoted() {
        let addr = answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi");
        assert_eq!(
            get(addr, "/").unwrap_err().to_string(),
            "response cut short: \"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nhi\""
        );
    }
}
