//! A blocking connection to a server.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::Reply;

/// A server that has not replied by then is stuck.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection, for sequences of commands such as `MULTI`, `SELECT` and `SUBSCRIBE`.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to an address such as `127.0.0.1:6379`, without a password.
    pub fn to(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self::over(stream))
    }

    pub(crate) fn to_unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self::over(stream))
    }

    /// Uses an open stream, such as TLS.
    pub fn over(stream: impl Read + Write + Send + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)) }
    }

    /// Sends a command and reads its reply. An error reply of the server is a [`Reply`].
    pub fn command<Arg: AsRef<[u8]>>(&mut self, args: &[Arg]) -> io::Result<Reply> {
        self.send(args)?;
        self.receive()
    }

    /// Sends a command without reading its reply; see [`receive`](Self::receive).
    pub fn send<Arg: AsRef<[u8]>>(&mut self, args: &[Arg]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(&encode(args))?;
        stream.flush()
    }

    /// Reads the next reply; fails after ten seconds without one.
    pub fn receive(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.stream, &mut Vec::new())
    }
}

/// A command in the Redis protocol.
pub fn encode<Arg: AsRef<[u8]>>(args: &[Arg]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        request.extend_from_slice(arg);
        request.extend_from_slice(b"\r\n");
    }
    request
}
