//! SIGTERM under load: every accepted request gets a response.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::Signal;
use tollgate_testkit::Folder;

use crate::process::Daemon;

fn start(delay: &str) -> Daemon {
    let folder = Folder::create();
    let yaml = format!(
        "drain: {{ delay: {delay} }}\npolicies: {{ default: {{ limits: [1000000000/s] }} }}\n"
    );
    let file = folder.write("tollgate.yaml", yaml);
    Daemon::start(["--config", file.to_str().unwrap()])
}

/// One answer from a connection; the end of the connection before its first byte is
/// [`ErrorKind::UnexpectedEof`].
fn answer(stream: &mut TcpStream, is_last: bool) -> std::io::Result<String> {
    let body = r#"{"policy":"default","key":"k"}"#;
    let close = if is_last { "connection: close\r\n" } else { "" };
    let head = format!("POST /v1/check HTTP/1.1\r\nhost: t\r\n{close}content-length");
    stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut said = String::new();
    let mut byte = [0];
    while !said.ends_with("]}") {
        stream.read_exact(&mut byte)?;
        said.push(char::from(byte[0]));
    }
    Ok(said)
}

/// Sends requests until the listener closes, on connections that are kept or for one request each. Every request
/// on a connection that was once answered must be answered again, and with a 200.
fn ask_until_refused(address: &str, is_kept: bool, answered: &AtomicU32) {
    while let Ok(mut stream) = TcpStream::connect(address) {
        let mut is_taken = false;
        loop {
            let said = match answer(&mut stream, !is_kept) {
                Ok(value) => value,
                // The system had connected it, and the daemon was gone before it could take it.
                Err(error)
                    if !is_taken
                        && matches!(
                            error.kind(),
                            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                        ) =>
                {
                    assert!(TcpStream::connect(address).is_err(), "it was dropped: {error}");
                    return;
                }
                Err(error) => panic!("a request was not answered: {error}"),
            };
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            is_taken = true;
            answered.fetch_add(1, Ordering::Relaxed);
            if !is_kept || said.contains("connection: close") {
                break;
            }
        }
    }
}

#[test]
fn requests_before_the_listener_closes_get_responses() {
    for (is_kept, delay) in [(true, "300ms"), (false, "300ms"), (true, "0s"), (false, "0s")] {
        let daemon = start(delay);
        let answered = Arc::new(AtomicU32::new(0));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (address, answered) = (daemon.address().to_owned(), Arc::clone(&answered));
                thread::spawn(move || ask_until_refused(&address, is_kept, &answered))
            })
            .collect();
        while answered.load(Ordering::Relaxed) < 500 {
            thread::yield_now();
        }
        daemon.signal(Signal::TERM);
        for client in clients {
            client.join().unwrap();
        }
        assert_eq!(daemon.wait(), Some(0));
    }
}

#[test]
fn wrk_sees_no_error_while_it_is_told_to_stop() {
    for connections in ["1", "64"] {
        let daemon = start("6s");
        let url = format!("{}/v1/peek?policy=default&key=k", daemon.url);
        let arguments = ["-t1", "-c", connections, "-d3s", &url];
        // It comes with `cargo xtask test`, or as the Debian package `wrk`.
        let mut wrk = Command::new("wrk").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        // It measures for longer than it takes to ask this often.
        for _ in 0..200 {
            let mut stream = TcpStream::connect(daemon.address()).unwrap();
            assert!(answer(&mut stream, true).unwrap().starts_with("HTTP/1.1 200"));
        }
        daemon.signal(Signal::TERM);
        assert_eq!(wrk.try_wait().unwrap(), None, "wrk was done before the signal");
        let said = String::from_utf8(wrk.wait_with_output().unwrap().stdout).unwrap();
        assert!(said.contains("requests in"), "{said}");
        assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{said}");
        assert_eq!(daemon.wait(), Some(0));
    }
}
