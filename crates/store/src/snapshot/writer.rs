//! Writing a snapshot while the store goes on.

use std::io::{self, Write};

use crc32fast::Hasher;
use tollgate_core::codec::put_bytes;
use tollgate_core::{Micros, Timestamp};

use super::copied::Copied;
use super::{MAGIC, SaveReport, Section, VERSION};
use crate::clock::monotonic_micros;
use crate::memory::{MemoryStore, Shard, Step, Table};

impl MemoryStore {
    /// Writes a snapshot of what the store holds, while it goes on. No lock is held longer than it
    /// takes to copy 256 keys or 64 KiB; `out` is written between two.
    ///
    /// [`SnapshotDir::save`](crate::SnapshotDir::save) does so to a file, in one piece or not at
    /// all.
    ///
    /// # Errors
    /// `out` could not be written.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::{Cost, Id, Policy};
    /// use tollgate_store::{Key, MemoryStore};
    ///
    /// let (store, api) = (MemoryStore::default(), "2/h".parse::<Policy>()?);
    /// let check = |store: &MemoryStore| {
    ///     let key = Key::new("user:42").expect("it is short");
    ///     store.check(&api, key, Cost::ONE, || Id::from_u128(7)).allowed()
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
        let _copying = self.lock_copying();
        let (begun, now) = (monotonic_micros(), self.now());
        let mut writer = Writer::new(out, now)?;
        writer.table(self.main_table(), None)?;
        for (name, table) in self.tables_by_name() {
            writer.table(&table, Some(&name))?;
        }
        writer.section(Section::End, &[])?;
        writer.out.flush()?;
        let took = Micros::new(monotonic_micros().saturating_sub(begun));
        Ok(SaveReport { took, ..writer.report })
    }
}

struct Writer<W> {
    out: W,
    sum: Hasher,
    copied: Copied,
    report: SaveReport,
}

impl<W: Write> Writer<W> {
    fn new(out: W, now: Timestamp) -> io::Result<Self> {
        let (sum, copied) = (Hasher::new(), Copied::new(now));
        let mut writer = Writer { out, sum, copied, report: SaveReport::default() };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&now.as_micros().to_le_bytes())?;
        writer.put_checksum()?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.report.bytes += count(bytes.len());
        self.out.write_all(bytes)
    }

    fn put_checksum(&mut self) -> io::Result<()> {
        self.report.bytes += 4;
        self.out.write_all(&self.sum.clone().finalize().to_le_bytes())
    }

    fn section(&mut self, section: Section, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len());
        let length = length.map_err(|_| io::Error::other("a key's state is above 4 GiB"))?;
        self.put(&[section.kind()])?;
        self.put(&length.to_le_bytes())?;
        self.put(body)?;
        self.put_checksum()
    }

    /// Writes a table, shard by shard; `name` is that of the policy it belongs to alone.
    fn table(&mut self, table: &Table, name: Option<&str>) -> io::Result<()> {
        let bound = name.map_or(0, |_| count(table.bound()));
        let mut body = bound.to_le_bytes().to_vec();
        put_bytes(&mut body, name.unwrap_or_default().as_bytes());
        self.section(Section::Table, &body)?;
        for shard in 0..table.shard_count() {
            table.lock(shard).begin_copy();
            while self.keys(table, shard)? {}
            self.blocks(table, shard)?;
        }
        Ok(())
    }

    /// Writes some keys of a shard; whether there are more.
    fn keys(&mut self, table: &Table, shard: usize) -> io::Result<bool> {
        let more = self.copy(table, shard, |shard, copied| {
            shard.copy_step(Step::SHORT, |key, state| copied.key(key, state))
        });
        for policy in self.copied.new_policies() {
            let mut body = Vec::new();
            policy.encode(&mut body);
            self.section(Section::Policy, &body)?;
        }
        self.report.keys += self.write_copied(Section::Keys)?;
        Ok(more)
    }

    /// Writes the blocks of a shard.
    fn blocks(&mut self, table: &Table, shard: usize) -> io::Result<()> {
        let mut last = None;
        loop {
            last = self.copy(table, shard, |shard, copied| {
                let copy = |policy: &str, key: &[u8], block| copied.block(policy, key, block);
                shard.copy_blocks(last.as_ref(), Step::SHORT, copy)
            });
            self.report.blocks += self.write_copied(Section::Blocks)?;
            if last.is_none() {
                return Ok(());
            }
        }
    }

    /// Copies something out of a shard under its lock, and notes how long that was held.
    fn copy<T>(
        &mut self,
        table: &Table,
        shard: usize,
        copy: impl FnOnce(&mut Shard, &mut Copied) -> T,
    ) -> T {
        self.copied.clear();
        let mut shard = table.lock(shard);
        let begun = monotonic_micros();
        let copied = copy(&mut shard, &mut self.copied);
        drop(shard);
        let held = Micros::new(monotonic_micros().saturating_sub(begun));
        let report = &mut self.report;
        report.locks += 1;
        report.longest_lock = report.longest_lock.max(held);
        report.most_per_lock = report.most_per_lock.max(self.copied.count);
        let bytes = count(self.copied.records.len());
        report.most_bytes_per_lock = report.most_bytes_per_lock.max(bytes);
        copied
    }

    /// Writes what was copied, if anything; how many records that are.
    fn write_copied(&mut self, section: Section) -> io::Result<u64> {
        let records = std::mem::take(&mut self.copied.records);
        if !records.is_empty() {
            self.section(section, &records)?;
        }
        self.copied.records = records;
        Ok(self.copied.count)
    }
}

fn count(it: usize) -> u64 {
    u64::try_from(it).unwrap_or(u64::MAX)
}
