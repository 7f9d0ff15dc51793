//! The line number of a CSV record.

use std::collections::VecDeque;
use std::io::{self, Read};

/// Passes bytes on and records the offsets of non-empty lines. The CSV parser reports the position
/// of a record before the empty lines that precede it, and before the second character of a CRLF.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    offset: u64,
    line: u64,
    at_beginning: bool,
    /// Offset and number of each line that was not yet looked up.
    beginnings: VecDeque<(u64, u64)>,
}

impl<R> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Lines { from, offset: 0, line: 1, at_beginning: true, beginnings: VecDeque::new() }
    }

    /// The first line that begins at or after the offset. Offsets must not decrease.
    pub(super) fn line_at(&mut self, offset: u64) -> Option<u64> {
        while self.beginnings.front().is_some_and(|(x, _)| *x < offset) {
            self.beginnings.pop_front();
        }
        self.beginnings.front().map(|(_, line)| *line)
    }

    fn note(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.line += 1;
                self.at_beginning = true;
            }
            b'\r' => {}
            _ if self.at_beginning => {
                self.beginnings.push_back((self.offset, self.line));
                self.at_beginning = false;
            }
            _ => {}
        }
        self.offset += 1;
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(bytes)?;
        bytes.iter().take(read).for_each(|byte| self.note(*byte));
        Ok(read)
    }
}
