//! The client against servers that misbehave.

use bytes::Bytes;
use h2::server::SendResponse;
use hyper::HeaderMap;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use super::*;

/// What a server sends for a request: a status, a body, and the trailers unless it resets the
/// stream.
#[derive(Clone, Copy, Debug)]
struct Script {
    http_status: u16,
    body: &'static [u8],
    trailers: Option<&'static [(&'static str, &'static str)]>,
}

const OK: &[(&str, &str)] = &[("grpc-status", "0")];

async fn serve(listener: TcpListener, script: Script) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, response))) = connection.accept().await {
        respond(response, script);
    }
}

fn respond(mut response: SendResponse<Bytes>, script: Script) {
    let head = http::Response::builder()
        .status(script.http_status)
        .header("content-type", "application/grpc");
    let mut stream = response.send_response(head.body(()).unwrap(), false).unwrap();
    stream.send_data(Bytes::from_static(script.body), false).unwrap();
    match script.trailers {
        Some(pairs) => {
            let trailers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect();
            stream.send_trailers(trailers).unwrap();
        }
        None => stream.send_reset(h2::Reason::INTERNAL_ERROR),
    }
}

fn grpc(address: std::net::SocketAddr) -> Grpc {
    let (host, port) = (address.ip().to_string(), address.port());
    let endpoint = Endpoint { host, port, user: None, password: Some("secret".into()) };
    let check = CheckSpec { limited_by: LimitedBy::Policy("api".into()), cost: 300 };
    let keys = Keys { prefix: "k-".into(), count: 1_000, zipf: None, seed: 1 };
    Grpc::new(&endpoint, &check, &keys).unwrap()
}

fn call(script: Script) -> Result<Response, RequestError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        spawn_local(serve(listener, script));
        let stream = TcpStream::connect(address).await.unwrap();
        grpc(address).probe(stream, Duration::from_secs(5)).await
    }))
}

#[test]
fn a_request_names_the_domain_the_key_and_the_cost() {
    let grpc = grpc(([127, 0, 0, 1], 1).into());
    let request = grpc.request(42, 300);
    assert_eq!((&*request.domain, request.hits_addend), ("api", 300));
    assert_eq!(request.descriptors[0].entries[0].value, "k-042");
    assert_eq!(request.descriptors[0].hits_addend, None);
    let probe = grpc.request(0, 0);
    assert_eq!(probe.descriptors[0].hits_addend, Some(UInt64Value { value: 0 }));
}

#[test]
fn responses_are_decisions_or_errors_of_a_kind() {
    let check = |body, trailers, expected: Result<(bool, bool), ErrorKind>| {
        let script = Script { http_status: 200, body, trailers };
        let found = call(script)
            .map(|response| (response.allowed, response.is_limited))
            .map_err(|error| error.kind);
        assert_eq!(found, expected, "{script:?}");
    };
    check(b"\0\0\0\0\x06\x08\x01\x12\x02\x08\x01", Some(OK), Ok((true, false)));
    check(b"\0\0\0\0\x0a\x08\x02\x12\x06\x08\x02\x12\x02\x08\x05", Some(OK), Ok((false, true)));
    let protocol = Err(ErrorKind::Protocol);
    check(b"\0\0\0\0\0", Some(OK), protocol);
    check(b"\0\0\0\0\x02\x08\x03", Some(OK), protocol);
    check(b"\0\0\0\0\x01\x08", Some(OK), protocol);
    check(b"\0\0\0\0\x03\x12\xc8\x01", Some(OK), protocol);
    check(b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(OK), protocol);
    check(b"\0\0\0", Some(OK), protocol);
    check(b"", Some(OK), protocol);
    check(b"", Some(&[]), protocol);
    check(b"", Some(&[("grpc-status", "14")]), Err(ErrorKind::Unavailable));
    check(b"", Some(&[("grpc-status", "13"), ("grpc-message", "x")]), Err(ErrorKind::Unavailable));
    check(b"", Some(&[("grpc-status", "16")]), Err(ErrorKind::Rejected));
    check(b"", None, Err(ErrorKind::Lost));
}

#[test]
fn an_http_error_without_a_status_is_classified_by_its_code() {
    let script = |http_status| Script { http_status, body: b"", trailers: Some(&[]) };
    assert_eq!(call(script(503)).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(call(script(500)).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(call(script(404)).unwrap_err().kind, ErrorKind::Protocol);
}

#[test]
fn the_status_of_a_rejection_is_reported() {
    let trailers = Some(&[("grpc-status", "16"), ("grpc-message", "no token")][..]);
    let error = call(Script { http_status: 200, body: b"", trailers }).unwrap_err();
    assert_eq!(error.message, "grpc-status 16 no token");
}
