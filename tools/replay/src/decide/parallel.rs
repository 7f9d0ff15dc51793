//! Replay of independent keys: each thread decides the checks of its share of the keys.

use tollgate::Timestamp;

use super::partition::{Event, Partition};
use crate::convert::{index, to_u32};
use crate::order::Order;
use crate::read::{PlainChecks, UnnumberedCheck, part_of};
use crate::report::{Span, extend_span};
use crate::request::Candidate;
use crate::threads::for_each;

/// All keys in partitions, and the checks that wait until no earlier check can arrive.
pub(crate) struct ParallelReplay<'a> {
    candidates: &'a [Candidate],
    pub(crate) partitions: Vec<Partition>,
    pub(crate) order: Order<Event>,
    /// Checks in order, which are decided next.
    released: Vec<(Timestamp, Event)>,
    /// The time of the first and of the last decision.
    pub(crate) span: Span,
}

impl<'a> ParallelReplay<'a> {
    pub(crate) fn new(
        candidates: &'a [Candidate],
        order: Order<Event>,
        threads: usize,
        keeps_trace: bool,
    ) -> Self {
        let partition = || Partition::new(candidates.len(), keeps_trace);
        let partitions = std::iter::repeat_with(partition).take(threads.max(1)).collect();
        ParallelReplay { candidates, partitions, order, released: Vec::new(), span: None }
    }

    pub(crate) fn parts(&self) -> u32 {
        to_u32(self.partitions.len())
    }

    /// Takes consecutive blocks, and decides every check that no earlier check can precede.
    pub(crate) fn take(&mut self, blocks: &[PlainChecks]) {
        let numbers = self.number(blocks);
        for (place, block) in blocks.iter().enumerate() {
            let mut parts: Vec<_> = numbers
                .iter()
                .zip(&block.parts)
                .map(|(numbers, checks)| numbers[place].iter().zip(checks))
                .collect();
            for &(stamp, partition) in &block.order {
                let next = parts[index(partition)].next();
                if let Some((&Some(key), check)) = next {
                    self.order.push(stamp, Event { partition, key, cost: check.cost });
                }
            }
        }
        self.order.release(&mut self.released);
        self.decide();
    }

    /// Takes one check of cost 1 that does not come from a log.
    pub(crate) fn push(&mut self, at: Timestamp, key: &[u8], hash: u64) {
        let partition = part_of(hash, self.parts());
        let partition_keys = &mut self.partitions[index(partition)];
        if let Some(key) = partition_keys.number(hash, 0, key, self.candidates) {
            self.released.push((at, Event { partition, key, cost: 1 }));
        }
    }

    pub(crate) fn decide(&mut self) {
        let (released, candidates) = (&self.released, self.candidates);
        let mut partitions: Vec<_> = (0..).zip(&mut self.partitions).collect();
        for_each(&mut partitions, |(mine, partition)| {
            partition.decide(*mine, released, candidates)
        });
        for value in [self.released.first(), self.released.last()].into_iter().flatten() {
            extend_span(&mut self.span, value.0);
        }
        self.released.clear();
    }

    pub(crate) fn finish(&mut self) {
        self.order.finish(&mut self.released);
        self.decide();
    }

    /// Numbers the keys of some blocks, each partition on its thread; returns the numbers by
    /// partition and block.
    fn number(&mut self, blocks: &[PlainChecks]) -> Vec<Vec<Vec<Option<u32>>>> {
        let candidates = self.candidates;
        let partitions = self.partitions.iter_mut().enumerate();
        let mut tasks: Vec<_> =
            partitions.map(|(part, partition)| (part, partition, Vec::new())).collect();
        for_each(&mut tasks, |(part, partition, numbers)| {
            for block in blocks {
                let number = |check: &UnnumberedCheck| {
                    partition.number(check.hash, check.policy, block.key(check), candidates)
                };
                numbers.push(block.parts[*part].iter().map(number).collect());
            }
        });
        tasks.into_iter().map(|(_, _, numbers)| numbers).collect()
    }
}
