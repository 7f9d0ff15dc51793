//! As many connections as there are places, none of which asks anything.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::process::Daemon;

/// As many as `limits.connections` says by itself.
const CROWD: u64 = 10_000;
/// What the test and the daemon need besides.
const BESIDES: u64 = 200;

/// Asks once; whether that was allowed.
fn ask(stream: &mut TcpStream) -> bool {
    let body = r#"{"policy":"default","key":"k","cost":0}"#;
    let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length";
    write!(stream, "{head}: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begin = head.len();
        assert!(reader.read_line(&mut head).unwrap() > 0, "no answer: {head}");
        if let Some(head) = head[begin..].strip_prefix("content-length: ") {
            length = head.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    head.starts_with("HTTP/1.1 200")
}

#[test]
fn new_connections_are_served_beside_ten_thousand_idle_ones() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < CROWD + BESIDES) {
        return eprintln!("SKIPPED: no more than {:?} files may be open here", limit.maximum);
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let daemon = Daemon::start(["10/s"]);
    let mut kept = TcpStream::connect(daemon.address()).unwrap();
    assert!(ask(&mut kept));
    let mut crowd = Vec::new();
    for number in 0..CROWD {
        crowd.push(TcpStream::connect(daemon.address()).unwrap());
        if number % 100 == 0 {
            assert!(ask(&mut kept));
        }
    }
    for _ in 0..20 {
        // Each of these evicts an idle connection.
        let mut new = TcpStream::connect(daemon.address()).unwrap();
        assert!(ask(&mut new) && ask(&mut new) && ask(&mut kept));
        crowd.push(new);
    }
    drop(crowd);
    daemon.stop();
}
