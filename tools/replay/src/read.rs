//! Reads blocks of lines on several threads: the request of each line, and the lines that are skipped.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use memchr::memchr;

use crate::convert::{index, to_u32};
use crate::log::{Line, Reader, Stamp, printable};
use crate::request::{LogRequest, RequestExtractor, Skip};

/// How many invalid lines are reported.
pub(crate) const MAX_SAMPLES: usize = 5;

/// The counts of the lines of a block.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// All lines, including empty ones.
    pub(crate) rows: u64,
    /// The lines that are not empty.
    pub(crate) lines: u64,
    pub(crate) invalid: u64,
    /// The first invalid lines: the number in the block, the beginning, and the reason.
    pub(crate) samples: Vec<(u64, String, String)>,
    pub(crate) keyless: u64,
    pub(crate) unruled: u64,
}

impl Counts {
    fn invalid(&mut self, line: &[u8], reason: String) {
        self.invalid += 1;
        if self.samples.len() < MAX_SAMPLES {
            self.samples.push((self.rows, printable(line), reason));
        }
    }

    fn skip(&mut self, line: &[u8], reason: Skip) {
        match reason {
            Skip::NoRule => self.unruled += 1,
            Skip::NoKey => self.keyless += 1,
            Skip::Invalid(message) => self.invalid(line, message),
        }
    }
}

/// Calls `each` with every valid line of a block, and counts the lines that are skipped.
fn lines(
    reader: &mut Reader,
    block: &[u8],
    counts: &mut Counts,
    mut each: impl FnMut(&Line<'_>, &Counts) -> Result<(), Skip>,
) {
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        counts.rows += 1;
        let result = match reader.read(line) {
            Ok(None) => continue,
            Ok(Some(line)) => each(&line, counts),
            Err(error) => Err(Skip::Invalid(error.to_string())),
        };
        counts.lines += 1;
        if let Err(reason) = result {
            counts.skip(line, reason);
        }
    }
}

/// The check of a line whose key has no number yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnnumberedCheck {
    pub(crate) hash: u64,
    pub(crate) cost: u64,
    pub(crate) policy: u32,
    /// The position of the key among the keys of the block.
    length: u32,
    start: usize,
}

/// The checks of a block whose lines make one plain check each.
#[derive(Debug, Default)]
pub(crate) struct PlainChecks {
    pub(crate) counts: Counts,
    /// The time and the partition of each check, in the order of the lines.
    pub(crate) order: Vec<(Stamp, u32)>,
    /// The checks by partition.
    pub(crate) parts: Vec<Vec<UnnumberedCheck>>,
    keys: Vec<u8>,
}

impl PlainChecks {
    /// Reads a block.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader,
        block: &[u8],
        extractor: &dyn RequestExtractor,
        parts: u32,
    ) {
        let PlainChecks { counts, order, parts: into, keys } = self;
        *counts = Counts::default();
        order.clear();
        keys.clear();
        into.resize_with(index(parts), Vec::new);
        into.iter_mut().for_each(Vec::clear);
        lines(reader, block, counts, |line, _| {
            let start = keys.len();
            let check = extractor.check(line, keys).inspect_err(|_| keys.truncate(start))?;
            let hash = hash(&keys[start..], check.policy);
            let partition = part_of(hash, parts);
            let unnumbered = UnnumberedCheck {
                hash,
                cost: check.cost.get(),
                policy: check.policy,
                start,
                length: to_u32(keys.len() - start),
            };
            into[index(partition)].push(unnumbered);
            order.push((line.time, partition));
            Ok(())
        });
    }

    /// The key of a check.
    pub(crate) fn key(&self, check: &UnnumberedCheck) -> &[u8] {
        let length = index(check.length);
        &self.keys[check.start..check.start + length]
    }
}

/// The hash of a key of a policy.
pub(crate) fn hash(key: &[u8], policy: u32) -> u64 {
    FixedState::with_seed(u64::from(policy)).hash_one(key)
}

/// The partition of a key, from the upper half of its hash; all partitions are equally likely.
pub(crate) fn part_of(hash: u64, parts: u32) -> u32 {
    let half = hash >> 32;
    to_u32((half * u64::from(parts)) >> 32)
}

/// The requests of a block, each with the number of its line.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) counts: Counts,
    pub(crate) requests: Vec<(Stamp, u64, LogRequest)>,
}

impl Requests {
    /// Reads a block; `first` is the number of its first line.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader,
        block: &[u8],
        extractor: &dyn RequestExtractor,
        first: u64,
    ) {
        let Requests { counts, requests } = self;
        lines(reader, block, counts, |line, counts| {
            let number = first + counts.rows - 1;
            requests.push((line.time, number, extractor.request(line, number)?));
            Ok(())
        });
    }
}
