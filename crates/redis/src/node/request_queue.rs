//! The requests that wait for a connection, in batches by partition that take turns.

use std::collections::{HashMap, VecDeque};

use tollgate_core::Timestamp;

use crate::request::{BatchKey, PendingRequest};

/// The maximum number of checks in a call, unless a single request has more.
const MAX_CHECKS: usize = 500;

/// How many empty lists are kept. Batch keys change while slots move.
const MAX_EMPTY: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RequestQueue {
    by_key: HashMap<BatchKey, VecDeque<PendingRequest>>,
    /// The keys of the lists that are not empty, in the order of their turns.
    turns: VecDeque<BatchKey>,
    len: usize,
}

impl RequestQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, pending: PendingRequest) {
        let list = self.by_key.entry(pending.batch_key).or_default();
        if list.is_empty() {
            self.turns.push_back(pending.batch_key);
        }
        list.push_back(pending);
        self.len += 1;
    }

    /// Takes the first requests of the next list, at most `max` and as many as fit into a call.
    pub(crate) fn take(&mut self, max: usize) -> Vec<PendingRequest> {
        let Some(turn) = self.turns.pop_front() else { return Vec::new() };
        #[expect(clippy::expect_used, reason = "turns has the keys of lists only")]
        let list = self.by_key.get_mut(&turn).expect("a turn has a list");
        let max = if turn.is_alone { 1 } else { max };
        let mut checks = 0;
        let fits = |pending: &&PendingRequest| {
            checks += pending.request.checks.len();
            checks <= MAX_CHECKS
        };
        let count = list.iter().take(max).take_while(fits).count().max(1).min(list.len());
        let taken: Vec<PendingRequest> = list.drain(..count).collect();
        self.len -= taken.len();
        if !list.is_empty() {
            self.turns.push_back(turn);
        } else if self.by_key.len() > MAX_EMPTY {
            self.by_key.remove(&turn);
        }
        taken
    }

    /// Takes the requests made before a time.
    pub(crate) fn take_older(&mut self, than: Timestamp) -> Vec<PendingRequest> {
        let mut older = Vec::new();
        self.turns.retain(|turn| {
            let Some(list) = self.by_key.get_mut(turn) else { return false };
            while list.front().is_some_and(|front| front.responder.since < than) {
                older.extend(list.pop_front());
            }
            !list.is_empty()
        });
        self.len -= older.len();
        older
    }

    /// Takes all requests.
    pub(crate) fn take_all(&mut self) -> Vec<PendingRequest> {
        let lists = self.turns.drain(..).filter_map(|turn| self.by_key.remove(&turn));
        let all = lists.flatten().collect();
        self.len = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{RequestCheck, StoreRequest};
    use tollgate_core::{Cost, Operation};

    fn queue(requests: &[(u16, usize)]) -> RequestQueue {
        let policy: tollgate_core::Policy = "1/s".parse().unwrap();
        let mut queue = RequestQueue::default();
        for (number, (partition, checks)) in requests.iter().enumerate() {
            let check =
                RequestCheck { policy: policy.clone(), key: Box::new([1]), cost: Cost::ONE };
            let request = StoreRequest::new(Operation::Peek, vec![check; *checks]);
            let since = Timestamp::from_micros(u64::try_from(number).unwrap());
            queue.push(PendingRequest::new(request, *partition, since).0);
        }
        queue
    }

    fn numbers(requests: &[PendingRequest]) -> Vec<u64> {
        requests.iter().map(|pending| pending.responder.since.as_micros()).collect()
    }

    #[test]
    fn requests_of_a_partition_share_a_call_and_partitions_take_turns() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(numbers(&queue.take(2)), [0, 2]);
        assert_eq!(numbers(&queue.take(2)), [1, 4]);
        assert_eq!(numbers(&queue.take(2)), [5]);
        assert_eq!(numbers(&queue.take(2)), [3]);
        assert!(queue.is_empty() && queue.take(2).is_empty());
    }

    #[test]
    fn a_call_has_a_bounded_number_of_checks() {
        let mut queue = queue(&[(1, 300), (1, 200), (1, 1), (1, 600)]);
        assert_eq!(numbers(&queue.take(64)), [0, 1]);
        assert_eq!(numbers(&queue.take(64)), [2]);
        assert_eq!(numbers(&queue.take(64)), [3]);
    }

    #[test]
    fn old_requests_are_taken_out() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1)]);
        assert_eq!(numbers(&queue.take_older(Timestamp::from_micros(2))), [0, 1]);
        assert_eq!(numbers(&queue.take_all()), [2]);
        assert!(queue.is_empty() && queue.take(1).is_empty());
    }
}
