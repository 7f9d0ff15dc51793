//! Unix sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::UnixStream;
use tollgate_daemon::Listener;
use tollgate_testkit::Folder;

use crate::support::client::Client;
use crate::support::daemon::Daemon;

#[tokio::test]
async fn clients_of_a_unix_socket_may_operate() {
    let directory = Folder::create();
    let path = directory.join("http.sock");
    let mut daemon = Daemon::start_on_unix(&path).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let mut client = Client(UnixStream::connect(&path).await.unwrap());
    let body = r#"{"policy":"log","key":"u"}"#;
    assert_eq!(client.post("/v1/check", body).await.unwrap().status, 200);
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    let by_proxy = client.request_with("POST", "/v1/reset", "x-forwarded-for: 10.0.0.1", body);
    by_proxy.await.unwrap().assert(403, "is not accepted through a proxy", "reset");
    daemon.stop();
    assert_eq!(client.read_until_closed().await, "");
    daemon.join().await;
    assert!(!path.exists(), "dropping the listener removes the file");
}

#[tokio::test]
async fn only_stale_sockets_are_replaced() {
    let directory = Folder::create();
    let path = directory.join("http.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Listener::bind_unix(&path).await.unwrap();
    let error = Listener::bind_unix(&path).await.unwrap_err();
    assert!(error.is_taken(), "{error}");
    assert!(error.to_string().contains("is in use by another process"), "{error}");
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
