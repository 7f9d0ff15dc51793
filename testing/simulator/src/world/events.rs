//! Events at virtual times, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::connection::{End, Packet};

/// What happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A packet reaches an end of a connection.
    Deliver { connection: u64, to: End, packet: Packet },
    /// A command has been executed, and its reply is sent.
    Reply { connection: u64, bytes: Vec<u8> },
    /// A server continues with the next command.
    Run { server: usize },
    /// A node of a cluster learns the latest assignment of slots.
    LearnSlots { server: usize },
    /// A sentinel learns the primary of a name.
    LearnPrimary { sentinel: usize, name: String, primary: usize },
    /// Data may have been unacknowledged for too long.
    CheckAcknowledged { connection: u64 },
}

/// Events by time; those of a time in the order in which they were scheduled.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Scheduled {
    at: Duration,
    number: u64,
    event: Event,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Duration, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse(Scheduled { at, number: self.scheduled, event }));
    }

    /// Returns the time of the next event.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse(next)| next.at)
    }

    /// Takes the next event, if its time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, Event)> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(next)| (next.at, next.event))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
