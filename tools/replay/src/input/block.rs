//! What an input yields: blocks of whole lines, errors, and the progress.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::convert::to_u64;

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
    /// The first whole lines, a few thousand bytes: enough to detect the format and to find a
    /// header.
    pub lines: Vec<u8>,
}

/// Whole lines of one file. Every line ends with a line end, except possibly the last one of a
/// file.
pub struct Block {
    pub(super) buffer: Buffer,
    /// How much of the buffer belongs to this block.
    pub(super) end: usize,
    /// The number of the first line in its file, from 1.
    pub first_line: u64,
    /// The beginning of the file; shared by all its blocks.
    pub beginning: Arc<FileHead>,
}

impl Block {
    /// The lines, with their ends.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes[..self.end]
    }

    /// The lines with their numbers from 1, without `\n` or `\r\n`.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = split_lines(self.bytes()).map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        (self.first_line..).zip(lines)
    }
}

/// The lines of a text, without `\n`.
pub(crate) fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        Some(line)
    })
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
    pub(super) fn new(size: usize) -> Self {
        Buffers { free: Arc::default(), size }
    }

    pub(super) fn take(&self) -> Buffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: free.unwrap_or_else(|| vec![0; self.size]), from: self.clone() }
    }
}

/// A file that cannot be read completely. The lines before the error are still returned, and the
/// next file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The name of the file, `-` for standard input.
    pub name: Arc<str>,
    pub(super) lines: u64,
    pub(super) kind: InputErrorKind,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InputErrorKind {
    Open(String),
    Read(String),
    Decompress(String),
    /// The compression is not supported; this program decompresses it.
    Unsupported(&'static str),
    /// The reader thread ended unexpectedly.
    Stopped,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InputError { name, lines, kind } = self;
        match kind {
            InputErrorKind::Open(error) => write!(f, "cannot open {name}: {error}"),
            InputErrorKind::Read(error) if *lines == 0 => write!(f, "cannot read {name}: {error}"),
            InputErrorKind::Read(error) => {
                write!(f, "cannot read {name} after line {lines}: {error}")
            }
            InputErrorKind::Decompress(error) => write!(
                f,
                "cannot decompress {name} after line {lines}: {error}; test the file with gzip -t \
                 or zstd -t"
            ),
            InputErrorKind::Unsupported(program) => write!(
                f,
                "{name} is compressed with {program}, which is not supported; pipe it through \
                 {program} -dc {name} | tollgate replay -"
            ),
            InputErrorKind::Stopped => write!(
                f,
                "reading {name} ended unexpectedly after line {lines}; if it is compressed, \
                 decompress it and pipe it to standard input"
            ),
        }
    }
}

impl std::error::Error for InputError {}

/// The number of bytes read from disk, before decompression. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub(super) read: Arc<AtomicU64>,
    /// The total number of bytes; `None` if a source is not a regular file.
    pub total: Option<u64>,
}

impl Progress {
    /// The number of bytes read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

pub(super) struct CountingReader<R> {
    pub(super) inner: R,
    pub(super) progress: Progress,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.read.fetch_add(to_u64(read), Ordering::Relaxed);
        Ok(read)
    }
}
