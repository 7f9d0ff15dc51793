//! TLS: ALPN, client certificates, reloads, and stalled handshakes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fs, io};

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_daemon::{Config, Tls};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::envoy::client::{Client as GrpcClient, format_result, parse_request};
use crate::http::access::{bearer, token};
use crate::support::certificates::{Authority, ENCRYPTED_KEY, Pair, der};
use crate::support::client::Client;
use crate::support::connect_http2;
use crate::support::daemon::{Daemon, POLICIES};

const BODY: &str = r#"{"policy":"bucket","key":"t","cost":0}"#;

pub(crate) async fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<Client<TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map(Client)
}

/// Opens a connection. Returns whether the daemon presented this certificate.
async fn presents(daemon: &Daemon, authority: &Authority, pair: &Pair) -> bool {
    let client = connect(daemon.address, &authority.client(None, &[])).await.unwrap();
    has_certificate(&client, pair)
}

fn has_certificate(client: &Client<TlsStream<TcpStream>>, pair: &Pair) -> bool {
    client.0.get_ref().1.peer_certificates().unwrap()[0] == der(&pair.cert)
}

#[tokio::test]
async fn alpn_negotiates_http1_and_http2() {
    let authority = Authority::new();
    let daemon = Daemon::start_with_tls(&authority.tls(), "").await;
    for alpn in [&[][..], &[&b"http/1.1"[..]]] {
        let mut client = connect(daemon.address, &authority.client(None, alpn)).await.unwrap();
        assert_eq!(client.0.get_ref().1.alpn_protocol(), alpn.first().copied());
        for _ in 0..2 {
            assert_eq!(client.post("/v1/check", BODY).await.unwrap().status, 200);
        }
    }
    let config = authority.client(None, &[b"h2", b"http/1.1"]);
    let client = connect(daemon.address, &config).await.unwrap();
    assert_eq!(client.0.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) = connect_http2(client.0).await;
    let request = Request::get("https://localhost/livez").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    drop(sender);
    connection.await.unwrap().unwrap();
    let unknown = connect(daemon.address, &authority.client(None, &[b"spdy/3"])).await;
    assert!(unknown.is_err(), "an unknown protocol is not negotiated");
}

/// Whether a client with this configuration is served. With TLS 1.3 a client learns only after its
/// handshake that its certificate was rejected.
async fn is_client_served(daemon: &Daemon, config: &Arc<ClientConfig>) -> bool {
    let Ok(mut client) = connect(daemon.address, config).await else { return false };
    client.post("/v1/check", BODY).await.is_ok_and(|response| response.status == 200)
}

#[tokio::test]
async fn only_clients_with_a_trusted_certificate_are_served() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let tls = Tls::open(authority.write_mutual_tls()).unwrap();
    let daemon = Daemon::start_with_tls(&tls, "").await;
    let (known, unknown) = (authority.sign("gateway"), stranger.sign("gateway"));
    for (certificate, is_served) in [(Some(&known), true), (Some(&unknown), false), (None, false)] {
        let config = authority.client(certificate, &[]);
        assert_eq!(is_client_served(&daemon, &config).await, is_served, "{certificate:?}");
    }
}

#[tokio::test]
async fn client_certificates_must_have_the_configured_name() {
    let authority = Authority::new();
    let known = authority.sign("gateway");
    let config = authority.client(Some(&known), &[]);
    for (name, is_served) in [("localhost", true), ("gateway", false), ("192.0.2.1", false)] {
        let mut files = authority.write_mutual_tls();
        files.client_name = Some(name.to_owned());
        let daemon = Daemon::start_with_tls(&Tls::open(files).unwrap(), "").await;
        assert_eq!(is_client_served(&daemon, &config).await, is_served, "{name}");
    }
    let mut files = authority.write_mutual_tls();
    files.client_name = Some("no name".to_owned());
    let error = Tls::open(files).unwrap_err().to_string();
    assert!(error.contains("\"no name\" is not a name that a certificate can have"), "{error}");
}

#[tokio::test]
async fn new_certificates_apply_to_new_connections_and_invalid_ones_are_ignored() {
    let authority = Authority::new();
    let (first, second) = (authority.sign("first"), authority.sign("second"));
    let tls = Tls::open(authority.write_pair(&first)).unwrap();
    let daemon = Daemon::start_with_tls(&tls, "").await;
    let config = authority.client(None, &[]);
    let mut old = connect(daemon.address, &config).await.unwrap();
    assert!(has_certificate(&old, &first));
    assert_eq!(tls.reload(), Ok(false));
    // Only the key is new, so it does not match the certificate.
    authority.directory.write("key.pem", &second.key);
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.starts_with("listen.tls.key: ") && error.contains("does not match"), "{error}");
    assert!(presents(&daemon, &authority, &first).await);
    // Now both are new. The daemon polls the files.
    authority.directory.write("cert.pem", &second.cert);
    while presents(&daemon, &authority, &first).await {}
    let mut new = connect(daemon.address, &authority.client(None, &[])).await.unwrap();
    assert!(has_certificate(&new, &second));
    for client in [&mut old, &mut new] {
        assert_eq!(client.post("/v1/check", BODY).await.unwrap().status, 200);
    }
    // An invalid certificate, then a valid one by renaming.
    authority.directory.write("cert.pem", "nonsense");
    assert!(tls.reload().is_err());
    let third = authority.sign("third");
    for (name, pem) in [("cert.pem", &third.cert), ("key.pem", &third.key)] {
        let directory = &authority.directory;
        fs::rename(directory.write("new", pem), directory.join(name)).unwrap();
    }
    assert!(tls.reload().is_ok());
    assert!(presents(&daemon, &authority, &third).await);
}

#[test]
fn errors_name_the_field_and_the_file() {
    let authority = Authority::new();
    let (pair, other) = (authority.sign("a"), authority.sign("b"));
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    let torn = pair.cert.replace("-----END CERTIFICATE-----", "");
    for (cert, key, client_ca, expected) in [
        (
            &*pair.cert,
            &*other.key,
            None,
            "listen.tls.key: DIR/key.pem: it does not match the certificate in DIR/cert.pem",
        ),
        (&pair.cert, ENCRYPTED_KEY, None, "listen.tls.key: DIR/key.pem: the key is encrypted"),
        (&pair.cert, old, None, "listen.tls.key: DIR/key.pem: the key is encrypted"),
        (&pair.cert, &pair.cert, None, "listen.tls.key: DIR/key.pem: no private key found"),
        (&pair.key, &pair.key, None, "listen.tls.cert: DIR/cert.pem: no certificate found"),
        ("", &pair.key, None, "listen.tls.cert: DIR/cert.pem: no certificate found"),
        (&torn, &pair.key, None, "listen.tls.cert: DIR/cert.pem: "),
        (&pair.cert, &pair.key, Some(""), "listen.tls.client_ca: DIR/ca.pem: no certificate found"),
    ] {
        let mut files = authority.write_pair(&Pair { cert: cert.to_owned(), key: key.to_owned() });
        files.client_ca = client_ca.map(|pem| authority.directory.write("ca.pem", pem));
        let error = Tls::open(files).unwrap_err().to_string();
        let error = error.replace(authority.directory.to_str().unwrap(), "DIR");
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
    let mut files = authority.write_pair(&pair);
    files.key = "/nowhere/key.pem".into();
    let error = Tls::open(files).unwrap_err().to_string();
    assert!(error.starts_with("listen.tls.key: /nowhere/key.pem: cannot be read: "), "{error}");
}

#[tokio::test]
async fn plain_text_clients_are_disconnected() {
    let authority = Authority::new();
    let daemon = Daemon::start_with_tls(&authority.tls(), "header_timeout: 1h").await;
    let mut plain = daemon.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(!plain.read_until_closed().await.contains("HTTP"));
}

#[tokio::test]
async fn stalled_handshakes_are_closed_while_other_clients_are_served() {
    let authority = Authority::new();
    let daemon = Daemon::start_with_tls(&authority.tls(), "header_timeout: 1s").await;
    let mut stalled = Vec::new();
    for beginning in ["", "\u{16}", "\u{16}\u{3}\u{1}\u{2}"].repeat(40) {
        stalled.push(daemon.send(beginning).await);
    }
    let config = authority.client(None, &[]);
    for client in &mut stalled {
        let mut byte = [0];
        let mut is_open = true;
        while is_open {
            let mut other = connect(daemon.address, &config).await.unwrap();
            assert_eq!(other.post("/v1/check", BODY).await.unwrap().status, 200);
            is_open = matches!(client.0.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        }
        assert_eq!(client.0.read(&mut byte).await.unwrap_or(0), 0);
    }
}

/// Sends a request and a command to each protocol, with the token `check` or without one. Returns
/// the beginnings of the replies.
async fn replies(
    daemon: &Daemon,
    authority: &Authority,
    certificate: &Pair,
    has_token: bool,
    (body, command, descriptor): (&str, &str, &str),
) -> [String; 3] {
    let config = authority.client(Some(certificate), &[]);
    let (operation, body) = body.split_once(' ').unwrap();
    let token = if has_token { &*bearer("check") } else { "x: y" };
    let mut http = connect(daemon.address, &config).await.unwrap();
    let path = format!("/v1/{operation}");
    let status = http.request_with("POST", &path, token, body).await.unwrap().status;

    let mut resp = connect(daemon.resp, &config).await.unwrap();
    let auth = if has_token { "AUTH the-secret-of-check\r\n" } else { "" };
    resp.send(&format!("{auth}{command}\r\n")).await.unwrap();
    let mut lines = BufReader::new(resp.0).lines();
    if has_token {
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
    }
    let reply = lines.next_line().await.unwrap().unwrap();
    // Without the message of an error and the length of an array.
    let reply = reply.split(' ').next().unwrap_or_default();
    let reply = if reply.starts_with('*') { "*" } else { reply };

    let tls = ClientTlsConfig::new().domain_name("localhost");
    let tls = tls.ca_certificate(Certificate::from_pem(&authority.pem));
    let tls = tls.identity(Identity::from_pem(&certificate.cert, &certificate.key));
    let endpoint = Endpoint::from_shared(format!("https://{}", daemon.grpc)).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
    let mut request = tonic::Request::new(parse_request(descriptor));
    if has_token {
        let value = "Bearer the-secret-of-check".parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let result = format_result(GrpcClient::new(channel).should_rate_limit(request).await);
    let code = result.split([':', ' ']).next().unwrap_or_default();
    [status.to_string(), reply.to_owned(), code.to_owned()]
}

#[tokio::test]
async fn client_certificates_grant_no_scopes() {
    let authority = Authority::new();
    let certificate = authority.sign("gateway");
    let check = (r#"check {"policy":"bucket","key":"a"}"#, "PING", "bucket | k=v");
    let operator = [
        (
            r#"block {"policy":"bucket","key":"a"}"#,
            "TOLLGATE.BLOCK bucket a",
            "bucket | k=v 9/HOUR",
        ),
        (r#"reset {"policy":"bucket","key":"a"}"#, "TOLLGATE.RESET bucket a", "bucket | k=v -1"),
        (
            r#"refund {"policy":"bucket","key":"a"}"#,
            "TOLLGATE.REFUND bucket a",
            "bucket | k=v -1 9/HOUR",
        ),
        (r#"check {"limit":"1/s","key":"a"}"#, "TOLLGATE.CHECK LIMIT 1/s a", "bucket | k=v -1"),
    ];
    let refused = ["403", "-NOPERM", "PermissionDenied"];
    let unauthenticated = ["401", "-NOAUTH", "Unauthenticated"];
    for (has_tokens, sends_token, checks, operates) in [
        (false, false, ["200", "+PONG", "OK"], refused),
        (true, false, unauthenticated, unauthenticated),
        (true, true, ["200", "+PONG", "OK"], refused),
    ] {
        let mut config = Config::from_yaml(POLICIES).unwrap();
        if has_tokens {
            config.tokens = vec![token("check", "check", "'*'")];
        }
        let tls = Tls::open(authority.write_mutual_tls()).unwrap();
        let daemon = Daemon::start_unchanged_with_tls(config, &tls).await;
        let replies =
            async |request| replies(&daemon, &authority, &certificate, sends_token, request).await;
        assert_eq!(replies(check).await, checks, "tokens: {has_tokens}");
        for request in operator {
            assert_eq!(replies(request).await, operates, "tokens: {has_tokens}, {request:?}");
        }
    }
}

#[tokio::test]
async fn certificates_have_the_scopes_of_the_entry_with_their_name() {
    let authority = Authority::new();
    // Certificates of this authority are for localhost.
    let certificate = authority.sign("gateway");
    let [check, reset] = [
        (r#"check {"policy":"bucket","key":"a"}"#, "TOLLGATE.PEEK bucket a", "bucket | k=v"),
        (r#"reset {"policy":"bucket","key":"a"}"#, "TOLLGATE.RESET bucket a", "bucket | k=v -1"),
    ];
    let accepted = ["200", "*", "OK"];
    let refused = ["403", "-NOPERM", "PermissionDenied"];
    let unauthenticated = ["401", "-NOAUTH", "Unauthenticated"];
    for (name, scopes, sends_token, checks, resets) in [
        ("LocalHost", "check, read", false, accepted, refused),
        ("localhost", "admin", false, accepted, accepted),
        // A descriptor needs the scope `check` also to reset.
        ("localhost", "operate", false, refused, ["200", "*", "PermissionDenied"]),
        ("gateway", "admin", false, unauthenticated, unauthenticated),
        ("spiffe://localhost", "admin", false, unauthenticated, unauthenticated),
        // The token has the scope `check` only.
        ("localhost", "admin", true, accepted, refused),
    ] {
        let entry = format!("{{ name: mesh, certificate: \"{name}\", scopes: [{scopes}] }}");
        let listen = "listen: { tls: { cert: a, key: b, client_ca: c } }";
        let parsed = Config::from_yaml(&format!("tokens: [{entry}]\n{listen}")).unwrap();
        let mut config = Config::from_yaml(POLICIES).unwrap();
        config.tokens = parsed.tokens;
        config.tokens.push(token("check", "check", "'*'"));
        let tls = Tls::open(authority.write_mutual_tls()).unwrap();
        let daemon = Daemon::start_unchanged_with_tls(config, &tls).await;
        for (request, expected) in [(check, checks), (reset, resets)] {
            let replies = replies(&daemon, &authority, &certificate, sends_token, request).await;
            assert_eq!(replies, expected, "{entry} {request:?}");
        }
    }
}
