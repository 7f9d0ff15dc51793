//! A socket in the file system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UnixStream;
use tollgate_server::Listener;

use crate::client::Client;
use crate::daemon::{Daemon, POLICIES};

/// A path of this test's own.
fn path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tollgate-{}-{number}.sock", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

async fn connect(path: &Path) -> Client<UnixStream> {
    Client(UnixStream::connect(path).await.unwrap())
}

#[tokio::test]
async fn who_may_open_the_file_asks_as_one_of_this_machine() {
    let path = path();
    let listener = Listener::bind_unix(&path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let mut daemon = Daemon::start_at(POLICIES, |_| listener).await;
    let mut client = connect(&path).await;
    let body = r#"{"policy":"log","key":"u"}"#;
    assert_eq!(client.post("/v1/check", body).await.unwrap().status, 200);
    // Which only an operator may.
    assert_eq!(client.post("/v1/reset", body).await.unwrap().status, 200);
    daemon.stop();
    assert_eq!(client.closed().await, "");
    daemon.ended().await;
    assert!(!path.exists(), "the file goes with its listener");
}

#[tokio::test]
async fn an_old_socket_is_replaced_and_nothing_else() {
    let path = path();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Listener::bind_unix(&path).await.unwrap();
    let taken = Listener::bind_unix(&path).await.unwrap_err();
    assert!(
        taken.is_taken() && taken.to_string().contains("is in use by another process"),
        "{taken}"
    );
    // Another has taken the path over: its file stays when the first goes.
    fs::remove_file(&path).unwrap();
    let second = Listener::bind_unix(&path).await.unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
    fs::write(&path, "somebody's").unwrap();
    let error = Listener::bind_unix(&path).await.unwrap_err().to_string();
    assert!(error.contains("a file that is not a socket exists there"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
    fs::remove_file(&path).unwrap();
    let long = std::env::temp_dir().join("x".repeat(200));
    for (path, why) in
        [(&*long, "a shorter path"), (Path::new("/nowhere/s"), "its directory does not exist")]
    {
        let error = Listener::bind_unix(path).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
