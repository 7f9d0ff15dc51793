//! What the tests share: a daemon, clients, certificates, temporary files.

pub(crate) mod bystanders;
pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod rows;

use std::error::Error;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process};

use hyper::body::Body;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::client::{Client, Response};

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

/// A temporary directory, removed on drop.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("tollgate-test-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The path of the configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.join("tollgate.yaml")
    }

    /// Removes the path of the directory from a text.
    pub(crate) fn strip_from(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.display()), "")
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asserts that each line of the errors begins with the expected text, and that there are no others.
pub(crate) fn assert_lines_start_with(errors: &str, expected: &[&str]) {
    assert_eq!(errors.lines().count(), expected.len(), "{errors}\n{expected:?}");
    for (line, expected) in errors.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
}
