//! The numbers of frames: how many arguments follow, and how long each is.

use super::frames::{ProtocolError, broken};

/// The most bytes of the line that holds a number.
const MAX_NUMBER: usize = 32;

/// What a number is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// How many arguments follow.
    Count,
    /// How long one is.
    Length,
}

impl Number {
    /// What Redis says of it. The number itself is not shown: how much of it is there depends on
    /// where the bytes were split.
    pub(super) fn invalid(self) -> ProtocolError {
        broken(match self {
            Number::Count => "invalid multibulk length",
            Number::Length => "invalid bulk length",
        })
    }

    fn too_big(self) -> ProtocolError {
        broken(match self {
            Number::Count => "too big mbulk count string",
            Number::Length => "too big bulk count string",
        })
    }
}

/// The number of a line that begins at `start`, and where the next line begins; nothing if it is
/// not whole yet.
#[inline]
pub(super) fn number(
    bytes: &[u8],
    start: usize,
    what: Number,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let mut value = 0_i64;
    // Nearly all are a digit or two, which need no more than this.
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'0'..=b'9' if at < 18 => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if at > 0 => return end_of(rest, start, at, value, what),
            _ => return odd_number(rest, start, what),
        }
    }
    Ok(None)
}

fn end_of(
    rest: &[u8],
    start: usize,
    at: usize,
    value: i64,
    what: Number,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    match rest.get(at + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((value, start + at + 2))),
        Some(_) => Err(what.invalid()),
    }
}

/// A number that is negative, very large, or none.
#[cold]
fn odd_number(
    rest: &[u8],
    start: usize,
    what: Number,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let head = rest.get(..rest.len().min(MAX_NUMBER + 1)).unwrap_or_default();
    let digits = head.split(|head| *head == b'\r').next().unwrap_or_default();
    let most = digits.get(..digits.len().min(MAX_NUMBER)).unwrap_or_default();
    let may_be = |(at, x): (usize, &u8)| x.is_ascii_digit() || (at == 0 && *x == b'-');
    if !most.iter().enumerate().all(may_be) {
        return Err(what.invalid());
    }
    if digits.len() >= MAX_NUMBER {
        return Err(what.too_big());
    }
    if digits.len() == rest.len() {
        return Ok(None);
    }
    match std::str::from_utf8(digits).ok().and_then(|x| x.parse().ok()) {
        Some(value) => end_of(rest, start, digits.len(), value, what),
        None => Err(what.invalid()),
    }
}
