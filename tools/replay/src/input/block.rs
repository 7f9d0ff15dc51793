//! Whole lines of one file.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum length of a line, including its end: 1 MiB. A longer line is skipped and reported as
/// [`TooLong`].
pub const MAX_LINE_LEN: usize = 1 << 20;

/// An item of an [`Input`](super::Input).
#[derive(Debug)]
pub enum Part {
    /// Whole lines.
    Lines(Block),
    /// A line that was skipped because of its length.
    TooLong(TooLong),
}

/// A line that is longer than [`MAX_LINE_LEN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The index of the file, from 0.
    pub file: usize,
    /// The name of the file.
    pub name: Arc<str>,
    /// The number of the line, from 1.
    pub line: u64,
    /// The beginning of the line.
    pub beginning: Vec<u8>,
}

/// The first lines and the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// The index of the file, from 0, in the order of the arguments.
    pub file: usize,
    /// The name; `-` for standard input.
    pub name: Arc<str>,
    /// The first whole lines, a few thousand bytes: enough to detect the format and to find a header.
    pub lines: Vec<u8>,
}

/// Whole lines of one file. Every line ends with a line end, except possibly the last one of a file.
pub struct Block {
    buffer: Buffer,
    /// How much of the buffer belongs to this block.
    end: usize,
    first_line: u64,
    beginning: Arc<FileHead>,
}

impl Block {
    pub(super) fn new(
        buffer: Buffer,
        end: usize,
        first_line: u64,
        beginning: Arc<FileHead>,
    ) -> Self {
        Block { buffer, end, first_line, beginning }
    }

    /// The lines, with their ends.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes[..self.end]
    }

    /// The number of the first line in its file, from 1.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The beginning of the file; shared by all its blocks.
    #[must_use]
    pub fn beginning(&self) -> &Arc<FileHead> {
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
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
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

/// The memory of a block, which is returned to its pool.
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

/// How many buffers are kept for later blocks.
const MAX_FREE: usize = 16;

/// A pool of buffers.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    size: usize,
}

impl Buffers {
    /// A pool of buffers of `size` bytes.
    pub(super) fn new(size: usize) -> Self {
        Buffers { free: Arc::default(), size }
    }

    pub(super) fn take(&self) -> Buffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: free.unwrap_or_else(|| vec![0; self.size]), from: self.clone() }
    }
}
