//! A control plane that speaks TLS.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tollgate_server::XdsTls;

use super::configs::one;
use super::plane::Plane;
use super::{start_changed, until_ready};
use crate::certificates::{Authority, der};

/// A control plane whose certificate is for `localhost`, and where it is.
async fn plane(authority: &Authority, asks_for_certificates: bool) -> Plane {
    let pair = authority.sign("plane");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = if asks_for_certificates {
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
    Plane::start_at("127.0.0.1:0".parse().unwrap(), Some(Arc::new(tls))).await
}

fn trusting(authority: &Authority) -> XdsTls {
    XdsTls {
        ca: Some(authority.write("ca.pem", &authority.pem)),
        san: Some("localhost".to_owned()),
        ..XdsTls::default()
    }
}

#[tokio::test]
async fn a_server_must_have_the_right_name_and_authority() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut plane = plane(&authority, false).await;
    let named =
        |name: Option<&str>| XdsTls { san: name.map(str::to_owned), ..trusting(&authority) };
    for (tls, why) in [
        (trusting(&other), "invalid peer certificate: "),
        (named(None), "invalid peer certificate: certificate not valid for name"),
        (named(Some("other.test")), "invalid peer certificate: certificate not valid for name"),
        (XdsTls { ca: Some(PathBuf::from("/nowhere")), ..XdsTls::default() }, "ca: /nowhere: "),
    ] {
        let daemon = start_changed(&plane, |x| x.tls = Some(tls)).await;
        until_ready(&daemon, 503, why).await;
    }
    let plain = start_changed(&plane, |_| {}).await;
    until_ready(&plain, 503, "is unavailable: ").await;
    let daemon = start_changed(&plane, |x| x.tls = Some(trusting(&authority))).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
}

#[tokio::test]
async fn a_certificate_is_shown_and_read_anew_for_each_connection() {
    let authority = Authority::new();
    let mut plane = plane(&authority, true).await;
    let shown = |xds_tls: &mut XdsTls| {
        xds_tls.cert = Some(authority.directory.join("cert.pem"));
        xds_tls.key = Some(authority.directory.join("key.pem"));
    };
    let mut tls = trusting(&authority);
    let daemon = start_changed(&plane, |x| x.tls = Some(tls.clone())).await;
    until_ready(&daemon, 503, "is unavailable: ").await;
    shown(&mut tls);
    authority.write_pair(&Authority::new().sign("stranger"));
    let daemon = start_changed(&plane, |x| x.tls = Some(tls)).await;
    until_ready(&daemon, 503, "is unavailable: ").await;
    authority.write_pair(&authority.sign("edge"));
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
}
