//! The memory of a daemon whose clients invent long keys and request ids.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use tokio::task::JoinSet;
use tollgate_testkit::Folder;
use tonic::transport::Endpoint;

use crate::client::Client;
use crate::process::{Daemon, tollgate};

/// The bound of the store. The reference of the configuration states that the process needs up to a
/// third more.
const MAX_BYTES: usize = 64 * MIB;
/// What the process may take besides: its code, the stacks of its threads, the buffers of its
/// connections, and the fragmentation of the allocator.
const ALLOWANCE: usize = 24 * MIB;
const MIB: usize = 1024 * 1024;

/// The number of keys of each protocol, and of the request ids of HTTP and of the Redis protocol. The
/// other protocols have no request ids.
const REQUESTS: usize = 100_000;
/// The length of a key. All keys of a protocol are 3 GB.
const KEY_LEN: usize = 30_000;
/// The number of requests that a client sends before it reads the responses.
const BATCH: usize = 16;

// No request id expires before the store is full, even on a slow machine.
const CONFIG: &str = "
store: { max_bytes: 64MiB, request_id_horizon: 1h }
limits: { key_bytes: 32KiB }
policies:
  api: { limits: [10/d] }
  log: { limits: [10/d log] }
rules: [{ policy: api, key: \"{header.x-api-key}\" }]
";

/// Returns a number that the kernel states about the daemon.
fn status(daemon: &Daemon, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The address of a listener, from its line in the greeting.
fn listener(daemon: &Daemon, name: &str) -> String {
    let mut lines = daemon.greeting.lines().map(str::trim_start);
    let url = lines.find_map(|line| line.strip_prefix(name)).unwrap().trim();
    url.split_once("://").unwrap().1.to_owned()
}

/// Calls `send` with the texts of successive batches. `request` makes a request from an index of ten
/// digits; it is called once, because the requests differ in nothing else.
fn batches(request: impl Fn(&str) -> String, mut send: impl FnMut(&[u8])) {
    const INDEX: &str = "##########";
    let template = request(INDEX);
    let places: Vec<_> = template.match_indices(INDEX).map(|(place, _)| place).collect();
    let mut text = template.repeat(BATCH).into_bytes();
    for batch in 0..REQUESTS / BATCH {
        for (request, text) in text.chunks_exact_mut(template.len()).enumerate() {
            let index = format!("{:0>width$}", batch * BATCH + request, width = INDEX.len());
            for place in &places {
                text[*place..*place + INDEX.len()].copy_from_slice(index.as_bytes());
            }
        }
        send(&text);
    }
}

/// Sends the requests of one client over HTTP; each must be admitted.
fn flood_http(address: &str, request: impl Fn(&str) -> String) {
    let mut client = Client::new(TcpStream::connect(address).unwrap());
    batches(request, |text| {
        client.write(text);
        for _ in 0..BATCH {
            assert_eq!(client.read(false).unwrap().status, 200);
        }
    });
}

fn flood_json(address: &str) {
    let key = "k".repeat(KEY_LEN);
    flood_http(address, |index| {
        let body =
            format!(r#"{{"policy":"log","key":"{key}{index}","request_id":"http-{index}"}}"#);
        let length = body.len();
        format!(
            "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    });
}

fn flood_forward_auth(address: &str) {
    let key = "g".repeat(KEY_LEN);
    flood_http(address, |index| {
        format!(
            "GET /v1/forward-auth/nginx HTTP/1.1\r\nHost: localhost\r\nX-Real-IP: 192.0.2.1\r\n\
             X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Original-Host: a.test\r\n\
             X-Api-Key: {key}{index}\r\n\r\n"
        )
    });
}

fn flood_resp(address: &str) {
    let mut client = BufReader::new(TcpStream::connect(address).unwrap());
    let key = "r".repeat(KEY_LEN);
    let request = |index: &str| {
        let (key, id) = (format!("{key}{index}"), format!("resp-{index}"));
        let words = ["TOLLGATE.CHECK", "log", &key, "ID", &id];
        let bulks = words.map(|word| format!("${}\r\n{word}\r\n", word.len())).concat();
        format!("*{}\r\n{bulks}", words.len())
    };
    let mut line = String::new();
    batches(request, |text| {
        client.get_mut().write_all(text).unwrap();
        client.get_mut().write_all(b"PING\r\n").unwrap();
        while line != "+PONG\r\n" {
            line.clear();
            client.read_line(&mut line).unwrap();
            assert!(!line.is_empty() && !line.starts_with('-'), "{line}");
        }
        line.clear();
    });
}

async fn flood_grpc(address: String) {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let client = RateLimitServiceClient::new(endpoint.connect().await.unwrap());
    let mut tasks = JoinSet::new();
    for task in 0..BATCH {
        let mut client = client.clone();
        let key = "e".repeat(KEY_LEN);
        tasks.spawn(async move {
            for index in (task..REQUESTS).step_by(BATCH) {
                let entry = Entry { key: "user".to_owned(), value: format!("{key}{index}") };
                let descriptor =
                    RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
                let request = RateLimitRequest {
                    domain: "api".to_owned(),
                    descriptors: vec![descriptor],
                    hits_addend: 1,
                };
                let response = client.should_rate_limit(request).await.unwrap().into_inner();
                assert_eq!(response.overall_code(), Code::Ok, "{index}");
            }
        });
    }
    tasks.join_all().await;
}

#[test]
fn long_keys_and_request_ids_do_not_exceed_the_configured_memory() {
    let folder = Folder::create();
    let file = folder.write("tollgate.yaml", CONFIG);
    let mut command = tollgate();
    command.arg("serve").arg("--config").arg(file);
    for listener in ["--http", "--grpc", "--resp", "--metrics"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    let daemon = Daemon::spawn(command.stderr(Stdio::null()));
    let [http, grpc, resp] =
        ["HTTP/1.1, HTTP/2", "gRPC for Envoy", "RESP"].map(|name| listener(&daemon, name));
    std::thread::scope(|scope| {
        scope.spawn(|| flood_json(&http));
        scope.spawn(|| flood_forward_auth(&http));
        scope.spawn(|| flood_resp(&resp));
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(flood_grpc(grpc));
        });
    });
    let resident = status(&daemon, "VmRSS:") * 1024;
    // With huge pages, it would need more on a host whose kernel uses them by itself.
    assert_eq!(status(&daemon, "THP_enabled:"), 0);
    let mut metrics = Client::new(TcpStream::connect(daemon.metrics_address()).unwrap());
    let page = metrics.send("GET /metrics", &[], "").body;
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<usize>().unwrap()
    };
    assert_eq!(value("tollgate_memory_store_bytes_max "), MAX_BYTES);
    let kinds = ["keys", "blocks", "request_ids"];
    let bytes =
        kinds.map(|kind| value(&format!("tollgate_memory_store_bytes{{kind=\"{kind}\"}} ")));
    assert!(bytes.iter().sum::<usize>() <= MAX_BYTES, "{bytes:?}");
    // The store is nearly full, so that the bound is what limits the memory.
    assert!(bytes[0] > MAX_BYTES / 4 && bytes[2] > MAX_BYTES / 4, "{bytes:?}");
    assert!(resident < MAX_BYTES * 4 / 3 + ALLOWANCE, "{resident} bytes");
    daemon.stop();
}
