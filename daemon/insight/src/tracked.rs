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

/// The policies of a configuration that track something. A lookup takes no lock and does not
/// allocate; clones share the table.
#[derive(Clone, Debug, Default)]
pub struct TrackTable(Arc<[(u64, Arc<Tracked>)]>);

impl TrackTable {
    pub(crate) fn new(tracks: &BTreeMap<String, Track>, mut id: impl FnMut(&str) -> u32) -> Self {
        let entry = |(name, track): (&String, &Track)| {
            (Policy::hash_of_name(name), Arc::new(Tracked::new(id(name), name, track)))
        };
        let mut entries: Vec<_> = tracks.iter().map(entry).collect();
        entries.sort_unstable_by_key(|(hash, _)| *hash);
        TrackTable(entries.into())
    }

    /// The policy, if it tracks something.
    #[inline]
    #[must_use]
    pub fn get(&self, policy: &Policy) -> Option<&Tracked> {
        if self.0.is_empty() {
            return None;
        }
        let hash = policy.name_hash();
        let index = self.0.binary_search_by_key(&hash, |(hash, _)| *hash).ok()?;
        self.0.get(index).map(|(_, tracked)| &**tracked).filter(|t| *t.name == *policy.name())
    }

    /// The policy of this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Tracked>> {
        self.iter().find(|tracked| *tracked.name == *name)
    }

    /// The policy of this number.
    pub(crate) fn by_id(&self, id: u32) -> Option<&Arc<Tracked>> {
        self.iter().find(|tracked| tracked.id == id)
    }

    /// The policies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Tracked>> {
        self.0.iter().map(|(_, tracked)| tracked)
    }

    /// Whether no policy tracks anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
