//! Checks whose keys have nothing to do with each other: each thread decides those of some keys.

use tollgate::Timestamp;

use super::Alternative;
use super::partition::{Event, Partition};
use crate::each;
use crate::order::Order;
use crate::read::Plains;
use crate::run::widen;

/// All keys, in partitions, and the checks that wait until no earlier one can come.
#[derive(Debug)]
pub(crate) struct ByKey<'a> {
    alternatives: &'a [Alternative],
    pub(crate) partitions: Vec<Partition>,
    pub(crate) order: Order<Event>,
    /// What was put in order and is decided next.
    released: Vec<(Timestamp, Event)>,
    /// When the first and the last were, of those decided.
    pub(crate) span: Option<(Timestamp, Timestamp)>,
}

/// What one thread numbers: its part of each block, as it stands there and by numbers.
struct Numbering<'b> {
    partition: &'b mut Partition,
    place: usize,
    /// One for each block, a number for each of its lines.
    numbers: Vec<Vec<Option<u32>>>,
}

impl<'a> ByKey<'a> {
    pub(crate) fn new(
        alternatives: &'a [Alternative],
        order: Order<Event>,
        threads: usize,
        keeps_trace: bool,
    ) -> Self {
        let partition = || Partition::new(alternatives.len(), keeps_trace);
        let partitions = std::iter::repeat_with(partition).take(threads.max(1)).collect();
        ByKey { alternatives, partitions, order, released: Vec::new(), span: None }
    }

    /// How many partitions there are.
    pub(crate) fn parts(&self) -> u32 {
        u32::try_from(self.partitions.len()).unwrap_or(1)
    }

    /// Takes blocks that follow each other, and decides what no earlier line can come before.
    pub(crate) fn take(&mut self, blocks: &[Plains]) {
        let numbers = self.number(blocks);
        for (index, block) in blocks.iter().enumerate() {
            let mut parts: Vec<_> = numbers
                .iter()
                .zip(&block.parts)
                .map(|(of_partition, plains)| of_partition[index].iter().zip(plains))
                .collect();
            for &(stamp, partition) in &block.order {
                let next = usize::try_from(partition).ok().and_then(|x| parts.get_mut(x)?.next());
                if let Some((&Some(key), plain)) = next {
                    self.order.push(stamp, Event { partition, key, cost: plain.cost });
                }
            }
        }
        self.order.release(&mut self.released);
        self.decide();
    }

    /// Takes one check that was not read from a line.
    pub(crate) fn push(&mut self, at: Timestamp, key: &[u8], cost: u64, hash: u64) {
        let partition = crate::read::part_of(hash, self.parts());
        let index = usize::try_from(partition).unwrap_or_default();
        let Some(of) = self.partitions.get_mut(index) else { return };
        if let Some(key) = of.number(hash, 0, key, self.alternatives) {
            self.released.push((at, Event { partition, key, cost }));
        }
    }

    /// Decides what was released or pushed.
    pub(crate) fn decide(&mut self) {
        let (released, alternatives) = (&self.released, self.alternatives);
        let mut partitions: Vec<_> = (0..).zip(&mut self.partitions).collect();
        each(&mut partitions, |(mine, partition)| partition.decide(*mine, released, alternatives));
        for value in [self.released.first(), self.released.last()].into_iter().flatten() {
            widen(&mut self.span, value.0);
        }
        self.released.clear();
    }

    /// Decides all that is left.
    pub(crate) fn finish(&mut self) {
        self.order.finish(&mut self.released);
        self.decide();
    }

    /// The numbers of all keys of some blocks, by partition and block.
    fn number(&mut self, blocks: &[Plains]) -> Vec<Vec<Vec<Option<u32>>>> {
        let alternatives = self.alternatives;
        let mut works: Vec<_> = (0..)
            .zip(&mut self.partitions)
            .map(|(place, partition)| Numbering { partition, place, numbers: Vec::new() })
            .collect();
        each(&mut works, |work| {
            for block in blocks {
                let plains = block.parts.get(work.place).map_or(&[][..], Vec::as_slice);
                let number = |plain| {
                    let key = block.key(plain);
                    work.partition.number(plain.hash, plain.policy, key, alternatives)
                };
                work.numbers.push(plains.iter().map(number).collect());
            }
        });
        works.into_iter().map(|work| work.numbers).collect()
    }
}
