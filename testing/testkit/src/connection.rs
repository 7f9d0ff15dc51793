//! A blocking connection to a server, for what a test asks of it directly.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::Reply;

/// A server of a test that has not answered by then is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection of one's own, for what needs more than one command: `MULTI`, `SELECT`, `SUBSCRIBE`.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to `address`, as `127.0.0.1:6379`, without a password.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub fn to(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::over(stream))
    }

    pub(crate) fn to_unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::over(stream))
    }

    /// Speaks over a stream that is there already, which may be TLS.
    pub fn over(stream: impl Read + Write + Send + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)) }
    }

    /// Sends a command and reads its reply.
    ///
    /// # Errors
    ///
    /// Those of the socket. An error that the server answers is a [`Reply`].
    pub fn command<Word: AsRef<[u8]>>(&mut self, words: &[Word]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command only; [`receive`](Self::receive) then reads its reply.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub fn send<Word: AsRef<[u8]>>(&mut self, words: &[Word]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(&encoded(words))?;
        stream.flush()
    }

    /// Reads the next reply.
    ///
    /// # Errors
    ///
    /// Those of the socket, among them that nothing came for ten seconds.
    pub fn receive(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.stream, &mut Vec::new())
    }
}

fn encoded<Word: AsRef<[u8]>>(words: &[Word]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}
