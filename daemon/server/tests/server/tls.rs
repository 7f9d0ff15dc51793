//! TLS: what is shown and what must be, files that change, and peers that do not come to an end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_server::Tls;

use crate::attack::assert_others_are_served;
use crate::certificates::{Authority, Pair, der};
use crate::client::Client;
use crate::daemon::{Daemon, POLICIES};

const BODY: &str = r#"{"policy":"bucket","key":"t","cost":0}"#;

async fn start(tls: &Tls, limits: &str) -> Daemon {
    let yaml = format!("limits: {{ {limits} }}\n{POLICIES}");
    Daemon::start_at(&yaml, |http| http.with_tls(Some(tls.clone()))).await
}

pub(crate) async fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<Client<TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map(Client)
}

/// Whether the daemon shows this certificate.
fn shows(client: &Client<TlsStream<TcpStream>>, pair: &Pair) -> bool {
    client.0.get_ref().1.peer_certificates().unwrap()[0] == der(&pair.cert)
}

#[tokio::test]
async fn both_protocols_are_agreed_on_and_spoken() {
    let authority = Authority::new();
    let tls = Tls::open(authority.write_pair(&authority.sign("daemon"))).unwrap();
    let daemon = start(&tls, "").await;
    for spoken in [&[][..], &[&b"http/1.1"[..]]] {
        let mut client = connect(daemon.address, &authority.client(None, spoken)).await.unwrap();
        assert_eq!(client.0.get_ref().1.alpn_protocol(), spoken.first().copied());
        for _ in 0..2 {
            assert_eq!(client.post("/v1/check", BODY).await.unwrap().status, 200);
        }
    }
    let config = authority.client(None, &[b"h2", b"http/1.1"]);
    let client = connect(daemon.address, &config).await.unwrap();
    assert_eq!(client.0.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(client.0)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/livez").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    drop(sender);
    connection.await.unwrap().unwrap();
    let unknown = connect(daemon.address, &authority.client(None, &[b"spdy/3"])).await;
    assert!(unknown.is_err(), "a protocol that is not spoken is not agreed on");
}

#[tokio::test]
async fn only_whom_the_authority_vouches_for_is_served() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let mut files = authority.write_pair(&authority.sign("daemon"));
    files.client_ca = Some(authority.write("ca.pem", &authority.pem));
    let tls = Tls::open(files).unwrap();
    let daemon = start(&tls, "").await;
    let (known, unknown) = (authority.sign("gateway"), stranger.sign("gateway"));
    for (shown, is_served) in [(Some(&known), true), (Some(&unknown), false), (None, false)] {
        let config = authority.client(shown, &[]);
        // With TLS 1.3 a client learns only after its handshake that it is refused.
        let asked = match connect(daemon.address, &config).await {
            Ok(mut client) => client.post("/v1/check", BODY).await,
            Err(error) => Err(error),
        };
        assert_eq!(asked.is_ok_and(|it| it.status == 200), is_served, "{shown:?}");
    }
}

#[tokio::test]
async fn whom_the_authority_vouches_for_must_have_the_name_that_is_asked_for() {
    let authority = Authority::new();
    let known = authority.sign("gateway");
    let config = authority.client(Some(&known), &[]);
    for (name, is_served) in [("localhost", true), ("gateway", false), ("192.0.2.1", false)] {
        let mut files = authority.write_pair(&authority.sign("daemon"));
        files.client_ca = Some(authority.write("ca.pem", &authority.pem));
        files.client_name = Some(name.to_owned());
        let daemon = start(&Tls::open(files).unwrap(), "").await;
        let asked = match connect(daemon.address, &config).await {
            Ok(mut client) => client.post("/v1/check", BODY).await,
            Err(error) => Err(error),
        };
        assert_eq!(asked.is_ok_and(|it| it.status == 200), is_served, "{name}");
    }
    let mut files = authority.write_pair(&known);
    files.client_ca = Some(authority.write("ca.pem", &authority.pem));
    files.client_name = Some("no name".to_owned());
    let error = Tls::open(files).unwrap_err().to_string();
    assert!(error.contains("\"no name\" is not a name that a certificate can have"), "{error}");
}

#[tokio::test]
async fn new_files_are_shown_to_new_connections_and_bad_ones_to_nobody() {
    let authority = Authority::new();
    let (first, second) = (authority.sign("first"), authority.sign("second"));
    let tls = Tls::open(authority.write_pair(&first)).unwrap();
    let daemon = start(&tls, "").await;
    let config = authority.client(None, &[]);
    let mut old = connect(daemon.address, &config).await.unwrap();
    assert!(shows(&old, &first));
    assert_eq!(tls.reload(), Ok(false));
    // One of the two is new: they do not fit.
    authority.write("key.pem", &second.key);
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.starts_with("listen.tls.key: ") && error.contains("does not match"), "{error}");
    assert!(shows(&connect(daemon.address, &authority.client(None, &[])).await.unwrap(), &first));
    // Now both are; nobody says so, the daemon looks.
    authority.write("cert.pem", &second.cert);
    while shows(&connect(daemon.address, &authority.client(None, &[])).await.unwrap(), &first) {}
    let mut new = connect(daemon.address, &authority.client(None, &[])).await.unwrap();
    assert!(shows(&new, &second));
    for client in [&mut old, &mut new] {
        assert_eq!(client.post("/v1/check", BODY).await.unwrap().status, 200);
    }
    // A bad one, and the next good one, by renaming.
    authority.write("cert.pem", "nonsense");
    assert!(tls.reload().is_err());
    let third = authority.sign("third");
    for (name, pem) in [("cert.pem", &third.cert), ("key.pem", &third.key)] {
        std::fs::rename(authority.write("new", pem), authority.directory.join(name)).unwrap();
    }
    assert!(tls.reload().is_ok());
    assert!(shows(&connect(daemon.address, &authority.client(None, &[])).await.unwrap(), &third));
}

#[test]
fn what_is_wrong_with_the_files_is_said() {
    let authority = Authority::new();
    let (pair, other) = (authority.sign("a"), authority.sign("b"));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    let torn = pair.cert.replace("-----END CERTIFICATE-----", "");
    for (cert, key, client_ca, said) in [
        (
            &*pair.cert,
            &*other.key,
            None,
            "listen.tls.key: DIR/key.pem: it does not match the certificate in DIR/cert.pem",
        ),
        (&pair.cert, encrypted, None, "listen.tls.key: DIR/key.pem: it is encrypted"),
        (&pair.cert, old, None, "listen.tls.key: DIR/key.pem: it is encrypted"),
        (&pair.cert, &pair.cert, None, "listen.tls.key: DIR/key.pem: no private key found"),
        (
            &pair.key,
            &pair.key,
            None,
            "listen.tls.cert: DIR/cert.pem: there is no certificate in it",
        ),
        ("", &pair.key, None, "listen.tls.cert: DIR/cert.pem: there is no certificate in it"),
        (&torn, &pair.key, None, "listen.tls.cert: DIR/cert.pem: "),
        (
            &pair.cert,
            &pair.key,
            Some(""),
            "listen.tls.client_ca: DIR/ca.pem: there is no certificate in it",
        ),
    ] {
        let mut files = authority.write_pair(&Pair { cert: cert.to_owned(), key: key.to_owned() });
        files.client_ca = client_ca.map(|client_ca| authority.write("ca.pem", client_ca));
        let error = Tls::open(files).unwrap_err().to_string();
        let error = error.replace(authority.directory.to_str().unwrap(), "DIR");
        assert!(error.starts_with(said), "{error}\n{said}");
    }
    let mut files = authority.write_pair(&pair);
    files.key = "/nowhere/key.pem".into();
    let error = Tls::open(files).unwrap_err().to_string();
    assert!(error.starts_with("listen.tls.key: /nowhere/key.pem: cannot be read: "), "{error}");
}

#[tokio::test]
async fn who_speaks_no_tls_is_sent_away_at_once() {
    let authority = Authority::new();
    let tls = Tls::open(authority.write_pair(&authority.sign("daemon"))).unwrap();
    let daemon = start(&tls, "header_timeout: 1h").await;
    let mut plain = daemon.connect().await;
    plain.send("GET /livez HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
    assert!(!plain.closed().await.contains("HTTP"));
}

#[tokio::test]
async fn a_handshake_that_stalls_is_cut_while_others_are_served() {
    let authority = Authority::new();
    let tls = Tls::open(authority.write_pair(&authority.sign("daemon"))).unwrap();
    let daemon = start(&tls, "header_timeout: 1s").await;
    let mut stalled = Vec::new();
    for beginning in ["", "\u{16}", "\u{16}\u{3}\u{1}\u{2}"].repeat(40) {
        let mut client = daemon.connect().await;
        client.send(beginning).await.unwrap();
        stalled.push(client);
    }
    let config = authority.client(None, &[]);
    for client in &mut stalled {
        let mut byte = [0];
        let mut is_open = true;
        while is_open {
            let mut other = connect(daemon.address, &config).await.unwrap();
            assert_eq!(other.post("/v1/check", BODY).await.unwrap().status, 200);
            is_open = matches!(client.0.try_read(&mut byte), Err(it) if it.kind() == io::ErrorKind::WouldBlock);
        }
        assert_eq!(client.0.read(&mut byte).await.unwrap_or(0), 0);
    }
    let plain = Daemon::start().await;
    assert_others_are_served(&plain).await;
}
