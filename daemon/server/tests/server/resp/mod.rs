//! Clients of Redis: bytes in, bytes out, wherever they are split.

mod commands;
mod counted;
mod frames;
mod hostile;
mod reference;
mod store;
mod throttle;
mod tokens;
mod transactions;
mod value;
mod verbs;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::daemon::Daemon;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
#[derive(Debug)]
pub(crate) struct Talk(TcpStream);

impl Talk {
    pub(crate) async fn with(daemon: &Daemon) -> Self {
        Talk::at(daemon.resp).await
    }

    async fn at(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Talk(stream)
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Reads as many bytes as are expected, which are to be these.
    async fn expect(&mut self, expected: &[u8]) {
        let mut read = vec![0; expected.len()];
        let mut len = 0;
        while len < read.len() {
            match timeout(PATIENCE, self.0.read(&mut read[len..])).await {
                Ok(Ok(more @ 1..)) => len += more,
                other => panic!("{other:?} after {}", read[..len].escape_ascii()),
            }
            let so_far = &expected[..len];
            let (read, so_far) = (read[..len].escape_ascii(), so_far.escape_ascii());
            assert_eq!(read.to_string(), so_far.to_string());
        }
    }

    /// Sends words as a command, and reads one reply.
    pub(crate) async fn ask(&mut self, words: &str) -> String {
        let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
        self.ask_bytes(&words).await
    }

    async fn ask_bytes(&mut self, words: &[&[u8]]) -> String {
        self.send(&command(words)).await;
        self.reply().await
    }

    /// Reads one reply, as a text with spaces in the place of the ends of lines.
    async fn reply(&mut self) -> String {
        let mut reply = String::new();
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let line = self.line().await;
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
                    timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
                    bytes.truncate(bytes.len() - 2);
                    reply = format!("{} {}", reply, bytes.escape_ascii());
                }
                _ => {}
            }
        }
        reply
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(timeout(PATIENCE, self.0.read_u8()).await.unwrap().unwrap());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).unwrap()
    }

    /// Waits until the peer has closed; what it sends until then.
    async fn closed(&mut self) -> String {
        let mut rest = Vec::new();
        // A peer that closes with bytes unread resets.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.unwrap();
        rest.escape_ascii().to_string()
    }
}

/// The frame of a command.
fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The frame of a command whose words are parted by spaces.
fn words(text: &str) -> Vec<u8> {
    command(&text.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}
