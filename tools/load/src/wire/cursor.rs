//! Parses RESP2 in place.

use crate::reply::ProtocolError;

/// A position in the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
}

/// An item; the elements of an array follow its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Array(usize),
    Null,
}

/// Why parsing stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The input is incomplete.
    Incomplete,
    Invalid(ProtocolError),
}

const MAX_LINE_LEN: usize = 64 * 1024;
const MAX_BULK: usize = 1024 * 1024;
const MAX_ELEMENTS: usize = 4_096;
pub(super) const MAX_DEPTH: usize = 8;

const NOT_RESP: Stop = Stop::Invalid(ProtocolError("the response is not RESP"));

impl<'a> Cursor<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Cursor { input, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Reads up to the next line end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.input[self.at..];
        match rest.iter().position(|byte| *byte == b'\r') {
            Some(end) if rest.len() > end + 1 => {
                if rest[end + 1] != b'\n' {
                    return Err(NOT_RESP);
                }
                self.at += end + 2;
                Ok(&rest[..end])
            }
            _ if rest.len() > MAX_LINE_LEN => {
                Err(Stop::Invalid(ProtocolError("a line is too long")))
            }
            _ => Err(Stop::Incomplete),
        }
    }

    /// Reads the next item.
    pub(super) fn item(&mut self) -> Result<Item<'a>, Stop> {
        let line = self.line()?;
        let (kind, rest) = line.split_first().ok_or(NOT_RESP)?;
        let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
        match kind {
            b'+' => Ok(Item::Simple(rest)),
            b'-' => Ok(Item::Error(rest)),
            b':' => number().map(Item::Integer).ok_or(NOT_RESP),
            b'$' | b'*' if number() == Some(-1) => Ok(Item::Null),
            b'$' => self.bulk(length(number(), MAX_BULK).ok_or(NOT_RESP)?),
            b'*' => length(number(), MAX_ELEMENTS).map(Item::Array).ok_or(NOT_RESP),
            _ => Err(NOT_RESP),
        }
    }

    fn bulk(&mut self, length: usize) -> Result<Item<'a>, Stop> {
        let rest = &self.input[self.at..];
        let bytes =
            rest.get(..length).filter(|_| rest.len() >= length + 2).ok_or(Stop::Incomplete)?;
        self.at += length + 2;
        Ok(Item::Bulk(bytes))
    }

    /// Skips the next item and its elements.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let first = self.item()?;
        self.skip_elements(first, MAX_DEPTH)
    }

    /// Skips the elements of an item that has been read.
    pub(super) fn skip_elements(&mut self, item: Item<'_>, depth: usize) -> Result<(), Stop> {
        let Item::Array(length) = item else { return Ok(()) };
        let depth = depth
            .checked_sub(1)
            .ok_or(Stop::Invalid(ProtocolError("arrays are nested too deeply")))?;
        for _ in 0..length {
            let inner = self.item()?;
            self.skip_elements(inner, depth)?;
        }
        Ok(())
    }
}

fn length(number: Option<i64>, max: usize) -> Option<usize> {
    number.and_then(|number| usize::try_from(number).ok()).filter(|length| *length <= max)
}
