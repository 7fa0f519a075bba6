//! A client's connection and the one that the link opened for it.

use std::{io, net::SocketAddr, time::Duration};

use mio::{Interest, Registry, Token, net::TcpStream};
use socket2::SockRef;

use super::{
    Fault,
    pipe::{Pipe, swallow},
};

pub(super) struct Pair {
    client: TcpStream,
    /// Missing where the client was accepted into a black hole.
    server: Option<TcpStream>,
    up: Pipe,
    down: Pipe,
    /// Something was lost: from now on nothing arrives.
    lost: bool,
}

impl Pair {
    pub(super) fn new(
        mut client: TcpStream,
        target: Option<SocketAddr>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        client.set_nodelay(true)?;
        registry.register(&mut client, token, interest)?;
        let mut server = target.map(TcpStream::connect).transpose()?;
        if let Some(server) = &mut server {
            server.set_nodelay(true)?;
            registry.register(server, token, interest)?;
        }
        let lost = server.is_none();
        Ok(Self { client, server, up: Pipe::default(), down: Pipe::default(), lost })
    }

    /// Ends both connections with an RST.
    pub(super) fn reset(self) {
        for stream in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            // It may have been reset by its other end already.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// A new fault begins: what was held back may go, and counting starts again.
    pub(super) fn begin_again(&mut self) {
        self.up.begin_again();
        self.down.begin_again();
    }

    /// When something that is held back may go.
    pub(super) fn next_due(&self) -> Option<Duration> {
        [self.up.next_due(), self.down.next_due()].into_iter().flatten().min()
    }

    /// Moves what can be moved; false once both ends have nothing to say any more.
    pub(super) fn carry(&mut self, fault: Fault, now: Duration) -> bool {
        let Some(server) = self.server.as_mut().filter(|_| !self.lost) else {
            return swallow(&mut self.client).is_some();
        };
        match fault {
            Fault::Stall => true,
            Fault::BlackHole => {
                let both = [swallow(&mut self.client), swallow(server)];
                // A connection that was idle all the time goes on as if nothing had been.
                self.lost = both != [Some(0), Some(0)];
                true
            }
            _ => {
                let up = self.up.carry(&mut self.client, server, fault.upwards(), now);
                let down = self.down.carry(server, &mut self.client, fault, now);
                up && down && !(self.up.ended() && self.down.ended())
            }
        }
    }
}

impl Fault {
    /// What is done to the client's own bytes: some faults befall answers only.
    fn upwards(self) -> Self {
        match self {
            Self::CutAfter(_) | Self::Garble => Self::None,
            other => other,
        }
    }
}
