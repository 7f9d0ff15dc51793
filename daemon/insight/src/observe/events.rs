//! The notifications of a server since they were taken.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tollgate_redis::KeyEvent;

/// The most counters that wait to be read. Further ones are skipped, and read after their next change.
const MAX_CHANGED: usize = 131_072;

/// A counter that has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The changes since the last read.
    pub(super) events: u64,
    /// Whether the last read found the slot on another server, so that it may be migrated to this one.
    pub(super) is_importing: bool,
}

/// How a counter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It expired.
    Expired,
    /// It was deleted or evicted, or was set to a value.
    Replaced,
}

/// Notifications that wait for the next read.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) changed: HashMap<Box<[u8]>, Change, RandomState>,
    pub(super) ends: Vec<(Box<[u8]>, End)>,
    /// The counters that ended before their last changes were read, and the number of these changes.
    pub(super) unread: (u64, u64),
    /// The changes that were skipped.
    pub(super) skipped: u64,
}

/// Collects notifications. It never waits for long, because it runs in the task of the connection.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<PendingEvents>);

impl Events {
    pub(super) fn lock(&self) -> MutexGuard<'_, PendingEvents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a notification about a counter.
    pub(super) fn record(&self, event: KeyEvent<'_>) {
        let mut notified = self.lock();
        match event.event {
            b"incrby" => notified.change(event.name),
            b"set" => {
                notified.push_end(event.name, End::Replaced);
                notified.change(event.name);
            }
            b"expired" => notified.end(event.name, End::Expired),
            b"del" | b"evicted" | b"rename_from" => notified.end(event.name, End::Replaced),
            _ => {}
        }
    }
}

impl PendingEvents {
    fn change(&mut self, name: &[u8]) {
        if let Some(change) = self.changed.get_mut(name) {
            change.events += 1;
        } else if !self.is_full() {
            self.changed.insert(name.into(), Change { events: 1, is_importing: false });
        } else {
            self.skipped += 1;
        }
    }

    fn end(&mut self, name: &[u8], end: End) {
        if let Some(change) = self.changed.remove(name)
            && change.events > 0
        {
            self.unread.0 += 1;
            self.unread.1 += change.events;
        }
        self.push_end(name, end);
    }

    fn push_end(&mut self, name: &[u8], end: End) {
        match self.ends.len() < MAX_CHANGED {
            true => self.ends.push((name.into(), end)),
            false => self.skipped += 1,
        }
    }

    /// Whether there is no space for further counters.
    pub(super) fn is_full(&self) -> bool {
        self.changed.len() >= MAX_CHANGED
    }

    /// Adds a counter to those that are read next.
    pub(super) fn read_again(&mut self, name: &[u8], change: Change) {
        let again = self.changed.entry(name.into()).or_default();
        again.events += change.events;
        again.is_importing |= change.is_importing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_until_the_counter_ends() {
        let events = Events::default();
        let record = |name: &str, event: &str| {
            events.record(KeyEvent { name: name.as_bytes(), event: event.as_bytes() });
        };
        for event in ["incrby", "expire", "incrby"] {
            record("a", event);
        }
        record("b", "incrby");
        record("b", "expired");
        record("c", "del");
        record("d", "set");
        let notified = events.lock();
        let events_of = |name: &str| notified.changed.get(name.as_bytes()).map(|c| c.events);
        assert_eq!(["a", "b", "c", "d"].map(events_of), [Some(2), None, None, Some(1)]);
        let ended: Vec<_> = notified.ends.iter().map(|(name, end)| (&name[..], *end)).collect();
        let (expired, replaced) = (End::Expired, End::Replaced);
        assert_eq!(ended, [(&b"b"[..], expired), (b"c", replaced), (b"d", replaced)]);
        assert_eq!((notified.unread, notified.skipped), ((1, 1), 0));
    }
}
