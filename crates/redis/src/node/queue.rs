//! The requests that wait for a connection: a line for each group of keys, served in turn.

use std::collections::{HashMap, VecDeque};

use tollgate_core::Timestamp;

use crate::waiting::{Line, Waiting};

/// The most checks in one call, but for a request that has more by itself.
const MAX_CHECKS: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: HashMap<Line, VecDeque<Waiting>>,
    /// The lines that are not empty, each once.
    turns: VecDeque<Line>,
    len: usize,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        let line = self.lines.entry(waiting.line).or_default();
        if line.is_empty() {
            self.turns.push_back(waiting.line);
        }
        line.push_back(waiting);
        self.len += 1;
    }

    /// The first requests of the line whose turn it is, as many as fit into a call.
    pub(crate) fn take(&mut self, most: usize) -> Vec<Waiting> {
        let Some(turn) = self.turns.pop_front() else { return Vec::new() };
        let Some(line) = self.lines.get_mut(&turn) else { return Vec::new() };
        let most = if turn.alone { 1 } else { most };
        let mut checks = 0;
        let fits = |waiting: &&Waiting| {
            checks += waiting.asked.checks.len();
            checks <= MAX_CHECKS
        };
        let count = line.iter().take(most).take_while(fits).count().max(1).min(line.len());
        let taken: Vec<Waiting> = line.drain(..count).collect();
        self.len -= taken.len();
        if line.is_empty() {
            // Lines come and go with groups that move; few are kept for nothing.
            if self.lines.len() > 64 {
                self.lines.remove(&turn);
            }
        } else {
            self.turns.push_back(turn);
        }
        taken
    }

    /// The requests that wait since before a time.
    pub(crate) fn take_older(&mut self, than: Timestamp) -> Vec<Waiting> {
        let mut older = Vec::new();
        self.turns.retain(|turn| {
            let Some(line) = self.lines.get_mut(turn) else { return false };
            while line.front().is_some_and(|front| front.caller.since < than) {
                older.extend(line.pop_front());
            }
            !line.is_empty()
        });
        self.len -= older.len();
        older
    }

    /// All of them.
    pub(crate) fn take_all(&mut self) -> Vec<Waiting> {
        let all = self.turns.drain(..).filter_map(|turn| self.lines.remove(&turn)).flatten();
        let all = all.collect();
        self.len = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::{Asked, AskedCheck};
    use tollgate_core::{Cost, Operation};

    fn queue(groups: &[(u16, usize)]) -> Queue {
        let policy: tollgate_core::Policy = "1/s".parse().unwrap();
        let mut queue = Queue::default();
        for (number, (group, checks)) in groups.iter().enumerate() {
            let check = AskedCheck { policy: policy.clone(), key: Box::new([1]), cost: Cost::ONE };
            let checks = vec![check; *checks];
            let asked = Asked {
                verb: Operation::Peek,
                checks,
                request_id: None,
                inspects: false,
                part_of: None,
            };
            let since = Timestamp::from_micros(u64::try_from(number).unwrap());
            queue.push(Waiting::new(asked, *group, since).0);
        }
        queue
    }

    fn numbers(waiting: &[Waiting]) -> Vec<u64> {
        waiting.iter().map(|waiting| waiting.caller.since.as_micros()).collect()
    }

    #[test]
    fn requests_of_one_group_go_together_and_groups_take_turns() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(numbers(&queue.take(2)), [0, 2]);
        assert_eq!(numbers(&queue.take(2)), [1, 4]);
        assert_eq!(numbers(&queue.take(2)), [5]);
        assert_eq!(numbers(&queue.take(2)), [3]);
        assert!(queue.is_empty() && queue.take(2).is_empty());
    }

    #[test]
    fn a_call_has_no_more_than_so_many_checks() {
        let mut queue = queue(&[(1, 300), (1, 200), (1, 1), (1, 600)]);
        assert_eq!(numbers(&queue.take(64)), [0, 1]);
        assert_eq!(numbers(&queue.take(64)), [2]);
        assert_eq!(numbers(&queue.take(64)), [3]);
    }

    #[test]
    fn those_who_wait_too_long_leave() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1)]);
        assert_eq!(numbers(&queue.take_older(Timestamp::from_micros(2))), [0, 1]);
        assert_eq!(numbers(&queue.take_all()), [2]);
        assert!(queue.is_empty() && queue.take(1).is_empty());
    }
}
