//! A mock of an OpenTelemetry collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A request with a batch of spans.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// Accepts every request until the test ends.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) url: String,
    batches: Receiver<Batch>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, batches) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Before the response, so that a batch with a response is in the channel.
                let sent = sender.send(read(&stream));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                if sent.is_err() {
                    return;
                }
            }
        });
        Collector { url, batches }
    }

    /// The batches that got a response.
    pub(crate) fn batches(&self) -> Vec<Batch> {
        self.batches.try_iter().collect()
    }
}

fn read(stream: &TcpStream) -> Batch {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the request ends in {head:?}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap()];
    stream.read_exact(&mut body).unwrap();
    Batch { head, body }
}
