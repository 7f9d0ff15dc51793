//! Connections: as many as are allowed, and the drain after SIGTERM.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::{Resource, Signal, getrlimit, setrlimit};

use crate::client::Client;
use crate::process::Daemon;

fn start(delay: &str) -> Daemon {
    let yaml = format!(
        "drain: {{ delay: {delay} }}\npolicies: {{ default: {{ limits: [1000000000/s] }} }}\n"
    );
    Daemon::with_config(&yaml, |command| command)
}

/// Sends a check and returns the response. The end of the connection is
/// [`ErrorKind::UnexpectedEof`].
fn check(stream: &mut TcpStream, is_last: bool) -> Result<String> {
    let body = r#"{"policy":"default","key":"k"}"#;
    let close = if is_last { "connection: close\r\n" } else { "" };
    let head = format!("POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{close}content-length");
    stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut response = String::new();
    let mut byte = [0];
    while !response.ends_with("]}") {
        stream.read_exact(&mut byte)?;
        response.push(char::from(byte[0]));
    }
    Ok(response)
}

/// Sends requests until the listener closes, over connections with one request or, with
/// `keep_alive`, many requests each. On a connection that has got a response, every further request
/// must get a response with status 200.
fn send_until_refused(address: &str, keep_alive: bool, responses: &AtomicU32) {
    while let Ok(mut stream) = TcpStream::connect(address) {
        let mut has_response = false;
        loop {
            let response = match check(&mut stream, !keep_alive) {
                Ok(response) => response,
                // The system accepted the connection, and the daemon closed the listener first.
                Err(error)
                    if !has_response
                        && [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe]
                            .contains(&error.kind()) =>
                {
                    let is_refused = TcpStream::connect(address).is_err();
                    assert!(is_refused, "the connection was dropped: {error}");
                    return;
                }
                Err(error) => panic!("a request got no response: {error}"),
            };
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
            has_response = true;
            responses.fetch_add(1, Ordering::Relaxed);
            if !keep_alive || response.contains("connection: close") {
                break;
            }
        }
    }
}

#[test]
fn requests_before_the_listener_closes_get_responses() {
    for (keep_alive, delay) in [(true, "300ms"), (false, "300ms"), (true, "0s"), (false, "0s")] {
        let daemon = start(delay);
        let responses = Arc::new(AtomicU32::new(0));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (address, responses) = (daemon.address().to_owned(), Arc::clone(&responses));
                thread::spawn(move || send_until_refused(&address, keep_alive, &responses))
            })
            .collect();
        while responses.load(Ordering::Relaxed) < 500 {
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
fn wrk_reports_no_error_while_the_daemon_drains() {
    for connections in ["1", "64"] {
        let daemon = start("6s");
        let url = format!("{}/v1/peek?policy=default&key=k", daemon.url);
        let arguments = ["-t1", "-c", connections, "-d3s", &url];
        // `cargo xtask test` installs wrk, and Debian has the package `wrk`.
        let mut wrk = Command::new("wrk").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        // These requests take less time than the run of wrk.
        for _ in 0..200 {
            let mut stream = TcpStream::connect(daemon.address()).unwrap();
            assert!(check(&mut stream, true).unwrap().starts_with("HTTP/1.1 200"));
        }
        daemon.signal(Signal::TERM);
        assert_eq!(wrk.try_wait().unwrap(), None, "wrk ended before the signal");
        let report = String::from_utf8(wrk.wait_with_output().unwrap().stdout).unwrap();
        assert!(report.contains("requests in"), "{report}");
        assert!(!report.contains("Socket errors") && !report.contains("Non-2xx"), "{report}");
        assert_eq!(daemon.wait(), Some(0));
    }
}

/// The default of `limits.connections`.
const MAX_CONNECTIONS: u64 = 10_000;
/// Other open files of the test and the daemon.
const OTHER_FILES: u64 = 200;

/// Sends a check. Returns whether it was allowed.
fn is_allowed(client: &mut Client) -> bool {
    let body = r#"{"policy":"default","key":"k","cost":0}"#;
    client.send("POST /v1/check", &["Host: localhost"], body).status == 200
}

#[test]
fn new_connections_are_served_beside_ten_thousand_idle_ones() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < MAX_CONNECTIONS + OTHER_FILES) {
        return eprintln!("SKIPPED: at most {:?} files may be open", limit.maximum);
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let yaml = "limits: { peer_connections: 20000 }\npolicies: { default: { limits: [10/s] } }\n";
    let daemon = Daemon::with_config(yaml, |command| command);
    let connect = || TcpStream::connect(daemon.address()).unwrap();
    let mut busy = Client::new(connect());
    assert!(is_allowed(&mut busy));
    let mut idle = Vec::new();
    for number in 0..MAX_CONNECTIONS {
        idle.push(connect());
        if number % 100 == 0 {
            assert!(is_allowed(&mut busy));
        }
    }
    let mut clients = Vec::new();
    for _ in 0..20 {
        // Each of these evicts an idle connection.
        let mut new = Client::new(connect());
        assert!(is_allowed(&mut new) && is_allowed(&mut new) && is_allowed(&mut busy));
        clients.push(new);
    }
    drop((idle, clients));
    daemon.stop();
}
