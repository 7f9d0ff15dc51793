//! A collector, as far as it listens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// One batch, as it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// Takes whatever is sent, until the test ends.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) url: String,
    sent: Receiver<Sent>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, sent) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // It is told before it is answered: who has the answer finds it here.
                let mut stream = stream.unwrap();
                let told = tell.send(read(&stream));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                if told.is_err() {
                    return;
                }
            }
        });
        Collector { url, sent }
    }

    /// What was sent and answered.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.try_iter().collect()
    }
}

fn read(stream: &TcpStream) -> Sent {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "it ends in {head:?}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap()];
    stream.read_exact(&mut body).unwrap();
    Sent { head, body }
}
