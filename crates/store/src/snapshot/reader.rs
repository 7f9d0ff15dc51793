//! Reading a snapshot, as untrusted input.

use std::io::{self, Read};
use std::sync::Arc;

use crc32fast::Hasher;
use tollgate_algorithms::codec::{Bytes, Malformed};
use tollgate_algorithms::{Block, KeyState, Policy, Timestamp};

use super::error::InvalidSnapshot;
use super::format::{
    BLOCKS, END, FOREVER, KEYS, MAGIC, POLICY, TABLE, VERSION, VERSION_OF_TEXT_KEYS, to_u64,
};
use super::report::RestoreReport;
use crate::memory::{KeyRestore, MemoryStore, MemoryStoreBuilder, StoredKey, Table};

impl MemoryStoreBuilder {
    /// Builds a store from a snapshot written by [`MemoryStore::write_snapshot`].
    ///
    /// Keys that have recovered since the snapshot are skipped. If the snapshot has more than
    /// `max_keys` keys, the store evicts as usual.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a snapshot, are damaged, or have an unknown version.
    pub fn restore(self, snapshot: &[u8]) -> Result<(MemoryStore, RestoreReport), InvalidSnapshot> {
        let result = self.restore_from(snapshot, to_u64(snapshot.len()));
        result.map_err(|error| match error {
            ReadError::Invalid(invalid) => invalid,
            // Reading from a slice fails at its end only.
            ReadError::Io(_) => InvalidSnapshot::Truncated,
        })
    }

    /// As [`MemoryStoreBuilder::restore`], from a reader of this length.
    pub(super) fn restore_from(
        self,
        from: impl Read,
        length: u64,
    ) -> Result<(MemoryStore, RestoreReport), ReadError> {
        let store = self.build();
        let report = Restore::run(&store, from, length)?;
        Ok((store, report))
    }
}

/// Why reading a snapshot failed.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Invalid(InvalidSnapshot),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Invalid(InvalidSnapshot::Truncated),
            _ => ReadError::Io(error),
        }
    }
}

impl From<InvalidSnapshot> for ReadError {
    fn from(invalid: InvalidSnapshot) -> Self {
        ReadError::Invalid(invalid)
    }
}

impl From<Malformed> for ReadError {
    fn from(malformed: Malformed) -> Self {
        ReadError::Invalid(malformed.into())
    }
}

/// Reads a file and verifies its checksums.
struct Reader<R> {
    from: R,
    /// The number of bytes not yet read.
    remaining: u64,
    checksum: Hasher,
}

impl<R: Read> Reader<R> {
    fn read_exact(&mut self, into: &mut [u8]) -> Result<(), ReadError> {
        let remaining = self.remaining.checked_sub(to_u64(into.len()));
        self.remaining = remaining.ok_or(InvalidSnapshot::Truncated)?;
        self.from.read_exact(into)?;
        Ok(())
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        self.checksum.update(&bytes);
        Ok(bytes)
    }

    fn verify_checksum(&mut self) -> Result<(), ReadError> {
        let mut bytes = [0; 4];
        self.read_exact(&mut bytes)?;
        let is_valid = u32::from_le_bytes(bytes) == self.checksum.clone().finalize();
        if is_valid { Ok(()) } else { Err(InvalidSnapshot::Checksum.into()) }
    }

    /// Reads the header; returns the version, and when the snapshot was started.
    fn header(&mut self) -> Result<(u32, Timestamp), ReadError> {
        if self.read_array()? != MAGIC {
            return Err(InvalidSnapshot::Foreign.into());
        }
        // Checked before the checksum: another version may have another header.
        let version = u32::from_le_bytes(self.read_array()?);
        if !matches!(version, VERSION | VERSION_OF_TEXT_KEYS) {
            return Err(InvalidSnapshot::Version(version).into());
        }
        let taken = u64::from_le_bytes(self.read_array()?);
        self.verify_checksum()?;
        Ok((version, timestamp(taken)?))
    }

    /// Reads a section into `body`; returns its kind.
    fn section(&mut self, body: &mut Vec<u8>) -> Result<u8, ReadError> {
        let [kind] = self.read_array()?;
        let length = u32::from_le_bytes(self.read_array()?);
        if u64::from(length) > self.remaining {
            return Err(InvalidSnapshot::Truncated.into());
        }
        body.clear();
        body.resize(usize::try_from(length).map_err(|_| InvalidSnapshot::Truncated)?, 0);
        self.read_exact(body)?;
        self.checksum.update(body);
        self.verify_checksum()?;
        Ok(kind)
    }
}

/// The table that is being restored.
struct Target<'a> {
    /// The table of all policies without their own `max_keys`.
    shared: &'a Table,
    /// The name and the table of a policy that has its own.
    own: Option<(Box<str>, Arc<Table>)>,
    /// The number of keys in the table.
    keys: usize,
}

impl<'a> Target<'a> {
    fn new(shared: &'a Table, own: Option<(Box<str>, Arc<Table>)>) -> Self {
        let mut target = Target { shared, own, keys: 0 };
        target.keys = target.table().keys();
        target
    }

    fn table(&self) -> &Table {
        if let Some((_, table)) = &self.own { table } else { self.shared }
    }

    /// Returns whether the table can hold keys of this policy.
    fn accepts(&self, policy: &str) -> bool {
        self.own.as_ref().is_none_or(|(name, _)| **name == *policy)
    }
}

/// A restore in progress, into a new store.
struct Restore<'a> {
    store: &'a MemoryStore,
    version: u32,
    now: Timestamp,
    policies: Vec<Policy>,
    target: Option<Target<'a>>,
    report: RestoreReport,
}

impl<'a> Restore<'a> {
    fn run(
        store: &'a MemoryStore,
        from: impl Read,
        length: u64,
    ) -> Result<RestoreReport, ReadError> {
        let mut reader = Reader { from, remaining: length, checksum: Hasher::new() };
        let (version, taken) = reader.header()?;
        let report = RestoreReport { taken: Some(taken), ..RestoreReport::default() };
        let now = store.now();
        let policies = Vec::new();
        let mut restore = Restore { store, version, now, policies, target: None, report };
        let mut body = Vec::new();
        loop {
            let kind = reader.section(&mut body)?;
            restore.section(kind, Bytes::new(&body))?;
            if kind == END {
                break;
            }
        }
        if reader.remaining > 0 {
            return Err(Malformed("data after the end").into());
        }
        let stats = store.stats();
        let no_room = restore.report.no_room + stats.evicted;
        Ok(RestoreReport { keys: to_u64(stats.keys), no_room, ..restore.report })
    }

    fn section(&mut self, kind: u8, mut body: Bytes<'_>) -> Result<(), Malformed> {
        match kind {
            POLICY => self.policies.push(Policy::decode(&mut body)?),
            TABLE => self.target = Some(self.table(&mut body)?),
            KEYS => {
                while !body.is_empty() {
                    self.key(Bytes::new(body.prefixed()?))?;
                }
            }
            BLOCKS => {
                while !body.is_empty() {
                    self.block(Bytes::new(body.prefixed()?))?;
                }
            }
            END => {}
            _ => return Err(Malformed("unknown kind of section")),
        }
        if body.is_empty() { Ok(()) } else { Err(Malformed("excess data in a section")) }
    }

    fn table(&self, body: &mut Bytes<'_>) -> Result<Target<'a>, Malformed> {
        let (bound, name) = (body.u64()?, body.text()?);
        if bound == 0 && name.is_empty() {
            return Ok(Target::new(&self.store.table, None));
        }
        let bound = usize::try_from(bound).ok().filter(|bound| *bound > 0);
        let bound = bound.filter(|_| Policy::is_name(name));
        let bound = bound.ok_or(Malformed("invalid table"))?;
        let own = (name.into(), self.store.own_table(name, bound));
        Ok(Target::new(&self.store.table, Some(own)))
    }

    fn key(&mut self, mut record: Bytes<'_>) -> Result<(), Malformed> {
        let number = usize::try_from(record.u32()?).ok();
        let policy = number.and_then(|number| self.policies.get(number));
        let policy = policy.ok_or(Malformed("a key refers to an unknown policy"))?;
        let target = target_for(&mut self.target, policy.name())?;
        let state = KeyState::decode(policy, &mut record)?;
        let key = key(self.version, record)?;
        let fits = target.keys < target.table().bound();
        match target.table().restore_key(&key, state, fits, self.now) {
            KeyRestore::New => target.keys += 1,
            KeyRestore::Replaced => {}
            KeyRestore::Recovered => self.report.recovered += 1,
            KeyRestore::NoRoom => self.report.no_room += 1,
        }
        Ok(())
    }

    fn block(&mut self, mut record: Bytes<'_>) -> Result<(), Malformed> {
        let (policy, until) = (record.text()?, record.u64()?);
        let target = target_for(&mut self.target, policy)?;
        let block = match until {
            FOREVER => Block::Forever,
            until => Block::Until(timestamp(until)?),
        };
        if !Policy::is_name(policy) {
            return Err(Malformed("a block has an invalid policy name"));
        }
        let key = key(self.version, record)?;
        if !block.is_active(self.now) {
            self.report.recovered += 1;
        } else if target.table().restore_block(policy, &key, block) {
            self.report.blocks += 1;
        }
        Ok(())
    }
}

fn timestamp(us: u64) -> Result<Timestamp, Malformed> {
    let timestamp = Timestamp::from_micros(us);
    if timestamp.as_micros() == us { Ok(timestamp) } else { Err(Malformed("invalid timestamp")) }
}

fn target_for<'t, 'a>(
    target: &'t mut Option<Target<'a>>,
    policy: &str,
) -> Result<&'t mut Target<'a>, Malformed> {
    let target = target.as_mut().filter(|target| target.accepts(policy));
    target.ok_or(Malformed("a key outside the table of its policy"))
}

/// Reads the key, which is the rest of a record.
fn key<'b>(version: u32, mut record: Bytes<'b>) -> Result<StoredKey<'b>, Malformed> {
    match version {
        VERSION_OF_TEXT_KEYS => StoredKey::decode_text(record.take_rest()),
        _ => StoredKey::decode(record.take_rest()),
    }
}
