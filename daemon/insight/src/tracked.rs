//! The policies that track something.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate::Policy;
use tollgate_config::Track;

/// A policy that tracks its keys.
#[derive(Debug)]
pub struct Tracked {
    /// The number of the policy in the records of this process.
    pub(crate) id: u32,
    /// Its name.
    pub name: Box<str>,
    /// What it tracks.
    pub track: Track,
    /// The length of an interval of the timeline in µs; 0 without one.
    pub(crate) interval: u64,
}

impl Tracked {
    pub(crate) fn new(id: u32, name: &str, track: &Track) -> Self {
        let interval = track.timeline.map_or(0, |timeline| timeline.interval.get());
        Tracked { id, name: name.into(), track: track.clone(), interval }
    }

    /// Its place in lists by number.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        index(self.id)
    }

    /// The time before which a key has been forgotten, in µs.
    pub(crate) fn expiry(&self, now: u64) -> u64 {
        now.saturating_sub(u64::try_from(self.track.keep.as_micros()).unwrap_or(u64::MAX))
    }

    /// The start of the oldest interval of the timeline, in µs.
    pub(crate) fn horizon(&self, now: u64) -> u64 {
        let Some(timeline) = self.track.timeline else { return 0 };
        let interval = timeline.interval.get();
        let current = now - now % interval;
        current.saturating_sub(interval * (u64::from(timeline.intervals) - 1))
    }
}

fn index(id: u32) -> usize {
    // Saturates where an address has 16 bits.
    usize::try_from(id).unwrap_or(usize::MAX)
}

/// The policies of a configuration that track something. A lookup takes no lock and does not
/// allocate; clones share the table.
#[derive(Clone, Debug, Default)]
pub struct TrackTable(Arc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// By the hash of the name.
    by_hash: Vec<(u64, Arc<Tracked>)>,
    by_id: Vec<Option<Arc<Tracked>>>,
}

impl TrackTable {
    pub(crate) fn new(tracks: &BTreeMap<String, Track>, mut id: impl FnMut(&str) -> u32) -> Self {
        let mut entries = Entries::default();
        for (name, track) in tracks {
            let tracked = Arc::new(Tracked::new(id(name), name, track));
            let len = entries.by_id.len().max(tracked.index() + 1);
            entries.by_id.resize(len, None);
            let index = tracked.index();
            entries.by_id[index] = Some(Arc::clone(&tracked));
            entries.by_hash.push((Policy::hash_of_name(name), tracked));
        }
        entries.by_hash.sort_unstable_by_key(|(hash, _)| *hash);
        TrackTable(entries.into())
    }

    /// The policy, if it tracks something.
    #[inline]
    #[must_use]
    pub fn get(&self, policy: &Policy) -> Option<&Tracked> {
        let Entries { by_hash, .. } = &*self.0;
        if by_hash.is_empty() {
            return None;
        }
        let hash = policy.name_hash();
        let index = by_hash.binary_search_by_key(&hash, |(hash, _)| *hash).ok()?;
        by_hash.get(index).map(|(_, tracked)| &**tracked).filter(|t| *t.name == *policy.name())
    }

    /// The policy of this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Tracked>> {
        self.iter().find(|tracked| *tracked.name == *name)
    }

    /// The policy of this number.
    #[inline]
    pub(crate) fn by_id(&self, id: u32) -> Option<&Arc<Tracked>> {
        self.0.by_id.get(index(id))?.as_ref()
    }

    /// One more than the largest number of a policy.
    pub(crate) fn ids(&self) -> usize {
        self.0.by_id.len()
    }

    /// The policies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Tracked>> {
        self.0.by_hash.iter().map(|(_, tracked)| tracked)
    }

    /// Whether no policy tracks anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.by_hash.is_empty()
    }
}
