//! An HTTP client that sends arbitrary requests.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// The timeout of a read, longer than that of every gateway.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Sends a request over a new connection, for this machine by default.
pub(crate) fn send(
    address: impl ToSocketAddrs,
    line: &str,
    headers: &[&str],
    body: &str,
) -> Response {
    let mut client = Client::new(TcpStream::connect(address).unwrap());
    let has_host = headers.iter().any(|header| header.to_lowercase().starts_with("host:"));
    let host: &[&str] = if has_host { &[] } else { &["Host: localhost"] };
    client.send(line, &[headers, host, &["Connection: close"]].concat(), body)
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    /// Connects from `127.0.0.HOST`. The gateways have host 1, which the daemon trusts.
    pub(crate) fn connect(host: u8, port: u16) -> Self {
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&from.into()).unwrap();
        socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).unwrap();
        Self::new(TcpStream::from(socket))
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request; `line` is the request line without a version.
    pub(crate) fn send(&mut self, line: &str, headers: &[&str], body: &str) -> Response {
        let response = self.try_send(line, headers, body);
        response.unwrap_or_else(|| panic!("the connection was closed without a response to {line}"))
    }

    /// Returns `None` if the connection is closed without a response. A request line with HTTP/1.0
    /// is sent unchanged, without a default `Host`.
    pub(crate) fn try_send(
        &mut self,
        line: &str,
        headers: &[&str],
        body: &str,
    ) -> Option<Response> {
        let is_old = line.ends_with(" HTTP/1.0");
        let mut text = format!("{line}{}\r\n", if is_old { "" } else { " HTTP/1.1" });
        if !is_old && !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
            text.push_str("Host: app.test\r\n");
        }
        headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str(&format!("\r\n{body}"));
        self.write(text.as_bytes());
        self.read(line.starts_with("HEAD "))
    }

    /// Sends bytes, such as several requests.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // The server may reject a request and respond before it has read all of it.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Reads a response; `None` if the connection is closed.
    pub(crate) fn read(&mut self, is_head: bool) -> Option<Response> {
        let mut status = 100;
        let mut headers = Vec::new();
        // Skip informational responses such as 100.
        while status < 200 {
            let first = self.line()?;
            status = first.split(' ').nth(1).and_then(|part| part.parse().ok()).unwrap();
            headers.clear();
            loop {
                let line = self.line()?;
                let Some((name, value)) = line.split_once(':') else { break };
                headers.push((name.to_lowercase(), value.trim().to_owned()));
            }
        }
        let mut response = Response { status, headers, body: String::new() };
        if !is_head {
            response.body = self.body(&response);
        }
        Some(response)
    }

    fn body(&mut self, response: &Response) -> String {
        let mut body = Vec::new();
        if response.header("transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(&self.line().unwrap(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = response.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body).unwrap();
        } else {
            self.stream.read_to_end(&mut body).unwrap();
        }
        String::from_utf8(body).unwrap()
    }

    /// A line; `None` at the end of the connection.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Response {
    /// The value of a header; `None` if it is missing.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is repeated: {:?}", self.headers);
        value
    }

    /// The remaining requests according to the header `RateLimit`.
    pub(crate) fn remaining(&self) -> Option<u64> {
        let value = self.header("ratelimit")?;
        let remaining = value.split(';').find_map(|part| part.strip_prefix("r="));
        Some(remaining.unwrap_or_else(|| panic!("{value}")).parse().unwrap())
    }
}
