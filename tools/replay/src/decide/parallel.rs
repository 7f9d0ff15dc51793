//! Replay of independent keys: each thread decides the checks of its share of the keys.

use tollgate::Timestamp;

use super::partition::{Event, Partition};
use crate::convert::{index, to_u32};
use crate::order::Order;
use crate::read::{PlainChecks, part_of};
use crate::report::{Span, extend_span};
use crate::request::Candidate;
use crate::threads::for_each;

/// How many checks are decided at a time, about.
pub(crate) const BATCH: usize = 65_536;

/// All keys in partitions, and the checks that wait until no earlier check can arrive.
pub(crate) struct ParallelReplay<'a> {
    candidates: &'a [Candidate],
    pub(crate) partitions: Vec<Partition>,
    pub(crate) order: Order<Event>,
    /// The last blocks, and the numbers of their keys by partition and block.
    blocks: Vec<PlainChecks>,
    numbers: Vec<Vec<Vec<Option<u32>>>>,
    /// The memory of earlier blocks, for reuse.
    pub(crate) free: Vec<PlainChecks>,
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
        ParallelReplay {
            candidates,
            partitions,
            order,
            blocks: Vec::new(),
            numbers: Vec::new(),
            free: Vec::new(),
            released: Vec::new(),
            span: None,
        }
    }

    pub(crate) fn parts(&self) -> u32 {
        to_u32(self.partitions.len())
    }

    /// Takes consecutive blocks, numbers their keys, and decides the checks of earlier blocks that are in
    /// order.
    pub(crate) fn take(&mut self, blocks: Vec<PlainChecks>) {
        let (candidates, released, count) =
            (self.candidates, &self.released, self.partitions.len());
        let partitions = (0..).zip(&mut self.partitions);
        let mut tasks: Vec<_> =
            partitions.map(|(part, partition)| (part, partition, Vec::new())).collect();
        for_each(&mut tasks, |(part, partition, numbers)| {
            partition.decide(*part, count, released, candidates);
            numbers.extend(
                blocks
                    .iter()
                    .map(|block| partition.numbers(&block.parts[index(*part)], block, candidates)),
            );
        });
        self.numbers = tasks.into_iter().map(|(_, _, numbers)| numbers).collect();
        self.blocks = blocks;
        self.end_decisions();
    }

    /// Puts the checks of the last blocks in order; those that no earlier check can precede are
    /// decided next.
    pub(crate) fn put_in_order(&mut self) {
        for (place, block) in self.blocks.iter().enumerate() {
            let mut parts: Vec<_> = self
                .numbers
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
        self.free.append(&mut self.blocks);
        self.order.release(&mut self.released);
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
        let (candidates, released, count) =
            (self.candidates, &self.released, self.partitions.len());
        let mut partitions: Vec<_> = (0..).zip(&mut self.partitions).collect();
        for_each(&mut partitions, |(mine, partition)| {
            partition.decide(*mine, count, released, candidates)
        });
        self.end_decisions();
    }

    /// Decides all checks that are left, in batches, so that their memory is used again.
    pub(crate) fn finish(&mut self) {
        self.put_in_order();
        self.decide();
        self.order.finish();
        while self.order.release_second(&mut self.released) {
            if self.released.len() >= BATCH {
                self.decide();
            }
        }
        self.decide();
    }

    /// Forgets the checks that have been decided.
    fn end_decisions(&mut self) {
        for value in [self.released.first(), self.released.last()].into_iter().flatten() {
            extend_span(&mut self.span, value.0);
        }
        self.released.clear();
    }
}
