//! Certificates for one server and its clients, made for the occasion.
//!
//! One authority signs both, and nobody else trusts it; the files lie in the server's own folder
//! and go away with it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Where the files are, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The certificate of the server, for `127.0.0.1` and `localhost`.
    pub server_cert: PathBuf,
    /// Its key.
    pub server_key: PathBuf,
    /// A certificate for clients.
    pub client_cert: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
}

impl TlsFiles {
    /// Makes an authority and both certificates in `folder`.
    pub fn make(folder: &Path) -> io::Result<Self> {
        let files = Self::named(folder);
        let mut params = named(&["test authority"]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, key()?).map_err(io::Error::other)?;
        fs::write(&files.ca, authority.pem())?;
        let sign = |names: &[&str], cert: &Path, cert_key: &Path| {
            let pair = key()?;
            let signed = named(names).signed_by(&pair, &authority).map_err(io::Error::other)?;
            fs::write(cert, signed.pem())?;
            fs::write(cert_key, pair.serialize_pem())
        };
        sign(&["127.0.0.1", "localhost"], &files.server_cert, &files.server_key)?;
        sign(&["client"], &files.client_cert, &files.client_key)?;
        Ok(files)
    }

    fn named(folder: &Path) -> Self {
        Self {
            ca: folder.join("ca.pem"),
            server_cert: folder.join("server.pem"),
            server_key: folder.join("server.key"),
            client_cert: folder.join("client.pem"),
            client_key: folder.join("client.key"),
        }
    }
}

fn named(names: &[&str]) -> CertificateParams {
    let first = names[0];
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("our own names are plain ASCII");
    // Without names of their own, OpenSSL takes what the authority signed for the authority.
    params.distinguished_name.push(DnType::CommonName, first);
    params
}

fn key() -> io::Result<KeyPair> {
    KeyPair::generate().map_err(io::Error::other)
}
