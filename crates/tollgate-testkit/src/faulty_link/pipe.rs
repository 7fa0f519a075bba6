//! One direction of a connection: bytes, each with the time at which it may go on.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    time::Duration,
};

use mio::net::TcpStream;

use super::Fault;

/// What a slow link holds at most; more stays with the sender, as on a real one.
const HELD_MAX: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Pipe {
    held: VecDeque<Piece>,
    held_bytes: usize,
    /// Passed on since the fault began.
    passed: u64,
    source_ended: bool,
    end_passed_on: bool,
}

struct Piece {
    due: Duration,
    bytes: VecDeque<u8>,
}

impl Pipe {
    /// Moves what can be moved; false if the connection is broken or is to be cut.
    pub(super) fn carry(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        fault: Fault,
        now: Duration,
    ) -> bool {
        self.take_in(from, fault, now) && self.give_out(to, fault, now)
    }

    pub(super) fn begin_again(&mut self) {
        self.passed = 0;
        self.held.iter_mut().for_each(|piece| piece.due = Duration::ZERO);
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.held.front().map(|piece| piece.due)
    }

    pub(super) fn ended(&self) -> bool {
        self.end_passed_on
    }

    fn take_in(&mut self, from: &mut TcpStream, fault: Fault, now: Duration) -> bool {
        let mut buffer = [0; 16 * 1024];
        while self.held_bytes < HELD_MAX && !self.source_ended {
            match from.read(&mut buffer) {
                Ok(0) => self.source_ended = true,
                Ok(count) => self.hold(&buffer[..count], fault, now),
                Err(error) if waits(error.kind()) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn hold(&mut self, bytes: &[u8], fault: Fault, now: Duration) {
        self.held_bytes += bytes.len();
        match fault {
            Fault::Throttle { bytes_per_second } => self.hold_slowly(bytes, bytes_per_second, now),
            Fault::Delay(delay) => self.push(bytes.iter().copied().collect(), now + delay),
            Fault::Garble => self.push(bytes.iter().map(|byte| byte ^ 0x2a).collect(), now),
            _ => self.push(bytes.iter().copied().collect(), now),
        }
    }

    /// A hundred pieces a second, or one for each byte where the link is slower than that.
    fn hold_slowly(&mut self, bytes: &[u8], bytes_per_second: u32, now: Duration) {
        let size = (bytes_per_second / 100).max(1);
        let pause = Duration::from_secs(1) * size / bytes_per_second;
        let mut due = self.held.back().map_or(now, |last| last.due.max(now));
        for piece in bytes.chunks(size as usize) {
            due += pause;
            self.push(piece.iter().copied().collect(), due);
        }
    }

    fn push(&mut self, bytes: VecDeque<u8>, due: Duration) {
        self.held.push_back(Piece { due, bytes });
    }

    fn give_out(&mut self, to: &mut TcpStream, fault: Fault, now: Duration) -> bool {
        while let Some(piece) = self.held.front_mut().filter(|piece| piece.due <= now) {
            let allowed = match fault {
                Fault::CutAfter(bytes) => bytes - self.passed.min(bytes),
                _ => u64::MAX,
            };
            if allowed == 0 {
                return false;
            }
            let (bytes, _) = piece.bytes.as_slices();
            let count = usize::try_from(allowed).map_or(bytes.len(), |most| most.min(bytes.len()));
            match to.write(&bytes[..count]) {
                Ok(count) => self.gone(count),
                Err(error) if waits(error.kind()) => return true,
                Err(_) => return false,
            }
        }
        if self.source_ended && self.held.is_empty() && !self.end_passed_on {
            self.end_passed_on = true;
            // The other end may be gone already.
            let _ = to.shutdown(Shutdown::Write);
        }
        true
    }

    fn gone(&mut self, count: usize) {
        self.passed += count as u64;
        self.held_bytes -= count;
        if let Some(piece) = self.held.front_mut() {
            piece.bytes.drain(..count);
            if piece.bytes.is_empty() {
                self.held.pop_front();
            }
        }
    }
}

/// Reads all there is and forgets it: how much, or nothing once the other end is gone.
pub(super) fn swallow(from: &mut TcpStream) -> Option<usize> {
    let mut buffer = [0; 16 * 1024];
    let mut swallowed = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => swallowed += count,
            Err(error) if waits(error.kind()) => return Some(swallowed),
            Err(_) => return None,
        }
    }
}

/// Nothing now, perhaps later. A connection that is being opened is not connected yet.
fn waits(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
