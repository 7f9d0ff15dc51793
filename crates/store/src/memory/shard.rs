//! A part of the table under one lock: an index by hash, and the entries it points to.

use std::ops::Range;

use hashbrown::HashTable;
use tollgate_core::{Effects, KeyState, Micros, Policy, Timestamp};

use super::blocks::Blocks;
use super::entry::Entry;
use super::eviction::Eviction;

/// The hash of a (policy, key) within its shard.
pub(crate) type Tag = u32;

/// Where an entry is; it stays there as long as it lives.
pub(crate) type Place = u32;

/// How many places each new key looks over for recovered ones.
const SWEEP: usize = 4;

/// How long ago a key must have recovered before a sweep takes it: one that is busy, with a limit
/// that recovers soon, would else be taken out and put back all the time.
const GRACE: Micros = Micros::from_secs(1);

/// The smallest number of places that is worth giving back.
const SMALL: usize = 64;

/// Keys of one shard, and the blocks that belong to it.
#[derive(Debug)]
pub(crate) struct Shard {
    index: HashTable<Place>,
    pub(super) entries: Vec<Option<Entry>>,
    free: Vec<Place>,
    /// Where the next sweep begins.
    cursor: usize,
    /// The most entries.
    bound: usize,
    /// Who goes next; only once the shard has been full.
    eviction: Option<Eviction>,
    pub(crate) blocks: Blocks,
    pub(crate) counts: Counts,
    /// The places that a snapshot has yet to copy.
    pub(super) to_copy: Range<usize>,
}

/// What has happened to the entries of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Live entries that were evicted to make room.
    pub(crate) evicted: u64,
    /// New keys that found no room.
    pub(crate) full: u64,
    pub(crate) effects: Effects,
}

impl Shard {
    pub(crate) fn new(bound: usize) -> Self {
        Shard {
            index: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            cursor: 0,
            bound: bound.max(1),
            eviction: None,
            blocks: Blocks::default(),
            counts: Counts::default(),
            to_copy: 0..0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Where the key is.
    #[inline]
    pub(crate) fn find(&self, tag: Tag, policy: &Policy, key: &[u8]) -> Option<Place> {
        let is_it = |place: &Place| {
            self.entry(*place).is_some_and(|x| x.tag() == tag && x.is_of(policy, key))
        };
        self.index.find(spread(tag), is_it).copied()
    }

    #[inline]
    pub(crate) fn entry(&self, place: Place) -> Option<&Entry> {
        self.entries.get(index_of(place))?.as_ref()
    }

    /// The state of a known key, and what is noticed while it is decided upon, if a check of it is
    /// one limit and nothing else.
    #[inline]
    pub(crate) fn plain_mut(
        &mut self,
        tag: Tag,
        policy: &Policy,
        key: &[u8],
    ) -> Option<(&mut KeyState, &mut Effects)> {
        if !self.blocks.is_empty() {
            return None;
        }
        let place = self.find(tag, policy, key)?;
        let entry = self.entries.get_mut(index_of(place))?.as_mut()?;
        let plain = entry.state.is_plain(policy);
        plain.then_some((&mut entry.state, &mut self.counts.effects))
    }

    #[inline]
    pub(crate) fn state_mut(&mut self, place: Place) -> Option<&mut KeyState> {
        self.entries.get_mut(index_of(place))?.as_mut().map(|entry| &mut entry.state)
    }

    /// Entries with their places, from a place on.
    pub(crate) fn entries_from(&self, place: Place) -> impl Iterator<Item = (Place, &Entry)> {
        let from = index_of(place).min(self.entries.len());
        let places = place..;
        places.zip(&self.entries[from..]).filter_map(|(at, entry)| entry.as_ref().map(|i| (at, i)))
    }

    /// Makes room for one more key, if there is a way: a place, a recovered entry, or one that
    /// would be admitted, the soonest to recover first. `keep` are not evicted.
    pub(crate) fn make_room(&mut self, now: Timestamp, keep: &[Place]) -> Result<(), Full> {
        self.sweep(now, SWEEP);
        self.make_room_for(1, now, keep)
    }

    /// Bounds the entries anew; those beyond leave as new ones come.
    pub(crate) fn set_bound(&mut self, bound: usize) {
        self.bound = bound.max(1);
    }

    /// Whether that many more keys fit as it is.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.len() + count <= self.bound
    }

    /// Makes room for that many more keys.
    pub(crate) fn make_room_for(
        &mut self,
        count: usize,
        now: Timestamp,
        keep: &[Place],
    ) -> Result<(), Full> {
        while self.len() + count > self.bound {
            let mut eviction = match self.eviction.take() {
                Some(eviction) if eviction.len() <= 2 * self.bound + SMALL => eviction,
                _ => Eviction::of(self, now),
            };
            let victim = eviction.next(self, now, keep);
            let retry_at = eviction.next_time();
            self.eviction = Some(eviction);
            let Some(victim) = victim else {
                self.counts.full += 1;
                return Err(Full { retry_at });
            };
            let recovered = self.entry(victim).is_none_or(|x| x.state.is_untouched(now));
            self.counts.evicted += u64::from(!recovered);
            self.remove(victim);
        }
        Ok(())
    }

    /// Adds a key that is not there yet; room has been made.
    pub(crate) fn insert(&mut self, entry: Entry, now: Timestamp) -> Place {
        let tag = entry.tag();
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                if self.entries.len() == self.entries.capacity() {
                    // An eighth at a time: the table is mostly entries, and doubling would waste
                    // half of them.
                    self.entries.reserve_exact((self.entries.len() / 8).max(8));
                }
                self.entries.push(None);
                Place::try_from(self.entries.len() - 1).unwrap_or(Place::MAX)
            }
        };
        if let Some(eviction) = &mut self.eviction {
            eviction.add(place, &entry.state, now);
        }
        self.entries[index_of(place)] = Some(entry);
        let entries = &self.entries;
        self.index.insert_unique(spread(tag), place, |index| hash_at(entries, *index));
        place
    }

    /// Notes that an entry may recover sooner than when it was last charged.
    pub(crate) fn eased(&mut self, place: Place, now: Timestamp) {
        let Some(mut eviction) = self.eviction.take() else { return };
        if let Some(entry) = self.entry(place) {
            eviction.add(place, &entry.state, now);
        }
        self.eviction = Some(eviction);
    }

    pub(crate) fn remove(&mut self, place: Place) {
        let Some(entry) = self.entries.get_mut(index_of(place)).and_then(Option::take) else {
            return;
        };
        self.free.push(place);
        if let Ok(found) = self.index.find_entry(spread(entry.tag()), |index| *index == place) {
            found.remove();
        }
    }

    /// Looks over some places, and removes recovered entries.
    pub(crate) fn sweep(&mut self, now: Timestamp, places: usize) {
        let then = now.before(GRACE);
        for _ in 0..places.min(self.entries.len()) {
            self.cursor = if self.cursor + 1 < self.entries.len() { self.cursor + 1 } else { 0 };
            let recovered = self.entries[self.cursor]
                .as_ref()
                .is_some_and(|entry| entry.state.is_untouched(then));
            if recovered {
                self.remove(Place::try_from(self.cursor).unwrap_or(Place::MAX));
            }
        }
        if self.entries.len() > SMALL && self.len() < self.entries.len() / 4 {
            self.compact();
        }
    }

    /// Gives memory back: entries move together, and the index is made anew.
    fn compact(&mut self) {
        let moved = |place: usize| self.entries.iter().take(place).flatten().count();
        self.to_copy = moved(self.to_copy.start)..moved(self.to_copy.end);
        let entries: Vec<_> = std::mem::take(&mut self.entries).into_iter().flatten().collect();
        self.entries = Vec::with_capacity(entries.len() + entries.len() / 8);
        self.free = Vec::new();
        self.index = HashTable::with_capacity(entries.len());
        for (place, entry) in (0..).zip(entries) {
            let tag = entry.tag();
            self.entries.push(Some(entry));
            let entries = &self.entries;
            self.index.insert_unique(spread(tag), place, |index| hash_at(entries, *index));
        }
        self.cursor = 0;
        self.eviction = None;
    }

    /// The bytes that are allocated for the shard.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Option<Entry>>();
        let index = self.index.allocation_size() + self.free.capacity() * size_of::<Place>();
        let eviction = self.eviction.as_ref().map_or(0, Eviction::bytes);
        let heap: usize = self.entries.iter().flatten().map(Entry::heap_bytes).sum();
        entries + index + eviction + heap + self.blocks.bytes()
    }
}

/// No room for a new key, and when there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) retry_at: Option<u64>,
}

#[inline]
fn index_of(place: Place) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The hash of the entry at a place. The index keeps places only, and a tag is beside its key.
fn hash_at(entries: &[Option<Entry>], place: Place) -> u64 {
    entries.get(index_of(place)).and_then(Option::as_ref).map_or(0, |x| spread(x.tag()))
}

/// A tag over 64 bits, as the index wants a hash: its low bits choose the place, its high bits
/// are compared first.
#[inline]
fn spread(tag: Tag) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
