//! A client of HTTP/1.1 that does as it is told, well or badly.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &'_ &str| {
            line.split_once(':').is_some_and(|(x, _)| x.eq_ignore_ascii_case(name))
        };
        self.head.lines().find(named).and_then(|line| line.split_once(':')).map(|x| x.1.trim())
    }

    /// The names of the headers.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &str> {
        self.head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|x| x.0)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client<S = TcpStream>(pub(crate) S);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Client(TcpStream::connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &str) -> io::Result<()> {
        self.0.write_all(bytes.as_bytes()).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, "").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        self.ask("POST", path, body).await
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        self.send(&request(method, path, body)).await?;
        self.answer().await
    }

    /// Reads one answer. That the peer has closed before its first byte is
    /// [`io::ErrorKind::UnexpectedEof`].
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        let length = answer.header("content-length").map_or(0, |header| header.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        answer.body = String::from_utf8(body).unwrap();
        Ok(answer)
    }

    /// Waits until the peer has closed; what it sends until then.
    pub(crate) async fn closed(&mut self) -> String {
        let mut rest = Vec::new();
        // A peer that closes with bytes unread resets.
        let _ = self.0.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}")
}
