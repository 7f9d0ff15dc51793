//! TLS with the generated certificates.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tollgate_testkit::{Connection, Server};

#[test]
fn server_certificate_is_signed_by_its_authority() {
    let server = Server::with(|config| config.tls());
    assert_eq!(server.url(), format!("rediss://localhost:{}", server.port()));
    assert_eq!(ping(&server, false).unwrap(), "PONG");
    assert_eq!(server.command(&["PING"]).text(), "PONG");
    assert!(Connection::to(&server.address()).unwrap().command(&["PING"]).is_err());
}

#[test]
fn client_certificate_is_required_if_configured() {
    let server = Server::with(|config| config.tls_auth_clients("yes"));
    assert_eq!(ping(&server, true).unwrap(), "PONG");
    ping(&server, false).unwrap_err();
}

fn ping(server: &Server, with_certificate: bool) -> io::Result<String> {
    let mut connection = Connection::over(stream(server, with_certificate)?);
    Ok(connection.command(&["PING"])?.text())
}

#[expect(clippy::unwrap_used, reason = "it is part of the tests")]
fn stream(
    server: &Server,
    with_certificate: bool,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(server.ca_path()).unwrap()).unwrap();
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let config = if with_certificate {
        let certificate = CertificateDer::from_pem_file(server.client_cert_path()).unwrap();
        let key = PrivateKeyDer::from_pem_file(server.client_key_path()).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    Ok(StreamOwned::new(client, TcpStream::connect(("localhost", server.port()))?))
}
