//! TLS: whom to trust, and what to show.

mod support;

use support::{check, kind, open, open_with, policy, remaining};
use tollgate_redis::{Pem, RedisOptions};
use tollgate_store::FailureKind;
use tollgate_testkit::Server;

#[tokio::test]
async fn a_server_is_trusted_by_its_certificate() {
    let server = Server::with(|x| x.tls());
    let ca = Some(Pem::Path(server.ca_path()));
    let store = open_with(&server.url(), |x| RedisOptions { ca, ..x });
    let policy = policy("1000/d fixed");
    check(&store, &policy, b"k").await.unwrap();
    let ca = Some(Pem::Bytes(std::fs::read(server.ca_path()).unwrap()));
    let by_address = server.url().replace("localhost", "127.0.0.1");
    let store = open_with(&by_address, |x| RedisOptions { ca, ..x });
    assert_eq!(remaining(&store, &policy, b"k").await, 999);

    // Who does not trust it, is not served.
    let refused = open(&server.url()).ready().await;
    let said = refused.as_ref().unwrap_err().to_string();
    assert!(said.contains("TLS"), "{said}");
    assert_eq!(kind(refused), FailureKind::Unreachable);
    for ca in [Pem::Bytes(b"nothing".to_vec()), Pem::Path("/nowhere".into())] {
        let store = open_with(&server.url(), |x| RedisOptions { ca: Some(ca), ..x });
        let said = store.ready().await.unwrap_err().to_string();
        assert!(said.contains("TLS ca"), "{said}");
    }
    let plain = open(&server.url().replace("rediss:", "redis:"));
    plain.ready().await.unwrap_err();
}

#[tokio::test]
async fn a_server_may_ask_for_a_certificate() {
    let server = Server::with(|x| x.tls_auth_clients("yes"));
    let ca = Some(Pem::Path(server.ca_path()));
    let cert = Some(Pem::Path(server.client_cert_path()));
    let key = Some(Pem::Path(server.client_key_path()));
    let anonymous = open_with(&server.url(), |x| RedisOptions { ca: ca.clone(), ..x });
    anonymous.ready().await.unwrap_err();
    let store = open_with(&server.url(), |x| RedisOptions { ca, cert, key, ..x });
    check(&store, &policy("1/d fixed"), b"k").await.unwrap();
}
