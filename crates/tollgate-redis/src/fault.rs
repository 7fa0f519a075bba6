//! Why a server gave no answer: a kind to count, and the user's words.

use std::{fmt, io, sync::Arc, time::Duration};

use redis::{RedisError, ServerError};
use tollgate_store::StoreError;

/// What went wrong, as metrics tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// No connection, or it was lost.
    Connection,
    /// No answer in time.
    Timeout,
    /// User or password are wrong, or the user may not do this.
    Denied,
    /// It is a replica.
    ReadOnly,
    /// It has no memory left.
    OutOfMemory,
    /// It is still reading its data.
    Loading,
    /// The cluster or its master cannot answer now.
    ClusterDown,
    /// Too many requests wait already.
    Overloaded,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// Every kind, for those who count by kind.
    pub const ALL: [Self; 9] = [
        Self::Connection,
        Self::Timeout,
        Self::Denied,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Loading,
        Self::ClusterDown,
        Self::Overloaded,
        Self::Other,
    ];

    /// The kind as a label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::Loading => "loading",
            Self::ClusterDown => "cluster_down",
            Self::Overloaded => "overloaded",
            Self::Other => "other",
        }
    }
}

const NEEDS_LOGIN: &str = "a password is needed";

/// A failure with its cause in the user's words. Many requests of one call share it.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    text: Arc<str>,
    /// No connection can be had at all.
    unreachable: bool,
}

impl Fault {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<Arc<str>>) -> Self {
        Self { kind, text: text.into(), unreachable: false }
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::new(ErrorKind::Timeout, format!("timed out after {} ms", after.as_millis()))
    }

    pub(crate) fn io(error: &io::Error) -> Self {
        let text = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                "connection reset".to_owned()
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                "connection lost".to_owned()
            }
            _ => plain(&error.to_string()),
        };
        Self::new(ErrorKind::Connection, text)
    }

    /// What the client library says of a connection.
    pub(crate) fn client(error: &RedisError) -> Self {
        let source = std::error::Error::source(error);
        match source.and_then(|source| source.downcast_ref::<io::Error>()) {
            Some(error) => Self::io(error),
            None if error.is_io_error() => Self::new(ErrorKind::Connection, "connection lost"),
            None => Self::unread(&error.to_string()),
        }
    }

    /// What the client library could not make sense of. An answer that ends in its middle is one
    /// to it as well; its words are of no use to who runs a server.
    fn unread(error: &str) -> Self {
        match (error.contains("end of input"), error.contains("Parse error")) {
            (true, _) => Self::new(ErrorKind::Connection, "connection lost"),
            (_, true) => Self::new(ErrorKind::Other, "an answer that Redis does not give"),
            _ => Self::new(ErrorKind::Other, plain(error)),
        }
    }

    /// What the server says.
    pub(crate) fn server(error: &ServerError) -> Self {
        let details = error.details().unwrap_or_default();
        let kind = kind_of(error.code(), details);
        let text = match (kind, error.code()) {
            (ErrorKind::Denied, "WRONGPASS") => "wrong user name or password".to_owned(),
            (ErrorKind::Denied, "NOAUTH") => NEEDS_LOGIN.to_owned(),
            (_, "ERR") => without_script(details).to_owned(),
            (_, code) => format!("{code} {}", without_script(details)).trim_end().to_owned(),
        };
        Self::new(kind, text)
    }

    /// The same, with who said so.
    pub(crate) fn at(&self, who: impl fmt::Display) -> Self {
        Self::new(self.kind, format!("{who}: {}", self.text))
    }

    /// Whether nothing at all may be asked before logging in.
    pub(crate) fn needs_login(&self) -> bool {
        &*self.text == NEEDS_LOGIN
    }

    /// The same, met while connecting.
    pub(crate) fn while_connecting(self) -> Self {
        Self { unreachable: true, ..self }
    }

    /// Whether a connection was lost that may be had again.
    pub(crate) fn is_lost(&self) -> bool {
        self.kind == ErrorKind::Connection && !self.unreachable
    }

    /// Whether nobody can be reached, so that there is no use in asking.
    pub(crate) const fn is_unreachable(&self) -> bool {
        self.unreachable
    }
}

/// What a command said, without where in which script: no user wrote it, and it is the same for all.
fn without_script(details: &str) -> &str {
    // Redis before 7 puts it in front, later ones behind.
    let details = match details.starts_with("Error running script") {
        true => details.rsplit_once(": -").map_or(details, |(_, said)| said),
        false => details,
    };
    details.split_once(" script: ").map_or(details, |(said, _)| said)
}

/// By the code, or by the first word a script passes on from the command that failed in it.
fn kind_of(code: &str, details: &str) -> ErrorKind {
    match code {
        "WRONGPASS" | "NOAUTH" | "NOPERM" => ErrorKind::Denied,
        "READONLY" => ErrorKind::ReadOnly,
        "OOM" => ErrorKind::OutOfMemory,
        "LOADING" => ErrorKind::Loading,
        "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK" => ErrorKind::ClusterDown,
        // Redis before 7 wraps what a command in a script said.
        _ if details.contains("-OOM") => ErrorKind::OutOfMemory,
        _ if details.contains("-READONLY") => ErrorKind::ReadOnly,
        _ if details.contains("invalid password") => ErrorKind::Denied,
        _ => ErrorKind::Other,
    }
}

/// Without the system's number, which says nothing to a user.
fn plain(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_lowercase()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::Unavailable(fault.text.as_ref().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_ends_in_its_middle_is_a_lost_connection() {
        let check = |error: &str, expected: &str| assert_eq!(&*Fault::unread(error).text, expected);
        let cut = "Incompatible type - Parse error at 2\nUnexpected end of input\nExpected digit\n";
        check(cut, "connection lost");
        let garbled = "Incompatible type - Parse error at 0\nUnexpected `7`\n";
        check(garbled, "an answer that Redis does not give");
    }

    #[test]
    fn a_user_is_spared_the_place_in_the_script() {
        let check = |details: &str, expected: &str| assert_eq!(without_script(details), expected);
        let full = "command not allowed when used memory > 'maxmemory'.";
        check(full, full);
        check(&format!("{full} script: 629e25, on @user_script:3."), full);
        let old = "Error running script (call to f_6e): @user_script:3: @user_script: 3: -OOM ";
        check(&format!("{old}{full}"), &format!("OOM {full}"));
    }
}
