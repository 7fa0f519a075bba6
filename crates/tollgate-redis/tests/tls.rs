//! TLS: whom we trust, and who we say we are.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;

use std::{fs, sync::Arc};

use node::{complaint, config, daily, passes, runtime};
use tollgate_redis::{RedisConfig, RedisStore, TlsFiles};
use tollgate_testkit::servers::{Redis, RedisOptions};

fn store(server: &Redis, tls: TlsFiles) -> Arc<RedisStore> {
    let config = RedisConfig { tls, ..config(&server.tls_url()) };
    RedisStore::start(config, Arc::new(())).unwrap()
}

fn trusting(server: &Redis) -> TlsFiles {
    TlsFiles { ca: Some(server.tls_files().ca.clone()), ..TlsFiles::default() }
}

// part of: B1
#[test]
fn a_server_is_trusted_by_its_authority() {
    let server = RedisOptions::new().tls().start().unwrap();
    let limit = daily("p", 100);
    let known = store(&server, trusting(&server));
    assert!(runtime().block_on(passes(&known, &limit, "ann")));
    let stranger = store(&server, TlsFiles::default());
    let cause = runtime().block_on(complaint(&stranger, &limit, "ann"));
    assert_eq!(cause, "TLS: invalid peer certificate: UnknownIssuer");
}

#[test]
fn a_server_may_ask_for_our_certificate() {
    let server = RedisOptions::new().tls_with_client_certificates().start().unwrap();
    let limit = daily("p", 100);
    let files = server.tls_files();
    let with_certificate = TlsFiles {
        cert: Some(files.client_cert.clone()),
        key: Some(files.client_key.clone()),
        ..trusting(&server)
    };
    let known = store(&server, with_certificate);
    assert!(runtime().block_on(passes(&known, &limit, "ann")));
    let stranger = store(&server, trusting(&server));
    let cause = runtime().block_on(complaint(&stranger, &limit, "ann"));
    assert!(!cause.is_empty());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let start = |tls: TlsFiles| {
        let config = RedisConfig { tls, ..config("rediss://127.0.0.1:1") };
        RedisStore::start(config, Arc::new(())).err().unwrap().to_string()
    };
    let ca = folder.path().join("ca.pem");
    let missing = start(TlsFiles { ca: Some(ca.clone()), ..TlsFiles::default() });
    assert_eq!(missing, format!("{}: No such file or directory (os error 2)", ca.display()));
    fs::write(&ca, "hello").unwrap();
    let wrong = start(TlsFiles { ca: Some(ca.clone()), ..TlsFiles::default() });
    assert_eq!(wrong, format!("{}: a certificate in PEM is expected", ca.display()));
    let half = start(TlsFiles { cert: Some(ca), ..TlsFiles::default() });
    assert_eq!(half, "a client certificate needs both a cert and a key file");
}
