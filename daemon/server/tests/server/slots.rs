//! Connection limits: of an address, and of clients that send no valid token. Clients that do not
//! read their responses.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::SERVICE_NAME;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tollgate_daemon::Config;

use crate::envoy::client::parse_request;
use crate::http::access::{bearer, token};
use crate::http::hostile::{END_STREAM_AND_HEADERS, HEADERS, PING, PREFACE, SETTINGS, frame};
use crate::metrics::{assert_lines, page};
use crate::support::client::{Client, encode_request};
use crate::support::connect_http2;
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::eventually;

const CONNECTIONS: usize = 20;
const CHECK: &str = r#"{"policy":"bucket","key":"o","cost":0}"#;
/// The requirement is 100 ms, of which a busy machine leaves nothing.
const MAX_WAIT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn connections_of_an_address_are_limited() {
    let daemon = Daemon::start_with_limits("peer_connections: 3").await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut client = daemon.connect().await;
        assert_eq!(client.get("/livez").await.unwrap().status, 200);
        open.push(client);
    }
    assert_eq!(daemon.connect().await.read_until_closed().await, "");
    assert_lines(
        &page(&daemon).await,
        r#"tollgate_connections_cut_total{listener="http",reason="peer"} 1"#,
    );
    for client in &mut open {
        assert_eq!(client.get("/livez").await.unwrap().status, 200);
    }
    open.pop();
    eventually("a place for another connection", async || {
        daemon.connect().await.get("/livez").await.is_ok()
    })
    .await;
}

/// A daemon with a token and few connections.
async fn start_with_token() -> Daemon {
    let yaml = format!(
        "limits: {{ connections: {CONNECTIONS}, header_timeout: 1h, idle: 1h, write_timeout: 1h }}\n\
         {POLICIES}"
    );
    let mut config = Config::from_yaml(&yaml).unwrap();
    config.tokens = vec![token("it", "check", "'*'")];
    Daemon::start_with_config(config).await
}

/// Runs twice as many attackers as there are connections. Each begins again when the daemon closes
/// its connection. Asserts that clients with a token are served on new connections meanwhile, and
/// on one that they keep.
#[expect(clippy::print_stdout, reason = "the measured times")]
async fn assert_clients_with_tokens_are_served<F>(
    daemon: &Daemon,
    attack: impl Fn() -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let headers = bearer("it");
    let mut kept = daemon.connect().await;
    let check = async |client: &mut Client| {
        client.request_with("POST", "/v1/check", &headers, CHECK).await.map(|reply| reply.status)
    };
    assert_eq!(check(&mut kept).await.unwrap(), 200);
    let mut attackers = tokio::task::JoinSet::new();
    for _ in 0..2 * CONNECTIONS {
        let attack = attack.clone();
        attackers.spawn(async move {
            loop {
                attack().await;
            }
        });
    }
    sleep(Duration::from_millis(500)).await;
    for round in 0..10 {
        let start = Instant::now();
        let served = timeout(MAX_WAIT, async {
            let mut client = daemon.connect().await;
            check(&mut client).await
        });
        assert_eq!(served.await.unwrap().unwrap(), 200, "round {round}");
        println!("served after {:?}", start.elapsed());
        assert_eq!(timeout(MAX_WAIT, check(&mut kept)).await.unwrap().unwrap(), 200);
    }
    attackers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trickling_heads_do_not_lock_out_clients_with_tokens() {
    let daemon = start_with_token().await;
    let address = daemon.address;
    assert_clients_with_tokens_are_served(&daemon, move || async move {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let mut part = &b"POST /v1/check HTTP/1.1\r\nhost: t\r\n"[..];
        while stream.write_all(part).await.is_ok() {
            part = b"x: y\r\n";
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_do_not_lock_out_clients_with_tokens() {
    let daemon = start_with_token().await;
    let address = daemon.address;
    assert_clients_with_tokens_are_served(&daemon, move || async move {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let mut part = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        while stream.write_all(&part).await.is_ok() {
            part = frame(PING, 0, 0, &[7; 8]).repeat(10);
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_responses_do_not_lock_out_clients_with_tokens() {
    let daemon = start_with_token().await;
    let address = daemon.address;
    assert_clients_with_tokens_are_served(&daemon, move || async move {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let part = encode_request("GET", "/readyz", "", "").repeat(100);
        while stream.write_all(part.as_bytes()).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Calls a method of gRPC on a new connection, which is open as long as the first result lives.
async fn call(
    daemon: &Daemon,
    path: &str,
) -> (impl Sized + Send + 'static, hyper::Response<hyper::body::Incoming>) {
    let stream = TcpStream::connect(daemon.grpc).await.unwrap();
    let (mut sender, connection) = connect_http2(stream).await;
    let request = Request::post(format!("http://t/{path}"))
        .header("content-type", "application/grpc")
        .header("authorization", "Bearer the-secret-of-it")
        .body(Full::<Bytes>::from(&[0; 5][..]))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    ((sender, connection), response)
}

#[tokio::test]
async fn health_watches_do_not_lock_out_clients_with_tokens() {
    const WATCH: &str = "grpc.health.v1.Health/Watch";
    const LIMIT: &str = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let daemon = start_with_token().await;
    let mut watches = Vec::new();
    for _ in 0..CONNECTIONS {
        watches.push(timeout(MAX_WAIT, call(&daemon, WATCH)).await.unwrap());
    }
    let start = Instant::now();
    let (_connection, response) = timeout(MAX_WAIT, call(&daemon, LIMIT)).await.unwrap();
    println!("served after {:?}", start.elapsed());
    // The empty message is invalid; the token is not.
    assert_eq!(response.headers()["grpc-status"], "3");
}

#[tokio::test]
async fn health_watches_outlive_the_idle_timeout_and_give_way_to_other_clients() {
    const WATCH: &str = "grpc.health.v1.Health/Watch";
    let daemon = Daemon::start_with_limits("connections: 2, idle: 200ms").await;
    let mut watches = vec![call(&daemon, WATCH).await, call(&daemon, WATCH).await];
    sleep(Duration::from_millis(1_500)).await;
    let open = r#"tollgate_connections{listener="grpc"} 2"#;
    assert_lines(&page(&daemon).await, open);
    watches.push(call(&daemon, WATCH).await);
    assert_lines(&page(&daemon).await, open);
}

/// `GET /metrics` at `http://t`, in HPACK.
const GET_METRICS: &[u8] = b"\x82\x86\x04\x08/metrics\x41\x01t";

/// Waits until the daemon has closed one connection because its client did not read. Returns the
/// most bytes of responses that waited meanwhile.
async fn wait_until_overdue(daemon: &Daemon, listener: &str) -> usize {
    let overdue =
        format!(r#"tollgate_connections_cut_total{{listener="{listener}",reason="overdue"}} 1"#);
    let mut most = 0;
    eventually("the write timeout", async || {
        let page = page(daemon).await;
        let prefix = "tollgate_connection_buffer_bytes ";
        let buffered = page.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
        most = buffered.parse::<usize>().unwrap().max(most);
        page.lines().any(|line| line == overdue)
    })
    .await;
    most
}

/// The preface of a client whose streams have an initial window of 0.
fn closed_windows() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat()
}

const OUTPUT: usize = 64 * 1024;
const LIMITS: &str = "output: 64KiB, write_timeout: 2s, header_timeout: 1h, idle: 1h";

#[tokio::test]
async fn responses_to_closed_windows_are_bounded_and_closed_after_the_write_timeout() {
    let daemon = Daemon::start_with_limits(LIMITS).await;
    let len = page(&daemon).await.len();
    let mut client = Client::connect(daemon.metrics).await;
    let mut sent = closed_windows();
    for stream in 0..200 {
        sent.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 2 * stream + 1, GET_METRICS));
    }
    client.0.write_all(&sent).await.unwrap();
    let most = wait_until_overdue(&daemon, "metrics").await;
    assert!((len..OUTPUT + 2 * len).contains(&most), "{most}");
    drop(client);
}

#[tokio::test]
async fn responses_of_grpc_to_closed_windows_are_counted_and_closed_after_the_write_timeout() {
    let daemon = Daemon::start_with_limits(LIMITS).await;
    let mut request = parse_request("unknown | k=v");
    request.descriptors = vec![request.descriptors[0].clone(); 3_000];
    let message = request.encode_to_vec();
    let len = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = Bytes::from([&[0][..], &len, &message].concat());
    let io = TokioIo::new(TcpStream::connect(daemon.grpc).await.unwrap());
    let mut client = http2::Builder::new(TokioExecutor::new());
    let client = client.initial_stream_window_size(0).handshake::<_, Full<Bytes>>(io);
    let (sender, connection) = client.await.unwrap();
    let connection = tokio::spawn(connection);
    let mut responses = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let request = Request::post(format!("http://t/{SERVICE_NAME}/ShouldRateLimit"))
            .header("content-type", "application/grpc")
            .body(Full::new(body.clone()));
        responses.spawn(sender.clone().send_request(request.unwrap()));
    }
    let most = wait_until_overdue(&daemon, "grpc").await;
    assert!(most > 10_000, "{most}");
    connection.await.unwrap().unwrap_err();
    drop((sender, responses));
}

#[tokio::test]
async fn unread_responses_of_http1_are_closed_after_the_write_timeout() {
    let daemon = Daemon::start_with_limits(LIMITS).await;
    let mut client = Client::connect(daemon.metrics).await;
    let many = encode_request("GET", "/metrics", "", "").repeat(5_000);
    // The daemon stops to read, and closes the connection with unread requests.
    let _ = timeout(Duration::from_millis(200), client.send(&many)).await;
    let most = wait_until_overdue(&daemon, "metrics").await;
    assert!(most < OUTPUT, "{most}");
}
