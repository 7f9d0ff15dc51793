//! An HTTP/1.1 client that can also send malformed requests.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|header| header.0.eq_ignore_ascii_case(name)).map(|header| header.1)
    }

    /// Asserts the status and a part of the body; `row` is part of the message.
    #[track_caller]
    pub(crate) fn assert(&self, status: u16, part: &str, row: impl Display) {
        assert_eq!(self.status, status, "{row}: {}", self.body);
        assert!(self.body.contains(part), "{row}: expected {part} in {}", self.body);
    }

    /// The names and values of the headers.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.map(|(name, value)| (name, value.trim()))
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client<S = TcpStream>(pub(crate) S);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Client(TcpStream::connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> io::Result<Response> {
        self.request("GET", path, "").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> io::Result<Response> {
        self.request("POST", path, body).await
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> io::Result<Response> {
        self.request_with(method, path, "", body).await
    }

    /// Sends a request with more header lines, separated by CRLF.
    pub(crate) async fn request_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<Response> {
        self.send(&encode_request(method, path, headers, body)).await?;
        self.read_response().await
    }

    /// Reads one response.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the peer closes before the first byte.
    pub(crate) async fn read_response(&mut self) -> io::Result<Response> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response = Response { status, head, body: String::new() };
        let length = response.header("content-length").map_or(0, |value| value.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        response.body = String::from_utf8(body).unwrap();
        Ok(response)
    }

    /// Reads until a chunked body has ended.
    pub(crate) async fn read_until_chunked_end(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n0\r\n\r\n") {
            text.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(text).unwrap()
    }

    /// Waits until the peer closes. Returns what it sent until then.
    pub(crate) async fn read_until_closed(&mut self) -> String {
        let mut rest = Vec::new();
        // A peer that closes with unread bytes resets the connection.
        let _ = self.0.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Encodes a request, with more header lines separated by CRLF.
pub(crate) fn encode_request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let (length, separator) = (body.len(), if headers.is_empty() { "" } else { "\r\n" });
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}{separator}content-length: {length}\r\n\r\n{body}"
    )
}
