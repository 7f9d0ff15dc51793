//! A minimal client of HTTP/1.1 and of the Redis protocol, whose requests are prepared.

use std::net::Ipv4Addr;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::open_loop::Client;

const CONNECTIONS: usize = 50;

/// The requests to a server.
#[derive(Debug)]
pub(crate) struct Requests {
    /// They are repeated.
    pub(crate) texts: Vec<Vec<u8>>,
    /// Whether a response is complete; an error if it is not the expected one.
    pub(crate) is_complete: fn(&[u8]) -> Result<bool>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct TextClient {
    stream: TcpStream,
    requests: Rc<Requests>,
    response: Vec<u8>,
}

/// Opens connections to a port.
pub(crate) async fn connect(port: u16, requests: &Rc<Requests>) -> Result<Vec<TextClient>> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        clients.push(TextClient { stream, requests: Rc::clone(requests), response: Vec::new() });
    }
    Ok(clients)
}

impl Client for TextClient {
    async fn call(&mut self, number: u64) -> Result<()> {
        let texts = &self.requests.texts;
        let text = &texts[usize::try_from(number)? % texts.len()];
        self.stream.write_all(text).await?;
        self.response.clear();
        while !(self.requests.is_complete)(&self.response)? {
            let read = self.stream.read_buf(&mut self.response).await?;
            ensure!(read > 0, "the connection ended: {}", self.response.escape_ascii());
        }
        Ok(())
    }
}

/// Whether an HTTP response with status 200 is complete.
pub(crate) fn is_complete_http(response: &[u8]) -> Result<bool> {
    let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(false);
    };
    let head = str::from_utf8(&response[..end])?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = length.with_context(|| format!("no Content-Length: {head}"))?;
    Ok(response.len() >= end + 4 + length.trim().parse::<usize>()?)
}

/// Whether a reply of the Redis protocol is complete: an integer, or an array of integers.
pub(crate) fn is_complete_resp(reply: &[u8]) -> Result<bool> {
    let mut lines = reply.split_inclusive(|byte| *byte == b'\n');
    let Some(first) = lines.next().filter(|line| line.ends_with(b"\n")) else { return Ok(false) };
    let first = str::from_utf8(first)?.trim_end();
    match first.split_at_checked(1) {
        Some((":", _)) => Ok(true),
        Some(("*", count)) => {
            Ok(lines.filter(|line| line.ends_with(b"\n")).count() == count.parse::<usize>()?)
        }
        _ => anyhow::bail!("{first}"),
    }
}
