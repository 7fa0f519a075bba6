//! Where a configuration comes from, and reading it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use tollgate_rules::{Config, Mistakes};

use crate::{quickstart, stores};

/// A file, or the configuration that is built in.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// No file was named.
    Quickstart,
    /// The file of this name.
    File(PathBuf),
}

/// A configuration and the text it was read from.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) config: Config,
    pub(crate) text: String,
}

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The file cannot be opened or is no text.
    Unreadable(PathBuf, io::Error),
    /// The file says what cannot be done.
    Mistaken(Mistakes),
    /// The file asks for nothing.
    NoListener(String),
    /// The file names a store that cannot be opened, whoever is there.
    Store(String, anyhow::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, cause) if cause.kind() == io::ErrorKind::InvalidData => {
                write!(f, "{}: is no text in UTF-8", path.display())
            }
            Self::Unreadable(path, cause) => {
                write!(f, "{}: cannot be read: {cause}", path.display())
            }
            Self::Mistaken(mistakes) => mistakes.fmt(f),
            Self::Store(source, cause) => write!(f, "{source}: store: {cause:#}"),
            Self::NoListener(source) => write!(
                f,
                "{source}: opens no listener: name `listen.gateway` or `listen.http`, for example \
                 `listen: {{gateway: 127.0.0.1:8080}}`"
            ),
        }
    }
}

impl Source {
    /// Reads the configuration; `run`, `check` and every reload come this way.
    pub(crate) fn read(&self) -> Result<Read, ReadError> {
        let text = self.text()?;
        let config = self.parse(&text)?;
        Ok(Read { config, text })
    }

    /// The text as it is now.
    pub(crate) fn text(&self) -> Result<String, ReadError> {
        match self {
            Self::Quickstart => Ok(quickstart::CONFIG.to_owned()),
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|cause| ReadError::Unreadable(path.clone(), cause)),
        }
    }

    /// What a text says.
    pub(crate) fn parse(&self, text: &str) -> Result<Config, ReadError> {
        let env = |name: &str| std::env::var(name).ok();
        let config =
            tollgate_rules::read(&self.to_string(), text, &env).map_err(ReadError::Mistaken)?;
        stores::check(&config.store).map_err(|cause| ReadError::Store(self.to_string(), cause))?;
        if config.listen.gateway.is_none() && config.listen.http.is_none() {
            return Err(ReadError::NoListener(self.to_string()));
        }
        Ok(config)
    }

    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Quickstart => None,
            Self::File(path) => Some(path),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quickstart => f.write_str("quickstart"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
