//! Splits a stream of bytes into blocks of whole lines.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memchr_iter, memrchr};

use super::block::{Block, Buffers, FileHead, Part, TooLong};
use crate::convert::to_u64;

/// The size of the beginning of a file.
const BEGINNING_BYTES: usize = 16 << 10;
/// How much of a line that is too long is reported.
const SAMPLE_BYTES: usize = 512;

/// The number of parts that wait for the consumer. While none waits, short blocks are sent early.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Arc<AtomicUsize>);

impl Queue {
    pub(super) fn put(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn take(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

pub(super) struct LineSplitter<R> {
    file: usize,
    name: Arc<str>,
    from: R,
    buffers: Buffers,
    queue: Queue,
    beginning: Option<Arc<FileHead>>,
    /// The bytes after the last line end.
    rest: Vec<u8>,
    pub(super) lines: u64,
    failed: Option<io::Error>,
    ended: bool,
}

impl<R: Read> LineSplitter<R> {
    /// The buffers have the maximum length of a line, so every valid line fits, because a block
    /// starts at the start of a line.
    pub(super) fn new(
        file: usize,
        name: Arc<str>,
        from: R,
        buffers: Buffers,
        queue: Queue,
    ) -> Self {
        let (beginning, rest, lines, failed, ended) = (None, Vec::new(), 0, None, false);
        Self { file, name, from, buffers, queue, beginning, rest, lines, failed, ended }
    }

    /// The next part; `None` at the end.
    ///
    /// A failed read ends the file; the whole lines before it are returned first.
    pub(super) fn next(&mut self) -> io::Result<Option<Part>> {
        let mut buffer = self.buffers.take();
        let filled = self.fill(&mut buffer.bytes);
        let bytes = &buffer.bytes[..filled];
        let is_full = filled == buffer.bytes.len();
        let end = match memrchr(b'\n', bytes) {
            Some(at) => at + 1,
            None if is_full => return Ok(Some(self.too_long(&mut buffer.bytes))),
            None if self.ended && self.failed.is_none() => filled,
            None => 0,
        };
        let (block, rest) = bytes.split_at(end);
        // The last line needs no line end, but a line that a failure cut off is incomplete.
        if self.failed.is_none() {
            self.rest.extend_from_slice(rest);
        }
        if block.is_empty() {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let first_line = self.lines.saturating_add(1);
        self.lines = self.lines.saturating_add(count_lines(block));
        let beginning = self.beginning(block);
        Ok(Some(Part::Lines(Block { buffer, end, first_line, beginning })))
    }

    /// Fills a buffer with the rest of the previous block and new data; returns the filled length.
    fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = self.rest.len();
        buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        while let Some(place) = buffer.get_mut(filled..).filter(|buffer| !buffer.is_empty()) {
            match self.read(place) {
                0 => break,
                read => {
                    let has_line = memchr(b'\n', &place[..read]).is_some();
                    filled += read;
                    if has_line && self.may_be_short(filled) {
                        break;
                    }
                }
            }
        }
        filled
    }

    /// Whether a block of this size may be sent. The first block always contains the whole
    /// beginning.
    fn may_be_short(&self, filled: usize) -> bool {
        let has_beginning = self.beginning.is_some() || filled > BEGINNING_BYTES;
        has_beginning && self.queue.is_empty()
    }

    /// Reads some bytes; returns 0 at the end and after a failure.
    fn read(&mut self, place: &mut [u8]) -> usize {
        while !self.ended {
            match self.from.read(place) {
                Ok(0) => self.ended = true,
                Ok(read) => return read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => (self.ended, self.failed) = (true, Some(error)),
            }
        }
        0
    }

    /// Skips a line that fills the buffer, up to its end.
    fn too_long(&mut self, buffer: &mut [u8]) -> Part {
        let beginning = buffer[..buffer.len().min(SAMPLE_BYTES)].to_vec();
        loop {
            let read = self.read(buffer);
            let bytes = &buffer[..read];
            if let Some(rest) = memchr(b'\n', bytes).and_then(|end| bytes.get(end + 1..)) {
                self.rest.extend_from_slice(rest);
                break;
            }
            if read == 0 {
                break;
            }
        }
        self.lines = self.lines.saturating_add(1);
        let (file, name, line) = (self.file, Arc::clone(&self.name), self.lines);
        Part::TooLong(TooLong { file, name, line, beginning })
    }

    fn beginning(&mut self, block: &[u8]) -> Arc<FileHead> {
        let begin = || {
            let first = block.get(..BEGINNING_BYTES).unwrap_or(block);
            // A longer header is the whole beginning.
            let end = memrchr(b'\n', first).or_else(|| memchr(b'\n', block));
            let lines = end.and_then(|end| block.get(..=end)).unwrap_or(block).to_vec();
            Arc::new(FileHead { file: self.file, name: Arc::clone(&self.name), lines })
        };
        Arc::clone(self.beginning.get_or_insert_with(begin))
    }
}

fn count_lines(block: &[u8]) -> u64 {
    to_u64(memchr_iter(b'\n', block).count() + usize::from(!block.ends_with(b"\n")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns its bytes in pieces of the given lengths, and fails at the end if `fails` is set.
    #[derive(Debug)]
    struct Pieces {
        bytes: Vec<u8>,
        lengths: Vec<usize>,
        at: usize,
        fails: bool,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.lengths[self.at % self.lengths.len()].min(buffer.len());
            self.at += 1;
            if self.at.is_multiple_of(5) {
                return Err(ErrorKind::Interrupted.into());
            }
            let length = length.min(self.bytes.len());
            if length == 0 && self.fails {
                return Err(io::Error::other("damaged"));
            }
            buffer[..length].copy_from_slice(&self.bytes[..length]);
            self.bytes.drain(..length);
            Ok(length)
        }
    }

    /// The numbered lines of a text, split with buffers of the given size; `…` stands for a skipped
    /// line.
    fn lines(pieces: Pieces, size: usize, waits: bool) -> Vec<String> {
        let queue = Queue::default();
        if !waits {
            queue.put();
        }
        let mut splitter = LineSplitter::new(0, "a.log".into(), pieces, Buffers::new(size), queue);
        let mut found = Vec::new();
        loop {
            match splitter.next() {
                Ok(Some(Part::Lines(block))) => found.extend(
                    block
                        .lines()
                        .map(|(at, line)| format!("{at} {}", String::from_utf8_lossy(line))),
                ),
                Ok(Some(Part::TooLong(too_long))) => found.push(format!("{} …", too_long.line)),
                Ok(None) => return found,
                Err(error) => {
                    found.push(format!("{error} after {}", splitter.lines));
                    return found;
                }
            }
        }
    }

    fn check(text: &str, fails: bool, expected: &[&str]) {
        for length in 1..12 {
            let bytes = text.as_bytes().to_vec();
            let pieces = Pieces { bytes, lengths: vec![length], at: 0, fails };
            assert_eq!(lines(pieces, 8, true), expected, "{text:?} in pieces of {length}");
        }
    }

    #[test]
    fn lines_are_whole_wherever_reads_end() {
        check("", false, &[]);
        check("a", false, &["1 a"]);
        check("a\nb\r\n\nc", false, &["1 a", "2 b", "3 ", "4 c"]);
        check("1234567\n89\n", false, &["1 1234567", "2 89"]);
    }

    #[test]
    fn only_a_line_that_is_too_long_is_skipped() {
        check("12345678\nb\n", false, &["1 …", "2 b"]);
        check("a\n1234567890123456789012\nb\nc", false, &["1 a", "2 …", "3 b", "4 c"]);
        check("a\n12345678", false, &["1 a", "2 …"]);
    }

    #[test]
    fn lines_before_a_failure_are_returned() {
        check("a\nb\nc", true, &["1 a", "2 b", "damaged after 2"]);
        check("", true, &["damaged after 0"]);
        check("a\n12345678901", true, &["1 a", "2 …", "damaged after 2"]);
    }

    proptest! {
        #[test]
        fn reads_may_end_anywhere(
            text in "[ab\n\r]{0,200}",
            lengths in prop::collection::vec(1_usize..40, 1..5),
            size in 1_usize..50,
            waits: bool,
        ) {
            let mut expected: Vec<&str> = text.split('\n').collect();
            if text.ends_with('\n') || text.is_empty() {
                expected.pop();
            }
            let last = text.rfind('\n').map_or(0, |at| at + 1);
            let expected: Vec<String> = expected
                .iter()
                .enumerate()
                .map(|(at, line)| {
                    // A last line without a line end cannot be told from a line that is too long if
                    // it fills the buffer.
                    let is_last = at + 1 == expected.len() && last < text.len();
                    let fits = line.len() + usize::from(!is_last) <= size
                        && !(is_last && line.len() == size);
                    let line = line.strip_suffix('\r').unwrap_or(line);
                    if fits { format!("{} {line}", at + 1) } else { format!("{} …", at + 1) }
                })
                .collect();
            let pieces = Pieces { bytes: text.into_bytes(), lengths, at: 0, fails: false };
            prop_assert_eq!(lines(pieces, size, waits), expected);
        }
    }
}
