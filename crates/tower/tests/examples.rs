//! Starts each example as a process and sends requests to it.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use tollgate_testkit::{Reply, Server, build_examples, until};
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// An example that runs until this is dropped.
struct Example {
    process: Child,
    address: String,
    /// Kept open, because the example prints later too.
    _output: BufReader<ChildStdout>,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(build_examples(env!("CARGO_TARGET_TMPDIR")).join(name))
            .arg("127.0.0.1:0")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut _output = BufReader::new(process.stdout.take().unwrap());
        _output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Example { process, address, _output }
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request; returns the head and the body of the response.
    fn request(&self, line: &str, headers: &str, body: &str) -> (String, String) {
        let mut text = String::new();
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\
             {headers}\r\n{body}"
        );
        self.send(&request).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn status(&self, line: &str, headers: &str, body: &str) -> u16 {
        let (head, _) = self.request(line, headers, body);
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn axum_limits_requests_and_failed_logins() {
    let example = Example::start("axum", &[]);
    for remaining in ["2 requests remain\n", "1 requests remain\n", "0 requests remain\n"] {
        let (head, body) = example.request("GET /", "", "");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert_eq!(body, remaining);
    }
    let (head, _) = example.request("GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests"), "{head}");
    assert!(head.contains("retry-after: 6") || head.contains("retry-after: 5"), "{head}");

    let login =
        |user: &str, password: &str| example.status(&format!("POST /login/{user}"), "", password);
    let passwords = ["ann's password", "wrong", "ann's password", "wrong", "ann's password"];
    assert_eq!(passwords.map(|password| login("ann", password)), [200, 401, 200, 401, 429]);
    // The client has failed twice, so it cannot try another account either.
    assert_eq!(login("bob", "bob's password"), 429);
}

#[test]
fn hyper_limits_downloads_at_once_by_api_key() {
    let server = Server::start();
    let example = Example::start("hyper", &[&server.url()]);
    let download = |key: &str| {
        let request =
            format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: {key}\r\n\r\n");
        let mut stream = example.send(&request);
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8(status.to_vec()).unwrap(), stream)
    };
    let (first, mut first_stream) = download("secret");
    let (second, second_stream) = download("secret");
    let (third, _) = download("secret");
    let (other, _other_stream) = download("other");
    assert_eq!(
        [&*first, &*second, &*third, &*other],
        ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429", "HTTP/1.1 200"]
    );
    // The store does not contain the API key itself.
    let keys: Vec<_> =
        server.command(&["KEYS", "tollgate:downloads:*"]).array().iter().map(Reply::text).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        assert!(!key.contains("secret"), "{key}");
    }
    assert_eq!(example.status("GET /", "", ""), 400, "a request without a key");
    // The end of a download, and a disconnect, free a slot.
    drop(second_stream);
    let mut rest = String::new();
    first_stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("part 9"), "{rest}");
    let is_admitted = || (download("secret").0 == "HTTP/1.1 200").then_some(());
    until(is_admitted).expect("a slot is free");
}

#[tokio::test]
async fn tonic_limits_calls() {
    let example = Example::start("tonic", &[]);
    let channel = Endpoint::from_shared(format!("http://{}", example.address)).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    for _ in 0..2 {
        client.check(HealthCheckRequest::default()).await.unwrap();
    }
    let status = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with("try again in "), "{status}");
}
