//! How far the reading is.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the reading is, in bytes as they lie on the disk: of a compressed file, compressed. Clones
/// tell the same.
#[derive(Clone, Debug)]
pub struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Progress {
    pub(super) fn new(total: Option<u64>) -> Self {
        Progress { read: Arc::default(), total }
    }

    /// How many bytes were read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// How many there are in all; nothing if one of the sources is no plain file, whose end is not known
    /// before it comes.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

/// Counts what is read.
#[derive(Debug)]
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let more = u64::try_from(read).unwrap_or(u64::MAX);
        self.progress.read.fetch_add(more, Ordering::Relaxed);
        Ok(read)
    }
}
