//! Reading RESP2 in place.

use crate::answer::Broken;

/// A place in what was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
}

/// One item; of an array its length, with the elements behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Array(usize),
    Null,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The rest has not come.
    Partial,
    Broken(Broken),
}

const MAX_LINE_LEN: usize = 64 * 1024;
const MAX_BULK: usize = 1024 * 1024;
const MAX_ELEMENTS: usize = 4_096;
const MAX_DEPTH: usize = 8;

impl<'a> Cursor<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Cursor { input, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        match rest.iter().position(|x| *x == b'\r') {
            Some(end) if rest.len() > end + 1 => {
                if rest[end + 1] != b'\n' {
                    return Err(Stop::Broken(Broken("what came is not RESP")));
                }
                self.at += end + 2;
                Ok(&rest[..end])
            }
            _ if rest.len() > MAX_LINE_LEN => Err(Stop::Broken(Broken("a line does not end"))),
            _ => Err(Stop::Partial),
        }
    }

    /// Reads the next item.
    pub(super) fn item(&mut self) -> Result<Item<'a>, Stop> {
        let line = self.line()?;
        let broken = Stop::Broken(Broken("what came is not RESP"));
        let (kind, rest) = line.split_first().ok_or(broken)?;
        let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
        match kind {
            b'+' => Ok(Item::Simple(rest)),
            b'-' => Ok(Item::Error(rest)),
            b':' => number().map(Item::Integer).ok_or(broken),
            b'$' | b'*' if number() == Some(-1) => Ok(Item::Null),
            b'$' => self.bulk(length(number(), MAX_BULK).ok_or(broken)?),
            b'*' => length(number(), MAX_ELEMENTS).map(Item::Array).ok_or(broken),
            _ => Err(broken),
        }
    }

    fn bulk(&mut self, length: usize) -> Result<Item<'a>, Stop> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let bytes = rest.get(..length).filter(|_| rest.len() >= length + 2).ok_or(Stop::Partial)?;
        self.at += length + 2;
        Ok(Item::Bulk(bytes))
    }

    /// Passes over the next item with all that is in it.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let first = self.item()?;
        self.skip_within(first, MAX_DEPTH)
    }

    /// Passes over what is in an item that was read.
    pub(super) fn skip_within(&mut self, item: Item<'_>, depth: usize) -> Result<(), Stop> {
        let Item::Array(length) = item else { return Ok(()) };
        let depth = depth.checked_sub(1).ok_or(Stop::Broken(Broken("arrays are too deep")))?;
        for _ in 0..length {
            let inner = self.item()?;
            self.skip_within(inner, depth)?;
        }
        Ok(())
    }
}

fn length(number: Option<i64>, most: usize) -> Option<usize> {
    number.and_then(|number| usize::try_from(number).ok()).filter(|x| *x <= most)
}
