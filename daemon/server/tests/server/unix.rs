//! Unix sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::UnixStream;
use tollgate_server::Listener;

use crate::support::TempDir;
use crate::support::client::Client;
use crate::support::daemon::{Daemon, POLICIES};

#[tokio::test]
async fn clients_of_a_unix_socket_count_as_local() {
    let directory = TempDir::new();
    let path = directory.join("http.sock");
    let listener = Listener::bind_unix(&path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let mut daemon = Daemon::start_with_http_listener(POLICIES, |_| listener).await;
    let mut client = Client(UnixStream::connect(&path).await.unwrap());
    let body = r#"{"policy":"log","key":"u"}"#;
    assert_eq!(client.post("/v1/check", body).await.unwrap().status, 200);
    // Only operators and local clients may reset.
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    daemon.stop();
    assert_eq!(client.read_until_closed().await, "");
    daemon.join().await;
    assert!(!path.exists(), "dropping the listener removes the file");
}

#[tokio::test]
async fn only_stale_sockets_are_replaced() {
    let directory = TempDir::new();
    let path = directory.join("http.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Listener::bind_unix(&path).await.unwrap();
    let error = Listener::bind_unix(&path).await.unwrap_err();
    assert!(
        error.is_taken() && error.to_string().contains("is in use by another process"),
        "{error}"
    );
    // A second listener has replaced the file: dropping the first one leaves it in place.
    fs::remove_file(&path).unwrap();
    let second = Listener::bind_unix(&path).await.unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
    fs::write(&path, "other").unwrap();
    let error = Listener::bind_unix(&path).await.unwrap_err().to_string();
    assert!(error.contains("a file that is not a socket exists there"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    let long = std::env::temp_dir().join("x".repeat(200));
    for (path, expected) in
        [(&*long, "a shorter path"), (Path::new("/nowhere/s"), "its directory does not exist")]
    {
        let error = Listener::bind_unix(path).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
