//! The progress of reading.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::convert::to_u64;

/// The number of bytes read from disk, before decompression. Clones share the count.
#[derive(Clone, Debug)]
pub struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Progress {
    pub(super) fn new(total: Option<u64>) -> Self {
        Progress { read: Arc::default(), total }
    }

    /// The number of bytes read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The total number of bytes; `None` if a source is not a regular file.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

/// Counts the bytes that are read.
#[derive(Debug)]
pub(super) struct CountingReader<R> {
    pub(super) inner: R,
    pub(super) progress: Progress,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let more = to_u64(read);
        self.progress.read.fetch_add(more, Ordering::Relaxed);
        Ok(read)
    }
}
