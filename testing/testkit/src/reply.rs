//! Replies in the Redis protocol, versions 2 and 3.

use std::io::{self, BufRead};

/// A reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`, and version 3's doubles, booleans and big numbers.
    Simple(String),
    /// `-ERR …`, without the minus sign.
    Error(String),
    /// `:1`
    Integer(i64),
    /// `$1`, arbitrary bytes.
    Bulk(Vec<u8>),
    /// Any form of null.
    Null,
    /// `*2`; also sets, and maps as alternating keys and values.
    Array(Vec<Self>),
    /// `>2`, a message that is not the reply to a command.
    Push(Vec<Self>),
}

impl Reply {
    /// `+OK`.
    pub fn ok() -> Self {
        Self::Simple("OK".to_owned())
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The text of a string, number or error. Invalid UTF-8 is replaced; null is empty.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Null => String::new(),
            Self::Array(_) | Self::Push(_) => panic!("not a text: {self:?}"),
        }
    }

    /// The number, also if it is a string.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            _ => self.text().parse().unwrap_or_else(|_| panic!("not a number: {self:?}")),
        }
    }

    /// The elements of an array or a push message.
    #[track_caller]
    pub fn array(&self) -> &[Self] {
        match self {
            Self::Array(parts) | Self::Push(parts) => parts,
            _ => panic!("not an array: {self:?}"),
        }
    }

    /// Returns the reply unchanged; panics with `command` in the message if it is an error.
    #[track_caller]
    pub fn expect_no_error(self, command: &str) -> Self {
        if let Self::Error(error) = &self {
            panic!("{command}: {error}");
        }
        self
    }

    /// Reads one reply and appends its bytes to `raw`. The error is [`io::ErrorKind::UnexpectedEof`] if
    /// bytes are missing.
    pub fn read(from: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Self> {
        let (kind, line) = read_line(from, raw)?;
        Ok(match kind {
            b'+' | b',' | b'#' | b'(' => Self::Simple(line),
            b'-' => Self::Error(line),
            b':' => Self::Integer(line.parse().map_err(|_| malformed(&line))?),
            b'_' => Self::Null,
            b'$' | b'=' | b'!' => match length(&line)? {
                None => Self::Null,
                Some(length) => Self::Bulk(read_bytes(from, raw, length)?),
            },
            b'*' | b'~' | b'>' | b'%' => match length(&line)? {
                None => Self::Null,
                Some(length) => {
                    let parts = if kind == b'%' { length * 2 } else { length };
                    let parts =
                        (0..parts).map(|_| Self::read(from, raw)).collect::<io::Result<_>>()?;
                    if kind == b'>' { Self::Push(parts) } else { Self::Array(parts) }
                }
            },
            // Attributes precede their reply.
            b'|' => {
                for _ in 0..length(&line)?.ok_or_else(|| malformed(&line))? * 2 {
                    Self::read(from, raw)?;
                }
                Self::read(from, raw)?
            }
            _ => return Err(malformed(&line)),
        })
    }
}

/// The first byte of a line, and the rest without the line end.
fn read_line(from: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<(u8, String)> {
    let start = raw.len();
    from.read_until(b'\n', raw)?;
    let line = raw[start..].strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let (kind, rest) = line.split_first().ok_or(io::ErrorKind::InvalidData)?;
    Ok((*kind, String::from_utf8_lossy(rest).into_owned()))
}

/// `length` bytes; the line end that follows is appended to `raw` only.
fn read_bytes(from: &mut impl BufRead, raw: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    raw.extend_from_slice(&bytes);
    bytes.truncate(length);
    Ok(bytes)
}

/// A length; `None` for `-1`, which stands for null.
fn length(line: &str) -> io::Result<Option<usize>> {
    if line == "-1" { Ok(None) } else { line.parse().map(Some).map_err(|_| malformed(line)) }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_every_kind_are_read_completely() {
        let text = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        for (raw, expected) in [
            ("+OK\r\n", Reply::ok()),
            ("-ERR no\r\n", Reply::Error("ERR no".to_owned())),
            (":-7\r\n", Reply::Integer(-7)),
            ("$3\r\na\r\n\r\n", text("a\r\n")),
            ("$-1\r\n", Reply::Null),
            ("*-1\r\n", Reply::Null),
            ("_\r\n", Reply::Null),
            (",1.5\r\n", Reply::Simple("1.5".to_owned())),
            ("#t\r\n", Reply::Simple("t".to_owned())),
            ("*2\r\n:1\r\n*1\r\n$0\r\n\r\n", {
                Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![text("")])])
            }),
            ("%1\r\n+a\r\n:1\r\n", {
                Reply::Array(vec![Reply::Simple("a".to_owned()), Reply::Integer(1)])
            }),
            ("|1\r\n+a\r\n:1\r\n:2\r\n", Reply::Integer(2)),
            (">1\r\n+a\r\n", Reply::Push(vec![Reply::Simple("a".to_owned())])),
        ] {
            let mut copy = Vec::new();
            let mut rest = [raw.as_bytes(), b"+next\r\n"].concat();
            let mut from = rest.as_slice();
            assert_eq!(Reply::read(&mut from, &mut copy).unwrap(), expected);
            assert_eq!(String::from_utf8_lossy(&copy), raw);
            assert_eq!(from, b"+next\r\n");
            rest.truncate(raw.len() - 1);
            assert!(Reply::read(&mut rest.as_slice(), &mut copy).is_err(), "{raw:?} cut short");
        }
    }
}
