//! TLS between the daemon and the control plane.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tollgate_daemon::XdsTls;

use super::control_plane::ControlPlane;
use super::{open_and_push, start_with_options, wait_for_readiness};
use crate::support::certificates::{Authority, der};

/// Starts a control plane whose certificate is for `localhost`.
async fn start_plane(authority: &Authority, requires_certificates: bool) -> ControlPlane {
    let pair = authority.sign("plane");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = if requires_certificates {
        let mut roots = RootCertStore::empty();
        roots.add(der(&authority.pem)).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let mut tls = builder.with_single_cert(vec![der(&pair.cert)], key).unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    ControlPlane::start_at("127.0.0.1:0".parse().unwrap(), Some(Arc::new(tls))).await
}

/// TLS options that trust this authority.
fn trusting(authority: &Authority) -> XdsTls {
    XdsTls {
        ca: Some(authority.write_ca()),
        san: Some("localhost".to_owned()),
        ..XdsTls::default()
    }
}

#[tokio::test]
async fn the_server_needs_a_trusted_certificate_with_the_right_name() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut plane = start_plane(&authority, false).await;
    let named =
        |name: Option<&str>| XdsTls { san: name.map(str::to_owned), ..trusting(&authority) };
    for (tls, reason) in [
        (trusting(&other), "invalid peer certificate: "),
        (named(None), "invalid peer certificate: certificate not valid for name"),
        (named(Some("other.test")), "invalid peer certificate: certificate not valid for name"),
        (XdsTls { ca: Some(PathBuf::from("/nowhere")), ..XdsTls::default() }, "ca: /nowhere: "),
    ] {
        let daemon = start_with_options(&plane, |options| options.tls = Some(tls)).await;
        wait_for_readiness(&daemon, 503, reason).await;
    }
    let plain = start_with_options(&plane, |_| {}).await;
    wait_for_readiness(&plain, 503, "is unavailable: ").await;
    let daemon =
        start_with_options(&plane, |options| options.tls = Some(trusting(&authority))).await;
    let _session = open_and_push(&mut plane, "1", "k1=v1 3/DAY").await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
}

#[tokio::test]
async fn the_client_certificate_is_read_for_each_connection() {
    let authority = Authority::new();
    let mut plane = start_plane(&authority, true).await;
    let mut tls = trusting(&authority);
    let daemon = start_with_options(&plane, |options| options.tls = Some(tls.clone())).await;
    wait_for_readiness(&daemon, 503, "is unavailable: ").await;
    tls.cert = Some(authority.directory.join("cert.pem"));
    tls.key = Some(authority.directory.join("key.pem"));
    authority.write_pair(&Authority::new().sign("stranger"));
    let daemon = start_with_options(&plane, |options| options.tls = Some(tls)).await;
    wait_for_readiness(&daemon, 503, "is unavailable: ").await;
    authority.write_pair(&authority.sign("edge"));
    let _session = open_and_push(&mut plane, "1", "k1=v1 3/DAY").await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
}
