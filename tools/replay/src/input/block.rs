//! Whole lines of one file.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest line, with its end: 1 MiB. A longer one is left out, and told as [`TooLong`].
pub const MAX_LINE_LEN: usize = 1 << 20;

/// What an [`Input`](super::Input) yields.
#[derive(Debug)]
pub enum Part {
    /// Whole lines.
    Lines(Block),
    /// A line that was left out.
    TooLong(TooLong),
}

/// A line that is longer than [`MAX_LINE_LEN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// In which file, from 0.
    pub file: usize,
    /// What the file is called.
    pub name: Arc<str>,
    /// Which line of it, from 1.
    pub line: u64,
    /// How it begins.
    pub beginning: Vec<u8>,
}

/// How a file begins, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Which file it is, from 0, in the order in which they were given.
    pub file: usize,
    /// What it is called: `-` for standard input.
    pub name: Arc<str>,
    /// Its first whole lines, a few thousand bytes: enough to recognize a format and to find a header.
    pub lines: Vec<u8>,
}

/// Whole lines of one file: but for the last of a file, each ends with an end of line.
pub struct Block {
    buffer: Buffer,
    /// How much of the buffer is of this block.
    end: usize,
    first_line: u64,
    beginning: Arc<Beginning>,
}

impl Block {
    pub(super) fn new(
        buffer: Buffer,
        end: usize,
        first_line: u64,
        beginning: Arc<Beginning>,
    ) -> Self {
        Block { buffer, end, first_line, beginning }
    }

    /// The lines, with their ends.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes.get(..self.end).unwrap_or_default()
    }

    /// The number of its first line in its file, from 1.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// Which file it is of, and how that begins; the same for all blocks of a file.
    #[must_use]
    pub fn beginning(&self) -> &Arc<Beginning> {
        &self.beginning
    }

    /// The lines with their numbers from 1, without `\n` or `\r\n`.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes();
        let lines = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, behind) = rest.split_at_checked(end)?;
            rest = behind.get(1..).unwrap_or_default();
            Some(line.strip_suffix(b"\r").unwrap_or(line))
        });
        (self.first_line..).zip(lines)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("file", &self.beginning.name)
            .field("first_line", &self.first_line)
            .field("bytes", &self.end)
            .finish_non_exhaustive()
    }
}

/// Memory for a block, which goes back to where it came from.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    from: Buffers,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut free = self.from.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MAX_FREE {
            free.push(bytes);
        }
    }
}

/// So much memory is kept for later blocks.
const MAX_FREE: usize = 16;

/// Memory of blocks that are done with.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    size: usize,
}

impl Buffers {
    /// Each has `size` bytes.
    pub(super) fn new(size: usize) -> Self {
        Buffers { free: Arc::default(), size }
    }

    pub(super) fn take(&self) -> Buffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: free.unwrap_or_else(|| vec![0; self.size]), from: self.clone() }
    }
}
