//! The Redis protocol.

mod commands;
mod frames;
mod hostile;
mod metrics;
mod operations;
mod redis_cell;
mod store;
mod throttle;
mod tokens;
mod transactions;
mod value;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_server::resp_reference;

use crate::assert_up_to_date;
use crate::support::TIMEOUT;
use crate::support::daemon::Daemon;

/// A RESP connection.
#[derive(Debug)]
pub(crate) struct RespClient(TcpStream);

impl RespClient {
    pub(crate) async fn connect(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(daemon.resp).await.unwrap();
        stream.set_nodelay(true).unwrap();
        RespClient(stream)
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Reads as many bytes as expected and compares them.
    async fn expect(&mut self, expected: &[u8]) {
        let mut read = vec![0; expected.len()];
        let mut len = 0;
        while len < read.len() {
            match timeout(TIMEOUT, self.0.read(&mut read[len..])).await {
                Ok(Ok(more @ 1..)) => len += more,
                other => panic!("{other:?} after {}", read[..len].escape_ascii()),
            }
            let (read, expected) = (read[..len].escape_ascii(), expected[..len].escape_ascii());
            assert_eq!(read.to_string(), expected.to_string());
        }
    }

    /// Sends a command whose arguments are separated by spaces, and reads one reply.
    pub(crate) async fn call(&mut self, command: &str) -> String {
        self.send(&encode_words(command)).await;
        self.read_reply().await
    }

    async fn call_bytes(&mut self, arguments: &[&[u8]]) -> String {
        self.send(&encode(arguments)).await;
        self.read_reply().await
    }

    /// Reads one reply as text, with spaces instead of line ends.
    async fn read_reply(&mut self) -> String {
        let mut reply = String::new();
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let line = self.read_line().await;
            if !reply.is_empty() {
                reply.push(' ');
            }
            reply.push_str(&line);
            let number = || line[1..].parse::<i64>().unwrap();
            match line.as_bytes()[0] {
                b'*' | b'~' => left += usize::try_from(number()).unwrap_or(0),
                b'%' => left += 2 * usize::try_from(number()).unwrap(),
                b'$' | b'=' if number() >= 0 => {
                    let mut bytes = vec![0; usize::try_from(number()).unwrap() + 2];
                    timeout(TIMEOUT, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
                    bytes.truncate(bytes.len() - 2);
                    reply = format!("{} {}", reply, bytes.escape_ascii());
                }
                _ => {}
            }
        }
        reply
    }

    async fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(timeout(TIMEOUT, self.0.read_u8()).await.unwrap().unwrap());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).unwrap()
    }

    /// Waits until the peer closes. Returns what it sent until then.
    async fn read_until_closed(&mut self) -> String {
        let mut rest = Vec::new();
        // A peer that closes with unread bytes resets the connection.
        let _ = timeout(TIMEOUT, self.0.read_to_end(&mut rest)).await.unwrap();
        rest.escape_ascii().to_string()
    }
}

/// Encodes a command.
fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Encodes a command whose arguments are separated by spaces.
fn encode_words(command: &str) -> Vec<u8> {
    encode(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

#[test]
fn the_command_reference_is_up_to_date() {
    assert_up_to_date("docs/resp.md", &resp_reference());
}
