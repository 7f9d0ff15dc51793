//! Helpers of the tests: a daemon, clients, certificates, waiting.

pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod daemon;

use std::error::Error;
use std::time::Duration;

use hyper::body::Body;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::client::{Client, Response};

/// An id of a lease or reservation.
pub(crate) const ID: &str = "0000000000000000000000000000000a";

/// The time limit of every wait; long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until the condition is true.
pub(crate) async fn eventually(expected: &str, mut condition: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !condition().await {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(TIMEOUT, poll).await.unwrap_or_else(|_| panic!("timed out waiting for {expected}"));
}

/// Polls a path until the response is as expected.
pub(crate) async fn wait_for(
    client: &mut Client,
    path: &str,
    is_expected: impl Fn(&Response) -> bool,
) {
    eventually(path, async || is_expected(&client.get(path).await.unwrap())).await;
}

/// Waits until the verbose readiness page has this status and contains this text.
pub(crate) async fn wait_until_ready(client: &mut Client, status: u16, text: &str) {
    let is_expected = |page: &Response| page.status == status && page.body.contains(text);
    wait_for(client, "/readyz?verbose", is_expected).await;
}

/// Opens an HTTP/2 connection over a stream. Returns the sender of requests, and the task that ends
/// with the connection.
pub(crate) async fn connect_http2<B>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> (SendRequest<B>, JoinHandle<hyper::Result<()>>)
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

/// The URL of a Redis server that refuses connections.
pub(crate) fn unreachable_store() -> String {
    // The port of a listener that was just closed.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("redis://{}", listener.local_addr().unwrap())
}

/// Whether a line of a table is blank or a comment.
fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// Splits a table before each line that begins with the marker, and removes the marker. Only
/// comments may precede the first such line, and their number must be `count`.
pub(crate) fn split_table<'a>(table: &'a str, marker: &str, count: usize) -> Vec<&'a str> {
    let separator = format!("\n{marker}");
    let mut parts = table.split(&separator);
    for line in parts.next().unwrap().lines() {
        assert!(is_comment(line), "before the first {marker:?}: {line}");
    }
    let parts: Vec<_> = parts.collect();
    assert_eq!(parts.len(), count, "lines that begin with {marker:?}");
    parts
}

/// Parses a table of `count` rows. A row is a line `> …` and a line `< …` or `<`. Other lines must
/// be comments.
pub(crate) fn parse_rows(table: &str, count: usize) -> Vec<(&str, &str)> {
    let mut lines = table.lines().filter(|line| !is_comment(line));
    let mut rows = Vec::new();
    while let Some(first) = lines.next() {
        let request =
            first.strip_prefix("> ").unwrap_or_else(|| panic!("expected \"> …\": {first}"));
        let second = lines.next().unwrap_or_else(|| panic!("no line follows {first}"));
        let expected = match second {
            "<" => "",
            _ => second.strip_prefix("< ").unwrap_or_else(|| panic!("expected \"< …\": {second}")),
        };
        rows.push((request, expected));
    }
    assert_eq!(rows.len(), count, "rows");
    rows
}
