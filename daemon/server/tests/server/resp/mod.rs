//! The Redis protocol.

mod commands;
mod frames;
mod hostile;
mod operations;
mod redis_cell;
mod store;
mod throttle;
mod tokens;
mod transactions;

use std::iter::once;
use std::vec;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_daemon::resp_reference;

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

    /// Sends commands in one write, and reads their replies.
    pub(crate) async fn call_all(&mut self, commands: &[&str]) -> Vec<String> {
        let sent: Vec<u8> = commands.iter().flat_map(|command| encode_words(command)).collect();
        self.send(&sent).await;
        let mut replies = Vec::new();
        for _ in commands {
            replies.push(self.read_reply().await);
        }
        replies
    }

    async fn call_bytes(&mut self, arguments: &[&[u8]]) -> String {
        self.send(&encode(arguments)).await;
        self.read_reply().await
    }

    /// Sends a command whose arguments are separated by spaces, and decodes the reply.
    async fn call_value(&mut self, command: &str) -> Value {
        self.send(&encode_words(command)).await;
        Value::decode(&mut self.read_frames().await.into_iter())
    }

    /// Reads one reply as text, with spaces instead of line ends.
    async fn read_reply(&mut self) -> String {
        let frames = self.read_frames().await;
        let parts = frames.iter().flat_map(|(line, text)| once(&**line).chain(text.as_deref()));
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Reads one reply.
    async fn read_frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let line = self.read_line().await;
            let number = || line[1..].parse::<i64>().unwrap();
            let mut text = None;
            match line.as_bytes()[0] {
                b'*' | b'~' => left += usize::try_from(number()).unwrap_or(0),
                b'%' => left += 2 * usize::try_from(number()).unwrap(),
                b'$' | b'=' if number() >= 0 => {
                    let mut bytes = vec![0; usize::try_from(number()).unwrap() + 2];
                    timeout(TIMEOUT, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
                    bytes.truncate(bytes.len() - 2);
                    text = Some(bytes.escape_ascii().to_string());
                }
                _ => {}
            }
            frames.push((line, text));
        }
        frames
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

/// A line of a reply, and the text that follows it.
type Frame = (String, Option<String>);

/// A decoded reply, in both versions of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Error(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// The value as RESP2 represents it.
    fn to_resp2(&self) -> Value {
        match self {
            Value::Bool(value) => Value::Int(i64::from(*value)),
            Value::List(all) => Value::List(all.iter().map(Value::to_resp2).collect()),
            Value::Map(all) => Value::List(
                all.iter().flat_map(|(name, value)| [name.to_resp2(), value.to_resp2()]).collect(),
            ),
            other => other.clone(),
        }
    }

    /// The value of a field of a map; [`Value::Null`] if there is none.
    fn get(&self, name: &str) -> &Value {
        let Value::Map(all) = self else { panic!("{self:?} is not a map") };
        let found = all.iter().find(|(field, _)| *field == Value::Text(name.to_owned()));
        found.map_or(&Value::Null, |(_, value)| value)
    }

    /// Decodes the first reply of the frames.
    fn decode(frames: &mut vec::IntoIter<Frame>) -> Self {
        let (line, text) = frames.next().unwrap();
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        match kind {
            "_" => Value::Null,
            "$" | "*" if number() < 0 => Value::Null,
            "#" => Value::Bool(rest == "t"),
            ":" => Value::Int(number()),
            "+" => Value::Text(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            "$" | "=" => Value::Text(text.unwrap()),
            "*" | "~" => Value::List((0..number()).map(|_| Value::decode(frames)).collect()),
            "%" => {
                let entry = |_| (Value::decode(frames), Value::decode(frames));
                Value::Map((0..number()).map(entry).collect())
            }
            other => panic!("{other:?} is not a reply type"),
        }
    }
}

/// Sends the commands of `count` rows, `command => reply`, and compares the replies. An indented
/// line continues a row; a line that begins with `# ` is a comment.
async fn check_rows(client: &mut RespClient, rows: &str, count: usize) {
    let rows = rows.replace("\n  ", " ");
    let rows = rows.lines().filter(|row| !row.is_empty() && !row.starts_with("# "));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), count, "rows");
    for row in rows {
        let (command, expected) = row.split_once(" => ").unwrap();
        assert_eq!(client.call(command).await, expected, "{command}");
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
    let (file, expected) = ("docs/resp.md", resp_reference());
    tollgate_testkit::assert_up_to_date(file, &expected, "tollgate-daemon", "server");
}
