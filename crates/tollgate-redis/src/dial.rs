//! Connecting: address, TLS, log-in, and which run of the server it is.
//!
//! The client library gets a stream that is ready and speaks on it; it never connects by itself
//! and has no time-outs of its own, so that there is one place that decides how long anything
//! may take. Its driver runs as a task beside the connection, and its end is noticed without a call.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, Value, aio::MultiplexedConnection,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::AbortHandle,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{ErrorKind, Host, Login, RedisConfig, TlsFiles, fault::Fault};

/// Long enough for a TLS handshake across a continent; short enough that a server which comes back
/// while its packets were still being dropped is found within a second.
const DIAL_MAX: Duration = Duration::from_millis(500);

/// Why a store cannot even be begun.
#[derive(Debug, thiserror::Error)]
pub enum RedisStartError {
    /// A file for TLS cannot be read.
    #[error("{}: {source}", path.display())]
    TlsFile {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file for TLS holds something else.
    #[error("{}: {expected} in PEM is expected", path.display())]
    TlsContent {
        /// Which.
        path: PathBuf,
        /// What should be in it.
        expected: &'static str,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("a client certificate needs both a cert and a key file")]
    TlsHalf,
    /// The certificate and the key are not a pair, or of a kind that is not known.
    #[error("the client certificate cannot be used: {0}")]
    TlsPair(rustls::Error),
    /// The system gave no thread.
    #[error("no background thread: {0}")]
    Thread(io::Error),
}

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Dialer {
    tls: Option<TlsConnector>,
}

/// An open connection. Clones speak on the same one; it closes with the last.
#[derive(Clone)]
pub(crate) struct Connection {
    wire: MultiplexedConnection,
    driver: Arc<Driver>,
}

/// The task that reads and writes.
struct Driver {
    task: AbortHandle,
    ended: Arc<AtomicBool>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The library would wait for replies that may never come.
        self.task.abort();
    }
}

/// Whatever it takes to get a connection that can be used, in bounded time.
pub(crate) async fn within_dialing<T>(
    dialing: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    timeout(DIAL_MAX, dialing).await.unwrap_or_else(|_| {
        let text = format!("no connection within {} ms", DIAL_MAX.as_millis());
        Err(Fault::new(ErrorKind::Connection, text))
    })
}

impl Dialer {
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, RedisStartError> {
        let tls = config.url.tls.then(|| tls(&config.tls)).transpose()?;
        Ok(Self { tls })
    }

    /// Connects and logs in. The connection lives on the runtime this is called on. It may hang:
    /// see [`within_dialing`].
    pub(crate) async fn dial(
        &self,
        host: &Host,
        login: &Login,
        db: u32,
    ) -> Result<Connection, Fault> {
        let mut connection = self.connect(host).await?;
        connection.log_in(login, db).await?;
        Ok(connection)
    }

    async fn connect(&self, host: &Host) -> Result<Connection, Fault> {
        let stream = TcpStream::connect((host.name.as_str(), host.port)).await;
        let stream = stream.map_err(|error| Fault::io(&error))?;
        stream.set_nodelay(true).map_err(|error| Fault::io(&error))?;
        let Some(tls) = &self.tls else { return Connection::over(stream).await };
        let name = ServerName::try_from(host.name.clone())
            .map_err(|_| Fault::new(ErrorKind::Connection, "not a name TLS can check"))?;
        let stream = tls.connect(name, stream).await.map_err(|error| tls_fault(&error))?;
        Connection::over(stream).await
    }
}

impl Connection {
    async fn over<S>(stream: S) -> Result<Self, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Nothing is sent yet, so nothing has to be waited for.
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let (wire, driving) = MultiplexedConnection::new_with_config(&info, stream, config)
            .await
            .map_err(|error| Fault::client(&error))?;
        let ended = Arc::new(AtomicBool::new(false));
        let at_end = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            driving.await;
            at_end.store(true, Ordering::Release);
        });
        Ok(Self { wire, driver: Arc::new(Driver { task: task.abort_handle(), ended }) })
    }

    async fn log_in(&mut self, login: &Login, db: u32) -> Result<(), Fault> {
        if let Some(password) = &login.password {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = &login.user {
                auth.arg(user);
            }
            self.ask(auth.arg(password)).await?;
        }
        if db != 0 {
            self.ask(redis::cmd("SELECT").arg(db)).await?;
        }
        Ok(())
    }

    /// Whether the other side has hung up.
    pub(crate) fn is_closed(&self) -> bool {
        self.driver.ended.load(Ordering::Acquire)
    }

    /// Sends one command and waits for its reply; an error reply is a fault.
    pub(crate) async fn ask(&mut self, command: &Cmd) -> Result<Value, Fault> {
        match self.send(command).await? {
            Value::ServerError(error) => Err(Fault::server(&error)),
            reply => Ok(reply),
        }
    }

    /// Sends one command and waits for its reply, whatever it is.
    pub(crate) async fn send(&mut self, command: &Cmd) -> Result<Value, Fault> {
        self.wire.send_packed_command(command).await.map_err(|error| Fault::client(&error))
    }

    /// Sends several commands in one go and waits for all replies, whatever they are.
    pub(crate) async fn send_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, Fault> {
        let replies = self.wire.send_packed_commands(commands, 0, commands.len()).await;
        replies.map_err(|error| Fault::client(&error))
    }
}

fn tls_fault(error: &io::Error) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => Fault::new(ErrorKind::Connection, format!("TLS: {error}")),
        None => Fault::io(error),
    }
}

/// The authorities and our own certificate, read once. The provider is named, so that nothing
/// depends on which others happen to be compiled in.
fn tls(files: &TlsFiles) -> Result<TlsConnector, RedisStartError> {
    let mut roots = RootCertStore::empty();
    match &files.ca {
        Some(path) => {
            for authority in certificates(path)? {
                roots.add(authority).map_err(|_| not_in(path, CERTIFICATE))?;
            }
        }
        // What the system holds and rustls cannot read is nobody's business here.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(RedisStartError::TlsPair)?
        .with_root_certificates(roots);
    let config = match (&files.cert, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert), Some(key)) => builder
            .with_client_auth_cert(certificates(cert)?, private_key(key)?)
            .map_err(RedisStartError::TlsPair)?,
        _ => return Err(RedisStartError::TlsHalf),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

const CERTIFICATE: &str = "a certificate";

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, RedisStartError> {
    let text = read(path)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(not_in(path, CERTIFICATE)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, RedisStartError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| not_in(path, "a private key"))
}

fn read(path: &Path) -> Result<Vec<u8>, RedisStartError> {
    fs::read(path).map_err(|source| RedisStartError::TlsFile { path: path.to_owned(), source })
}

fn not_in(path: &Path, expected: &'static str) -> RedisStartError {
    RedisStartError::TlsContent { path: path.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// What is said of a server that answers this and hangs up.
    fn complaint(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 1_024]).unwrap();
            client.write_all(answer).unwrap();
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = runtime.block_on(async {
            let stream = TcpStream::connect(addr).await.unwrap();
            Connection::over(stream).await?.ask(&redis::cmd("PING")).await
        });
        server.join().unwrap();
        asked.unwrap_err().to_string()
    }

    #[test]
    fn an_answer_that_is_cut_is_a_lost_connection_and_nonsense_is_told_as_such() {
        for cut in [&b""[..], b"$", b"$5\r", b"$5\r\nab", b"*2\r\n:1\r\n", b":12", b"+O"] {
            assert_eq!(complaint(cut), "connection lost", "{cut:?}");
        }
        assert_eq!(
            complaint(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "an answer that Redis does not give"
        );
    }
}
