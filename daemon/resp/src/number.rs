//! The numbers of frames: how many arguments follow, and how long each is.

use super::failure::ProtocolError;

/// The most bytes of the line that contains a number.
const MAX_LEN: usize = 32;

/// The meaning of a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// The number of arguments that follow.
    Count,
    /// The length of an argument.
    Length,
}

impl Number {
    /// The error of Redis for an invalid number. It does not quote the number: how much of it has
    /// arrived depends on where the bytes were split.
    pub(super) fn invalid(self) -> ProtocolError {
        ProtocolError::new(match self {
            Number::Count => "invalid multibulk length",
            Number::Length => "invalid bulk length",
        })
    }

    fn too_big(self) -> ProtocolError {
        ProtocolError::new(match self {
            Number::Count => "too big mbulk count string",
            Number::Length => "too big bulk count string",
        })
    }

    /// Parses the line that begins at `start`. Returns the number and the start of the next line, or
    /// nothing if the line is incomplete.
    #[inline]
    pub(super) fn parse(
        self,
        bytes: &[u8],
        start: usize,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let line = &bytes[start..];
        let mut value = 0_i64;
        // Nearly all numbers have one or two digits, which need no more than this.
        for (len, byte) in line.iter().enumerate() {
            match byte {
                b'0'..=b'9' if len < 18 => value = value * 10 + i64::from(byte - b'0'),
                b'\r' if len > 0 => return self.end(line, start, len, value),
                _ => return self.parse_unusual(line, start),
            }
        }
        Ok(None)
    }

    /// Returns `value` if a line feed follows the carriage return after `len` bytes.
    fn end(
        self,
        line: &[u8],
        start: usize,
        len: usize,
        value: i64,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        match line.get(len + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some((value, start + len + 2))),
            Some(_) => Err(self.invalid()),
        }
    }

    /// Parses a negative or very large number.
    #[cold]
    fn parse_unusual(
        self,
        line: &[u8],
        start: usize,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let head = &line[..line.len().min(MAX_LEN + 1)];
        let len = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
        let digits = &head[..len];
        let is_valid =
            |(at, byte): (usize, &u8)| byte.is_ascii_digit() || (at == 0 && *byte == b'-');
        if !digits.iter().take(MAX_LEN).enumerate().all(is_valid) {
            return Err(self.invalid());
        }
        if len >= MAX_LEN {
            return Err(self.too_big());
        }
        if len == line.len() {
            return Ok(None);
        }
        match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            Some(value) => self.end(line, start, len, value),
            None => Err(self.invalid()),
        }
    }
}
