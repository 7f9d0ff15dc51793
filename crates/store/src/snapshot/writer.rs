//! Writing a snapshot while the store is in use.

use std::io::{self, Write};

use crc32fast::Hasher;
use tollgate_algorithms::codec::put_bytes;
use tollgate_algorithms::{Micros, Timestamp};

use super::copy_buffer::CopyBuffer;
use super::format::{BLOCKS, END, KEYS, MAGIC, POLICY, TABLE, VERSION, to_u64};
use super::report::SaveReport;
use crate::clock::monotonic_micros;
use crate::memory::{MemoryStore, Shard, Step, Table};
use crate::sync::lock;

impl MemoryStore {
    /// Writes a snapshot of the store while it is in use. A lock is held at most for the time it
    /// takes to copy 256 keys or 64 KiB; no lock is held while writing to `out`.
    ///
    /// [`SnapshotDir::save`](crate::SnapshotDir::save) writes a file atomically.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    ///
    /// # Examples
    /// ```
    /// use tollgate_algorithms::{Cost, Id, Policy};
    /// use tollgate_state::{Key, MemoryStore};
    ///
    /// let (store, api) = (MemoryStore::default(), "2/h".parse::<Policy>()?);
    /// let check = |store: &MemoryStore| {
    ///     let key = Key::new("user:42").expect("a short key");
    ///     store.check(&api, key, Cost::ONE, || Id::from_u128(7)).allowed
    /// };
    /// assert!(check(&store) && check(&store));
    ///
    /// let mut snapshot = Vec::new();
    /// assert_eq!(store.write_snapshot(&mut snapshot)?.keys, 1);
    /// let (other, _) = MemoryStore::builder().restore(&snapshot)?;
    /// assert!(!check(&other));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_snapshot(&self, out: impl Write) -> io::Result<SaveReport> {
        let _copying = lock(&self.copying);
        let (start, now) = (monotonic_micros(), self.now());
        let mut writer = Writer::new(out, now)?;
        writer.table(&self.table, None)?;
        for (name, table) in self.own_tables() {
            writer.table(&table, Some(&name))?;
        }
        writer.section(END, &[])?;
        writer.out.flush()?;
        let took = Micros::new(monotonic_micros().saturating_sub(start));
        Ok(SaveReport { took, ..writer.report })
    }
}

struct Writer<W> {
    out: W,
    checksum: Hasher,
    buffer: CopyBuffer,
    report: SaveReport,
}

impl<W: Write> Writer<W> {
    fn new(out: W, now: Timestamp) -> io::Result<Self> {
        let (checksum, buffer) = (Hasher::new(), CopyBuffer::new(now));
        let mut writer = Writer { out, checksum, buffer, report: SaveReport::default() };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&now.as_micros().to_le_bytes())?;
        writer.put_checksum()?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.report.bytes += to_u64(bytes.len());
        self.out.write_all(bytes)
    }

    fn put_checksum(&mut self) -> io::Result<()> {
        self.report.bytes += 4;
        self.out.write_all(&self.checksum.clone().finalize().to_le_bytes())
    }

    fn section(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len());
        let length = length.map_err(|_| io::Error::other("the state of a key exceeds 4 GiB"))?;
        self.put(&[kind])?;
        self.put(&length.to_le_bytes())?;
        self.put(body)?;
        self.put_checksum()
    }

    /// Writes a table shard by shard; `policy` is its policy, unless it is the shared table.
    fn table(&mut self, table: &Table, policy: Option<&str>) -> io::Result<()> {
        let (bound, name) = policy.map_or((0, ""), |name| (to_u64(table.bound()), name));
        let mut body = bound.to_le_bytes().to_vec();
        put_bytes(&mut body, name.as_bytes());
        self.section(TABLE, &body)?;
        for shard in 0..table.shard_count() {
            table.lock(shard).begin_copy();
            while self.keys(table, shard)? {}
            self.blocks(table, shard)?;
        }
        Ok(())
    }

    /// Writes the next keys of a shard; returns whether there are more.
    fn keys(&mut self, table: &Table, shard: usize) -> io::Result<bool> {
        let more = self.copy(table, shard, |shard, buffer| {
            shard.copy_step(Step::SHORT, |key, state| buffer.push_key(key, state))
        });
        for policy in self.buffer.take_new_policies() {
            let mut body = Vec::new();
            policy.encode(&mut body);
            self.section(POLICY, &body)?;
        }
        self.report.keys += self.write_buffer(KEYS)?;
        Ok(more)
    }

    /// Writes the blocks of a shard.
    fn blocks(&mut self, table: &Table, shard: usize) -> io::Result<()> {
        let mut last = None;
        loop {
            last = self.copy(table, shard, |shard, buffer| {
                let push = |policy: &str, key: &[u8], block| buffer.push_block(policy, key, block);
                shard.copy_blocks(last.as_ref(), Step::SHORT, push)
            });
            self.report.blocks += self.write_buffer(BLOCKS)?;
            if last.is_none() {
                return Ok(());
            }
        }
    }

    /// Copies from a shard under its lock, and records how long the lock was held.
    fn copy<T>(
        &mut self,
        table: &Table,
        shard: usize,
        copy: impl FnOnce(&mut Shard, &mut CopyBuffer) -> T,
    ) -> T {
        self.buffer.clear();
        let mut shard = table.lock(shard);
        let start = monotonic_micros();
        let result = copy(&mut shard, &mut self.buffer);
        drop(shard);
        let span = Micros::new(monotonic_micros().saturating_sub(start));
        let report = &mut self.report;
        report.locks += 1;
        report.longest_lock = report.longest_lock.max(span);
        report.most_per_lock = report.most_per_lock.max(self.buffer.count);
        let bytes = to_u64(self.buffer.records.len());
        report.most_bytes_per_lock = report.most_bytes_per_lock.max(bytes);
        result
    }

    /// Writes the buffer as a section, unless it is empty; returns the number of records.
    fn write_buffer(&mut self, kind: u8) -> io::Result<u64> {
        let records = std::mem::take(&mut self.buffer.records);
        if !records.is_empty() {
            self.section(kind, &records)?;
        }
        self.buffer.records = records;
        Ok(self.buffer.count)
    }
}
