//! The memory of a daemon whose clients invent long keys and request ids.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;

use tollgate_testkit::Folder;

use crate::client::Client;
use crate::process::{Daemon, tollgate};

/// The bound of the store, and what else the process may take: buffers of connections, the
/// fragmentation of the allocator, and code that runs for the first time.
const MAX_BYTES: usize = 4 * MIB;
const ALLOWANCE: usize = 40 * MIB;
const MIB: usize = 1024 * 1024;

const REQUESTS: usize = 4_000;
/// The length of a key. All keys are forty times the allowance.
const KEY_LEN: usize = 30_000;

const HOST: &str = "Host: localhost";

const CONFIG: &str = "
store: { max_bytes: 4MiB }
limits: { key_bytes: 64KiB }
policies:
  api: { limits: [10/d] }
  log: { limits: [10/d log] }
rules: [{ policy: api, key: \"{header.x-api-key}\" }]
";

/// Returns the resident memory of the daemon in bytes.
fn resident_bytes(daemon: &Daemon) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

fn long_key(protocol: &str, index: usize) -> String {
    format!("{protocol}-{index}-{}", "k".repeat(KEY_LEN))
}

/// The first client sends enough that buffers have their size before the memory is measured.
fn flood(daemon: &Daemon, resp: &str, requests: std::ops::Range<usize>) {
    let mut http = Client::new(TcpStream::connect(daemon.address()).unwrap());
    let mut redis = BufReader::new(TcpStream::connect(resp).unwrap());
    for index in requests {
        let id = format!("{index}-{}", "i".repeat(200));
        let key = long_key("http", index);
        let body = format!(r#"{{"policy":"log","key":"{key}","request_id":"{id}"}}"#);
        assert_eq!(http.send("POST /v1/check", &[HOST], &body).status, 200, "HTTP {index}");

        let header = format!("X-Api-Key: {}", long_key("gateway", index));
        let headers = ["X-Original-Method: GET", "X-Original-URI: /", "X-Original-Host: a.test"];
        let headers = [&headers[..], &["X-Real-IP: 192.0.2.1", &header]].concat();
        assert_eq!(
            http.send("GET /v1/forward-auth/nginx", &headers, "").status,
            200,
            "gateway {index}"
        );

        let key = long_key("grpc", index);
        let body = format!(
            r#"{{"domain":"api","descriptors":[{{"entries":[{{"key":"k","value":"{key}"}}]}}]}}"#
        );
        assert_eq!(
            http.send("POST /json", &[HOST], &body).status,
            200,
            "rate limit service {index}"
        );

        let key = long_key("resp", index);
        let command =
            format!("CL.THROTTLE {key} 9 10 86400\r\nTOLLGATE.CHECK log {key} ID {id}r\r\n");
        let command: String = command
            .lines()
            .map(|line| {
                let words: Vec<_> = line.split(' ').collect();
                let bulks: String =
                    words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
                format!("*{}\r\n{bulks}", words.len())
            })
            .collect();
        redis.get_mut().write_all(command.as_bytes()).unwrap();
        redis.get_mut().write_all(b"PING\r\n").unwrap();
        let mut line = String::new();
        while line != "+PONG\r\n" {
            line.clear();
            redis.read_line(&mut line).unwrap();
            assert!(!line.starts_with('-'), "RESP {index}: {line}");
        }
    }
}

#[test]
fn long_keys_and_request_ids_do_not_exceed_the_configured_memory() {
    let folder = Folder::create();
    let file = folder.write("tollgate.yaml", CONFIG);
    let mut command = tollgate();
    command.arg("serve").arg("--config").arg(file).args(["--http", "127.0.0.1:0"]);
    command.args(["--resp", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--grpc", "off"]);
    let daemon = Daemon::spawn(command.stderr(Stdio::null()));
    let resp = daemon.greeting.lines().find(|line| line.trim_start().starts_with("RESP")).unwrap();
    let resp = resp.split_whitespace().find(|word| word.contains("127.0.0.1:")).unwrap();
    let resp = resp.rsplit('/').next().unwrap().to_owned();
    flood(&daemon, &resp, 0..20);
    let before = resident_bytes(&daemon);
    flood(&daemon, &resp, 20..REQUESTS);
    let growth = resident_bytes(&daemon).saturating_sub(before);
    assert!(growth < MAX_BYTES + ALLOWANCE, "{growth} bytes");
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
    assert!(bytes.iter().sum::<usize>() < MAX_BYTES + MIB / 2, "{bytes:?}");
    assert!(bytes[0] > MIB && bytes[2] > MIB, "{bytes:?}");
    daemon.stop();
}
