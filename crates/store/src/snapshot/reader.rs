//! Reading a snapshot, which trusts nothing that it reads.

use std::io::{self, Read};
use std::sync::Arc;

use crc32fast::Hasher;
use tollgate_core::codec::{Bytes, Malformed};
use tollgate_core::{Block, KeyState, Policy, Timestamp};

use super::{FOREVER, InvalidSnapshot, MAGIC, RestoreReport, Section, VERSION};
use crate::key::Key;
use crate::memory::{MemoryStore, MemoryStoreBuilder, PutBack, Table};

impl MemoryStoreBuilder {
    /// The store, with what a snapshot holds; [`MemoryStore::write_snapshot`] wrote it.
    ///
    /// What was charged is judged by its own times, as always: what has recovered meanwhile is left
    /// out. A store whose `max_keys` is less than the snapshot's keys evicts as it always does.
    ///
    /// # Errors
    /// The bytes are no snapshot, are damaged, or of a version that is not known.
    pub fn restore(self, snapshot: &[u8]) -> Result<(MemoryStore, RestoreReport), InvalidSnapshot> {
        let length = u64::try_from(snapshot.len()).unwrap_or(u64::MAX);
        self.restore_from(snapshot, length).map_err(|error| match error {
            ReadError::InvalidSnapshot(rejected) => rejected,
            // A slice has no other.
            ReadError::Io(_) => InvalidSnapshot::Truncated,
        })
    }

    /// As [`MemoryStoreBuilder::restore`], from something of this length.
    pub(super) fn restore_from(
        self,
        from: impl Read,
        length: u64,
    ) -> Result<(MemoryStore, RestoreReport), ReadError> {
        let store = self.build();
        let restored = Restoring::all(&store, from, length)?;
        Ok((store, restored))
    }
}

/// Why a snapshot was not read to its end.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    InvalidSnapshot(InvalidSnapshot),
}

impl From<io::Error> for ReadError {
    fn from(it: io::Error) -> Self {
        match it.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::InvalidSnapshot(InvalidSnapshot::Truncated),
            _ => ReadError::Io(it),
        }
    }
}

impl From<InvalidSnapshot> for ReadError {
    fn from(it: InvalidSnapshot) -> Self {
        ReadError::InvalidSnapshot(it)
    }
}

impl From<Malformed> for ReadError {
    fn from(it: Malformed) -> Self {
        ReadError::InvalidSnapshot(it.into())
    }
}

/// The bytes of a file, as far as their checksums hold.
struct Reader<R> {
    from: R,
    /// How many bytes are left.
    left: u64,
    sum: Hasher,
}

impl<R: Read> Reader<R> {
    fn exact(&mut self, into: &mut [u8]) -> Result<(), ReadError> {
        let length = u64::try_from(into.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(InvalidSnapshot::Truncated)?;
        self.from.read_exact(into)?;
        Ok(())
    }

    fn summed<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        self.sum.update(&bytes);
        Ok(bytes)
    }

    fn checksum(&mut self) -> Result<(), ReadError> {
        let mut bytes = [0; 4];
        self.exact(&mut bytes)?;
        let holds = u32::from_le_bytes(bytes) == self.sum.clone().finalize();
        if holds { Ok(()) } else { Err(InvalidSnapshot::Checksum.into()) }
    }

    /// Reads the header; when the snapshot was begun.
    fn header(&mut self) -> Result<Timestamp, ReadError> {
        if self.summed()? != MAGIC {
            return Err(InvalidSnapshot::Foreign.into());
        }
        // Before the checksum: what another version's header looks like is not known.
        match u32::from_le_bytes(self.summed()?) {
            VERSION => {}
            other => return Err(InvalidSnapshot::Version(other).into()),
        }
        let taken = u64::from_le_bytes(self.summed()?);
        self.checksum()?;
        Ok(timestamp(taken)?)
    }

    /// Reads a section, its body into `body`.
    fn section(&mut self, body: &mut Vec<u8>) -> Result<Section, ReadError> {
        let [kind] = self.summed()?;
        let length = u32::from_le_bytes(self.summed()?);
        if u64::from(length) > self.left {
            return Err(InvalidSnapshot::Truncated.into());
        }
        body.clear();
        body.resize(usize::try_from(length).map_err(|_| InvalidSnapshot::Truncated)?, 0);
        self.exact(body)?;
        self.sum.update(body);
        self.checksum()?;
        let section = Section::of(kind).ok_or(Malformed("a section of a kind that is not known"));
        Ok(section?)
    }
}

/// A table that is being put back.
struct Place<'a> {
    table: Whose<'a>,
    /// How many keys it has had room for.
    keys: usize,
}

enum Whose<'a> {
    /// That of all policies but those with one of their own.
    All(&'a Table),
    /// That of the policy of this name.
    One(Arc<Table>, Box<str>),
}

impl<'a> Place<'a> {
    fn new(table: Whose<'a>) -> Self {
        let mut place = Place { table, keys: 0 };
        place.keys = place.table().keys();
        place
    }

    fn table(&self) -> &Table {
        match &self.table {
            Whose::All(value) => value,
            Whose::One(one, _) => one,
        }
    }

    /// Whether keys of this policy belong here.
    fn takes(&self, policy: &str) -> bool {
        match &self.table {
            Whose::All(_) => true,
            Whose::One(_, name) => **name == *policy,
        }
    }
}

/// What has been put back so far, into a store that is new.
struct Restoring<'a> {
    store: &'a MemoryStore,
    now: Timestamp,
    policies: Vec<Policy>,
    place: Option<Place<'a>>,
    restored: RestoreReport,
}

impl<'a> Restoring<'a> {
    fn all(
        store: &'a MemoryStore,
        from: impl Read,
        length: u64,
    ) -> Result<RestoreReport, ReadError> {
        let mut reader = Reader { from, left: length, sum: Hasher::new() };
        let restored = RestoreReport { taken: Some(reader.header()?), ..RestoreReport::default() };
        let now = store.now();
        let mut restoring = Restoring { store, now, policies: Vec::new(), place: None, restored };
        let mut body = Vec::new();
        loop {
            let section = reader.section(&mut body)?;
            restoring.section(section, Bytes::new(&body))?;
            if section == Section::End {
                break;
            }
        }
        if reader.left > 0 {
            return Err(Malformed("more behind its end").into());
        }
        let (keys, evicted) = store.keys_and_evicted();
        let no_room = restoring.restored.no_room + evicted;
        Ok(RestoreReport { keys, no_room, ..restoring.restored })
    }

    fn section(&mut self, section: Section, mut body: Bytes<'_>) -> Result<(), Malformed> {
        match section {
            Section::Policy => {
                self.policies.push(Policy::decode(&mut body)?);
            }
            Section::Table => self.place = Some(self.table(&mut body)?),
            Section::Keys => {
                while !body.is_empty() {
                    self.key(Bytes::new(body.prefixed()?))?;
                }
            }
            Section::Blocks => {
                while !body.is_empty() {
                    self.block(Bytes::new(body.prefixed()?))?;
                }
            }
            Section::End => {}
        }
        if body.is_empty() { Ok(()) } else { Err(Malformed("more in a section than it holds")) }
    }

    fn table(&self, body: &mut Bytes<'_>) -> Result<Place<'a>, Malformed> {
        let (bound, name) = (body.u64()?, body.text()?);
        if bound == 0 && name.is_empty() {
            return Ok(Place::new(Whose::All(self.store.main_table())));
        }
        let bound = usize::try_from(bound).ok().filter(|x| *x > 0);
        let bound = bound.filter(|_| Policy::is_name(name));
        let bound = bound.ok_or(Malformed("a table that no policy has"))?;
        Ok(Place::new(Whose::One(self.store.own_table(name, bound), name.into())))
    }

    fn key(&mut self, mut record: Bytes<'_>) -> Result<(), Malformed> {
        let number = usize::try_from(record.u32()?).ok();
        let policy = number.and_then(|number| self.policies.get(number));
        let policy = policy.ok_or(Malformed("a key of a policy that is not there"))?;
        let place = place_of(&mut self.place, policy.name())?;
        let state = KeyState::decode(policy, &mut record)?;
        let fits = place.keys < place.table().bound();
        match place.table().put_back(key(record)?, state, fits, self.now) {
            PutBack::New => place.keys += 1,
            PutBack::Replaced => {}
            PutBack::Recovered => self.restored.recovered += 1,
            PutBack::NoRoom => self.restored.no_room += 1,
        }
        Ok(())
    }

    fn block(&mut self, mut record: Bytes<'_>) -> Result<(), Malformed> {
        let (policy, until) = (record.text()?, record.u64()?);
        let place = place_of(&mut self.place, policy)?;
        let block = match until {
            FOREVER => Block::Forever,
            until => Block::Until(timestamp(until)?),
        };
        if !Policy::is_name(policy) {
            return Err(Malformed("a block of a policy that cannot be"));
        }
        let key = key(record)?;
        if !block.holds(self.now) {
            self.restored.recovered += 1;
        } else if place.table().put_back_block(policy, key, block) {
            self.restored.blocks += 1;
        }
        Ok(())
    }
}

fn timestamp(us: u64) -> Result<Timestamp, Malformed> {
    let timestamp = Timestamp::from_micros(us);
    if timestamp.as_micros() == us {
        Ok(timestamp)
    } else {
        Err(Malformed("a time that cannot be"))
    }
}

fn place_of<'p, 'a>(
    place: &'p mut Option<Place<'a>>,
    policy: &str,
) -> Result<&'p mut Place<'a>, Malformed> {
    let place = place.as_mut().filter(|place| place.takes(policy));
    place.ok_or(Malformed("a key outside the table of its policy"))
}

/// The key that is the rest of a record.
fn key<'b>(mut record: Bytes<'b>) -> Result<&'b [u8], Malformed> {
    let key = Key::new(record.take_rest()).map_err(|_| Malformed("a key that cannot be"))?;
    Ok(key.as_bytes())
}
