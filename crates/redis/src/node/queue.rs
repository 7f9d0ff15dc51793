//! The requests that wait for a connection: a data structure without I/O.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::request::{BatchKey, PendingRequest};

/// The maximum number of packets in flight on a connection. With one packet, the server is idle for a
/// round trip between packets. With more than two, batches are smaller and latency is higher: with 64
/// callers on two connections the median was 437 µs for one, 386 µs for two, 405 µs for three.
pub(super) const MAX_PACKETS: u8 = 2;
/// The maximum estimated execution time of a call, unless a single request needs more. The server
/// serves no other client meanwhile.
const MAX_COST: Duration = Duration::from_millis(1);
/// How long before its deadline a request fails that is not sent, at most: a timer may be late.
const MAX_MARGIN: Duration = Duration::from_millis(3);
/// The number of calls that an estimate assumes for each waiting request: one of several partitions
/// peeks, and its charge goes before requests that wait. With one call each, a cluster at 2.5 times its
/// capacity answered two thirds as many of such requests.
const CALLS_PER_REQUEST: u32 = 2;
/// How many empty lists are kept. Batch keys change while slots move.
const MAX_EMPTY: usize = 64;

/// Requests by batch key. The keys take turns.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    by_key: HashMap<BatchKey, KeyQueue>,
    /// The keys of the lists that are not empty, in the order of their turns.
    turns: VecDeque<BatchKey>,
    len: usize,
}

/// The requests with a batch key.
#[derive(Debug, Default)]
struct KeyQueue {
    /// Requests of which earlier parts were executed. They are served first and in order: otherwise
    /// the work for those parts would be wasted under overload.
    continuations: VecDeque<PendingRequest>,
    first_calls: VecDeque<PendingRequest>,
}

/// Requests that were taken from a queue.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The requests of each call, all with the same batch key.
    pub(super) calls: Vec<Vec<PendingRequest>>,
    /// Requests that cannot be answered before their deadline.
    pub(super) late: Vec<PendingRequest>,
    /// The number of requests whose caller has gone.
    pub(super) abandoned: u64,
}

impl RequestQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns an estimate of the time until a request is answered that is pushed now; zero if no
    /// request waits, because then the average round trip may be outdated.
    pub(super) fn expected_wait(&self, round_trip: Duration, batch: usize) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        let packets = u32::try_from(self.len / batch).unwrap_or(u32::MAX);
        let calls = packets.saturating_add(1).saturating_mul(CALLS_PER_REQUEST);
        round_trip.saturating_mul(calls) / u32::from(MAX_PACKETS) + round_trip
    }

    pub(super) fn push(&mut self, pending: PendingRequest) {
        let lists = self.by_key.entry(pending.batch_key).or_default();
        if lists.is_empty() {
            self.turns.push_back(pending.batch_key);
        }
        lists.list_of(&pending).push_back(pending);
        self.len += 1;
    }

    /// Takes up to `max` requests for calls that are answered at `answered_at` at the earliest.
    pub(super) fn take(&mut self, max: usize, now: Instant, answered_at: Instant) -> Taken {
        let mut taken = Taken::default();
        let mut count = 0;
        // A list that has requests left gets its next turn in the next packet.
        for _ in 0..self.turns.len() {
            if count == max {
                break;
            }
            let Some(turn) = self.turns.pop_front() else { break };
            loop {
                let call = self.take_call(turn, max - count, (now, answered_at), &mut taken);
                if call.is_empty() {
                    break;
                }
                count += call.len();
                taken.calls.push(call);
                if !turn.is_alone || count == max {
                    break;
                }
            }
            self.end_turn(turn);
        }
        taken
    }

    /// Takes the requests of a call from a list.
    ///
    /// Under overload, the newest requests are served first: with a queue that is longer than the
    /// deadlines, the oldest ones would be answered just too late, and so all.
    fn take_call(
        &mut self,
        turn: BatchKey,
        max: usize,
        (now, answered_at): (Instant, Instant),
        taken: &mut Taken,
    ) -> Vec<PendingRequest> {
        #[expect(clippy::expect_used, reason = "turns has the keys of lists only")]
        let lists = self.by_key.get_mut(&turn).expect("a turn has a list");
        let before = lists.len();
        let max = if turn.is_alone { 1 } else { max };
        let newest_first = lists.first_calls.front().is_some_and(|oldest| is_overdue(oldest, now));
        let mut cost = Duration::ZERO;
        let (mut call, mut continuations) = (Vec::new(), 0);
        while call.len() < max {
            let Some(next) = lists.pop(newest_first) else { break };
            if next.responder.is_closed() {
                taken.abandoned += 1;
                continue;
            }
            if next.responder.deadline < answered_at {
                taken.late.push(next);
                continue;
            }
            cost += next.request.cost();
            if !call.is_empty() && cost > MAX_COST {
                lists.put_back(next, newest_first);
                break;
            }
            continuations += usize::from(next.responder.is_continuation);
            call.push(next);
        }
        if newest_first {
            call[continuations..].reverse();
        }
        self.len -= before - lists.len();
        call
    }

    /// Puts a list that has requests left back into the order of turns.
    fn end_turn(&mut self, turn: BatchKey) {
        if self.by_key.get(&turn).is_some_and(|lists| !lists.is_empty()) {
            self.turns.push_back(turn);
        } else if self.by_key.len() > MAX_EMPTY {
            self.by_key.remove(&turn);
        }
    }

    /// Takes the requests whose deadline is near: they fail early enough that their callers learn that
    /// they were not sent.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<PendingRequest> {
        let mut late = Vec::new();
        self.turns.retain(|turn| {
            let Some(lists) = self.by_key.get_mut(turn) else { return false };
            for list in [&mut lists.continuations, &mut lists.first_calls] {
                if list.iter().any(|pending| is_near_deadline(pending, now)) {
                    let (expired, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(list)
                        .into_iter()
                        .partition(|pending| is_near_deadline(pending, now));
                    late.extend(expired);
                    *list = kept;
                }
            }
            !lists.is_empty()
        });
        self.len -= late.len();
        late
    }

    /// Takes all requests.
    pub(super) fn take_all(&mut self) -> Vec<PendingRequest> {
        let lists = self.turns.drain(..).filter_map(|turn| self.by_key.remove(&turn));
        let all = lists.flat_map(|lists| lists.continuations.into_iter().chain(lists.first_calls));
        let all = all.collect();
        self.len = 0;
        all
    }
}

impl KeyQueue {
    fn len(&self) -> usize {
        self.continuations.len() + self.first_calls.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn list_of(&mut self, pending: &PendingRequest) -> &mut VecDeque<PendingRequest> {
        match pending.responder.is_continuation {
            true => &mut self.continuations,
            false => &mut self.first_calls,
        }
    }

    fn pop(&mut self, newest_first: bool) -> Option<PendingRequest> {
        let continuation = self.continuations.pop_front();
        continuation.or_else(|| match newest_first {
            true => self.first_calls.pop_back(),
            false => self.first_calls.pop_front(),
        })
    }

    /// Puts back the request that was popped last.
    fn put_back(&mut self, pending: PendingRequest, newest_first: bool) {
        let is_last = newest_first && !pending.responder.is_continuation;
        let list = self.list_of(&pending);
        if is_last { list.push_back(pending) } else { list.push_front(pending) }
    }
}

/// Returns whether a request has waited for more than half of the time that it has.
fn is_overdue(pending: &PendingRequest, now: Instant) -> bool {
    let waited = now.saturating_duration_since(pending.responder.since);
    waited > pending.responder.budget() / 2
}

fn is_near_deadline(pending: &PendingRequest, now: Instant) -> bool {
    let margin = MAX_MARGIN.min(pending.responder.budget() / 4);
    pending.responder.deadline < now + margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{RequestCheck, StoreRequest};
    use tollgate_algorithms::{Cost, Operation};

    const MS: Duration = Duration::from_millis(1);

    struct Fixture {
        start: Instant,
        queue: RequestQueue,
        count: u64,
        receivers: Vec<tokio::sync::oneshot::Receiver<crate::request::Outcome>>,
    }

    impl Fixture {
        fn new() -> Self {
            let (queue, receivers) = (RequestQueue::default(), Vec::new());
            Fixture { start: Instant::now(), queue, count: 0, receivers }
        }

        fn push(&mut self, partition: u16, limits: &str, checks: usize, at: Duration) {
            self.push_with(BatchKey::new(partition), limits, checks, at);
        }

        /// Adds a request that is made at a time and has 10 ms. Its number is its cost.
        fn push_with(&mut self, key: BatchKey, limits: &str, checks: usize, at: Duration) {
            self.count += 1;
            let cost = Cost::new(self.count).unwrap();
            let check = RequestCheck { policy: limits.parse().unwrap(), key: Box::new([1]), cost };
            let request = StoreRequest::new(Operation::Peek, vec![check; checks]);
            let since = self.start + at;
            let (pending, receiver) = PendingRequest::new(request, key, since, since + 10 * MS);
            self.receivers.push(receiver);
            self.queue.push(pending);
        }

        fn take(&mut self, max: usize, at: Duration) -> Vec<Vec<u64>> {
            let taken = self.queue.take(max, self.start + at, self.start + at);
            taken.calls.iter().map(numbers).collect()
        }
    }

    fn numbers<'a>(requests: impl IntoIterator<Item = &'a PendingRequest>) -> Vec<u64> {
        requests.into_iter().map(|pending| pending.request.checks[0].cost.get()).collect()
    }

    #[test]
    fn requests_of_a_partition_share_a_call_and_partitions_take_turns() {
        let mut fixture = Fixture::new();
        for partition in [1, 2, 1, 1, 2, 3] {
            fixture.push(partition, "1/s", 1, Duration::ZERO);
        }
        assert_eq!(fixture.take(4, MS), [vec![1, 3, 4], vec![2]]);
        assert_eq!(fixture.take(4, MS), [vec![6], vec![5]]);
        assert!(fixture.queue.is_empty() && fixture.take(4, MS).is_empty());
    }

    #[test]
    fn requests_that_need_a_call_of_their_own_share_a_packet() {
        let mut fixture = Fixture::new();
        for _ in 0..4 {
            fixture.push_with(BatchKey::alone(1), "1/s", 1, Duration::ZERO);
        }
        fixture.push(1, "1/s", 1, Duration::ZERO);
        assert_eq!(fixture.take(3, MS), [vec![1], vec![2], vec![3]]);
        assert_eq!(fixture.take(3, MS), [vec![5], vec![4]]);
        assert!(fixture.queue.is_empty());
    }

    #[test]
    fn a_call_has_a_bounded_cost() {
        let mut fixture = Fixture::new();
        // A check costs 5 µs, a limit of constant size 3 µs, a log 60 µs.
        for (limits, checks) in [("1/s", 100), ("1/s", 25), ("1/s", 1), ("1/s log", 600)] {
            fixture.push(1, limits, checks, Duration::ZERO);
        }
        assert_eq!(fixture.take(64, MS), [vec![1, 2]]);
        assert_eq!(fixture.take(64, MS), [vec![3]]);
        assert_eq!(fixture.take(64, MS), [vec![4]]);
    }

    #[test]
    fn under_overload_the_newest_requests_are_served_first() {
        let mut fixture = Fixture::new();
        for at in 0..8 {
            fixture.push(1, "1/s", 1, at * MS);
        }
        // The oldest has waited for 4 of its 10 ms.
        assert_eq!(fixture.take(2, 4 * MS), [vec![1, 2]]);
        assert_eq!(fixture.take(2, 8 * MS), [vec![7, 8]]);
        assert_eq!(fixture.take(2, 7 * MS), [vec![3, 4]]);
    }

    #[test]
    fn continuations_are_served_first_and_in_order() {
        let mut fixture = Fixture::new();
        for at in 0..6 {
            fixture.push(1, "1/s", 1, at * MS);
        }
        for mut pending in fixture.queue.take_all() {
            pending.responder.is_continuation = [3, 4].contains(&numbers([&pending])[0]);
            fixture.queue.push(pending);
        }
        assert_eq!(fixture.take(3, 4 * MS), [vec![3, 4, 1]]);
        // Of the others, the newest are served first now.
        assert_eq!(fixture.take(2, 8 * MS), [vec![5, 6]]);
    }

    #[test]
    fn the_expected_wait_grows_with_the_packets_that_wait() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.queue.expected_wait(MS, 2), Duration::ZERO);
        for expected in [2, 3, 3, 4] {
            fixture.push(1, "1/s", 1, Duration::ZERO);
            assert_eq!(fixture.queue.expected_wait(MS, 2), expected * MS);
        }
    }

    #[test]
    fn late_and_abandoned_requests_are_not_sent() {
        let mut fixture = Fixture::new();
        for at in 0..4 {
            fixture.push(1, "1/s", 1, at * MS);
        }
        fixture.receivers.pop();
        let taken = fixture.queue.take(64, fixture.start + 3 * MS, fixture.start + 11 * MS);
        assert_eq!(numbers(&taken.calls[0]), [2, 3]);
        assert_eq!((numbers(&taken.late), taken.abandoned), (vec![1], 1));
    }

    #[test]
    fn late_requests_are_taken_out() {
        let mut fixture = Fixture::new();
        for (partition, at) in [(1, 0), (2, 1), (1, 2)] {
            fixture.push(partition, "1/s", 1, at * MS);
        }
        // The margin is a quarter of 10 ms.
        let late = fixture.queue.take_late(fixture.start + 9 * MS);
        assert_eq!(numbers(&late), [1, 2]);
        assert_eq!(fixture.queue.len(), 1);
        assert_eq!(numbers(&fixture.queue.take_all()), [3]);
        assert!(fixture.queue.is_empty());
    }
}
