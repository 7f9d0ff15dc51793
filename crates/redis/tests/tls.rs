//! TLS: server certificates and client certificates.

mod support;

use support::{check, kind, open, open_with, policy, remaining};
use tollgate_redis::{Pem, RedisOptions};
use tollgate_state::FailureKind;
use tollgate_testkit::Server;

#[tokio::test]
async fn a_server_certificate_is_verified_against_the_ca_bundle() {
    let server = Server::with(|server| server.tls());
    let ca = Some(Pem::Path(server.ca_path()));
    let store = open_with(&server.url(), |options| RedisOptions { ca, ..options });
    let policy = policy("1000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    let ca = Some(Pem::Bytes(std::fs::read(server.ca_path()).unwrap()));
    let by_address = server.url().replace("localhost", "127.0.0.1");
    let store = open_with(&by_address, |options| RedisOptions { ca, ..options });
    assert_eq!(remaining(&store, &policy, b"k").await, 999);

    // The system's roots do not contain the CA.
    let untrusted = open(&server.url()).ready().await;
    let message = untrusted.as_ref().unwrap_err().to_string();
    assert!(message.contains("TLS"), "{message}");
    assert_eq!(kind(untrusted), FailureKind::Unreachable);
    for ca in [Pem::Bytes(b"nothing".to_vec()), Pem::Path("/nowhere".into())] {
        let store = open_with(&server.url(), |options| RedisOptions { ca: Some(ca), ..options });
        let message = store.ready().await.unwrap_err().to_string();
        assert!(message.contains("TLS ca"), "{message}");
    }
    let plain = open(&server.url().replace("rediss:", "redis:"));
    plain.ready().await.unwrap_err();
}

#[tokio::test]
async fn a_client_certificate_is_sent_to_a_server_that_requires_one() {
    let server = Server::with(|server| server.tls_auth_clients("yes"));
    let ca = Some(Pem::Path(server.ca_path()));
    let cert = Some(Pem::Path(server.client_cert_path()));
    let key = Some(Pem::Path(server.client_key_path()));
    let anonymous = open_with(&server.url(), |options| RedisOptions { ca: ca.clone(), ..options });
    anonymous.ready().await.unwrap_err();
    let store = open_with(&server.url(), |options| RedisOptions { ca, cert, key, ..options });
    let _ = check(&store, &policy("1/d fixed"), b"k").await.unwrap();
}
