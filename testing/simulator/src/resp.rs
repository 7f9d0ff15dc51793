//! The Redis protocol, version 2: commands in, replies out.

use tollgate_testkit::Reply;

/// Limits of commands before a client has authenticated.
const MAX_UNAUTHENTICATED_WORDS: usize = 10;
const MAX_UNAUTHENTICATED_BYTES: usize = 16_384;
const MAX_WORDS: usize = 1024 * 1024;
const MAX_BYTES: usize = 512 * 1024 * 1024;
const MAX_LINE: usize = 64 * 1024;

/// Parses commands from bytes that arrive in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    buffer: Vec<u8>,
}

/// The text of a protocol error, after which a server closes the connection.
pub(crate) type ProtocolError = String;

impl Parser {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next command; `None` if it has not arrived completely.
    pub(crate) fn next(
        &mut self,
        is_authenticated: bool,
    ) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        loop {
            let mut cursor = Cursor { bytes: &self.buffer, at: 0 };
            let words = match self.buffer.first() {
                None => return Ok(None),
                Some(b'*') => cursor.multibulk(is_authenticated)?,
                Some(_) => cursor.inline()?,
            };
            let at = cursor.at;
            let Some(words) = words else { return Ok(None) };
            self.buffer.drain(..at);
            if !words.is_empty() {
                return Ok(Some(words));
            }
        }
    }
}

/// A position in the received bytes. Its methods return `None` if bytes are missing.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn line(&mut self, what: &str) -> Result<Option<&'a [u8]>, ProtocolError> {
        let rest = &self.bytes[self.at..];
        match rest.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if rest.len() > MAX_LINE => Err(format!("ERR Protocol error: too big {what}")),
            None => Ok(None),
        }
    }

    /// A line with a length after the first byte.
    fn length(&mut self, what: &str, max: usize) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(&format!("{what} count string"))? else { return Ok(None) };
        let number = str::from_utf8(&line[1..]).ok().and_then(|text| text.parse::<i64>().ok());
        // A negative number of words is no command.
        let number = number.map(|number| usize::try_from(number).unwrap_or(0));
        match number.filter(|number| *number <= max) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("ERR Protocol error: invalid {what} length")),
        }
    }

    fn multibulk(&mut self, is_authenticated: bool) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        let Some(count) = self.length("multibulk", MAX_WORDS)? else { return Ok(None) };
        if !is_authenticated && count > MAX_UNAUTHENTICATED_WORDS {
            return Err("ERR Protocol error: unauthenticated multibulk length".to_owned());
        }
        let mut words = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            let Some(first) = self.bytes.get(self.at) else { return Ok(None) };
            if *first != b'$' {
                let first = char::from(*first);
                return Err(format!("ERR Protocol error: expected '$', got '{first}'"));
            }
            let Some(length) = self.length("bulk", MAX_BYTES)? else { return Ok(None) };
            if !is_authenticated && length > MAX_UNAUTHENTICATED_BYTES {
                return Err("ERR Protocol error: unauthenticated bulk length".to_owned());
            }
            let Some(word) = self.bytes.get(self.at..self.at + length) else { return Ok(None) };
            if self.bytes.len() < self.at + length + 2 {
                return Ok(None);
            }
            self.at += length + 2;
            words.push(word.to_vec());
        }
        Ok(Some(words))
    }

    /// A command as words in a line, without quotes.
    fn inline(&mut self) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        let Some(line) = self.line("inline request")? else { return Ok(None) };
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        Ok(Some(words.map(<[u8]>::to_vec).collect()))
    }
}

/// Appends the bytes of a reply.
pub(crate) fn encode(reply: &Reply, to: &mut Vec<u8>) {
    match reply {
        Reply::Simple(text) => push_line(to, b'+', text.as_bytes()),
        Reply::Error(text) => push_line(to, b'-', text.as_bytes()),
        Reply::Integer(number) => push_line(to, b':', number.to_string().as_bytes()),
        Reply::Null => to.extend_from_slice(b"$-1\r\n"),
        Reply::Bulk(bytes) => {
            push_line(to, b'$', bytes.len().to_string().as_bytes());
            to.extend_from_slice(bytes);
            to.extend_from_slice(b"\r\n");
        }
        Reply::Array(parts) | Reply::Push(parts) => {
            push_line(to, b'*', parts.len().to_string().as_bytes());
            parts.iter().for_each(|part| encode(part, to));
        }
    }
}

/// Line breaks in the text become spaces, as in Redis.
fn push_line(to: &mut Vec<u8>, kind: u8, text: &[u8]) {
    to.push(kind);
    to.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    to.extend_from_slice(b"\r\n");
}

/// Encodes a command.
pub(crate) fn encode_command(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let words = words.iter().map(|word| Reply::Bulk(word.as_ref().to_vec())).collect();
    let mut bytes = Vec::new();
    encode(&Reply::Array(words), &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_split_at_any_byte_are_parsed() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$4\r\n\r\n$1\r\nPING  x\r\n\r\n*0\r\n*1\r\n$0\r\n\r\n";
        let expected: [&[&[u8]]; 3] = [&[b"GET", b"\r\n$1"], &[b"PING", b"x"], &[b""]];
        for split in 0..bytes.len() {
            let (mut parser, mut found) = (Parser::default(), Vec::new());
            for part in [&bytes[..split], &bytes[split..]] {
                parser.push(part);
                while let Some(words) = parser.next(true).unwrap() {
                    found.push(words);
                }
            }
            assert_eq!(found, expected, "split at {split}");
        }
    }

    #[test]
    fn invalid_commands_are_protocol_errors() {
        let check = |bytes: &str, is_authenticated, expected: &str| {
            let mut parser = Parser::default();
            parser.push(bytes.as_bytes());
            let error = parser.next(is_authenticated).unwrap_err();
            assert_eq!(error, format!("ERR Protocol error: {expected}"));
        };
        check("*x\r\n", true, "invalid multibulk length");
        check("*1\r\n+OK\r\n", true, "expected '$', got '+'");
        check("*1\r\n$x\r\n", true, "invalid bulk length");
        check("*11\r\n", false, "unauthenticated multibulk length");
        check("*1\r\n$16385\r\n", false, "unauthenticated bulk length");
        check(&"x".repeat(70_000), true, "too big inline request");
    }
}
