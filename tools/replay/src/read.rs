//! Blocks of lines, read on several threads: what each line asks, and what could not be read.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use memchr::memchr;

use crate::ask::{Ask, Asked, NotAsked};
use crate::log::{Line, Reader, Stamp, shown};

/// How many lines that cannot be read are shown.
pub(crate) const SAMPLES: usize = 5;

/// What was found in the lines of a block, aside of what they ask.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The lines, with the empty ones.
    pub(crate) rows: u64,
    /// The lines, without them.
    pub(crate) lines: u64,
    pub(crate) broken: u64,
    /// The first that are broken: which row of the block, how it begins, and why.
    pub(crate) samples: Vec<(u64, String, String)>,
    pub(crate) keyless: u64,
    pub(crate) unruled: u64,
}

impl Counts {
    fn broken(&mut self, line: &[u8], reason: String) {
        self.broken += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push((self.rows, shown(line), reason));
        }
    }

    fn not_asked(&mut self, line: &[u8], why: NotAsked) {
        match why {
            NotAsked::Nothing => self.unruled += 1,
            NotAsked::NoKey => self.keyless += 1,
            NotAsked::Broken(reason) => self.broken(line, reason),
        }
    }
}

/// Calls back with each line of a block that can be read; what it returns says whether more was
/// wrong with it.
fn lines(
    reader: &mut Reader,
    block: &[u8],
    counts: &mut Counts,
    mut each: impl FnMut(&Line<'_>, &Counts) -> Result<(), NotAsked>,
) {
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        counts.rows += 1;
        let said = match reader.read(line) {
            Ok(None) => continue,
            Ok(Some(reader)) => each(&reader, counts),
            Err(error) => Err(NotAsked::Broken(error.to_string())),
        };
        counts.lines += 1;
        if let Err(why) = said {
            counts.not_asked(line, why);
        }
    }
}

/// A line that asks one plain check, as long as its key has no number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) hash: u64,
    pub(crate) cost: u64,
    pub(crate) policy: u32,
    /// Where its key stands among those of the block.
    length: u32,
    start: usize,
}

/// What a block of lines asks, one plain check each.
#[derive(Debug, Default)]
pub(crate) struct Plains {
    pub(crate) counts: Counts,
    /// When each asks, and of a key of which partition, in their order.
    pub(crate) order: Vec<(Stamp, u32)>,
    /// What each asks, by partition.
    pub(crate) parts: Vec<Vec<Plain>>,
    keys: Vec<u8>,
}

impl Plains {
    /// Reads a block.
    pub(crate) fn read(&mut self, reader: &mut Reader, block: &[u8], ask: &dyn Ask, parts: u32) {
        let Plains { counts, order, parts: into, keys } = self;
        *counts = Counts::default();
        order.clear();
        keys.clear();
        into.resize_with(usize::try_from(parts).unwrap_or(1), Vec::new);
        into.iter_mut().for_each(Vec::clear);
        lines(reader, block, counts, |line, _| {
            let start = keys.len();
            let one = ask.one(line, keys).inspect_err(|_| keys.truncate(start))?;
            let hash = hash(&keys[start..], one.policy);
            let partition = part_of(hash, parts);
            let plain = Plain {
                hash,
                cost: one.cost.get(),
                policy: one.policy,
                start,
                // A key is 64 KiB at most.
                length: u32::try_from(keys.len() - start).unwrap_or(u32::MAX),
            };
            if let Some(part) = usize::try_from(partition).ok().and_then(|x| into.get_mut(x)) {
                part.push(plain);
                order.push((line.time, partition));
            }
            Ok(())
        });
    }

    /// The key of a line.
    pub(crate) fn key(&self, of: &Plain) -> &[u8] {
        let length = usize::try_from(of.length).unwrap_or_default();
        self.keys.get(of.start..of.start.saturating_add(length)).unwrap_or_default()
    }
}

/// The hash of a key of a policy.
pub(crate) fn hash(key: &[u8], policy: u32) -> u64 {
    FixedState::with_seed(u64::from(policy)).hash_one(key)
}

/// The partition of a key: by the upper half of its hash, of which all partitions have the same
/// share.
pub(crate) fn part_of(hash: u64, parts: u32) -> u32 {
    let half = hash >> 32;
    u32::try_from((half * u64::from(parts)) >> 32).unwrap_or_default()
}

/// What a block of lines asks, whatever it is, each with its number in the block.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) counts: Counts,
    pub(crate) asked: Vec<(Stamp, u64, Asked)>,
}

impl Requests {
    /// Reads a block; the first of its lines is the `first`th of all.
    pub(crate) fn read(&mut self, reader: &mut Reader, block: &[u8], ask: &dyn Ask, first: u64) {
        let Requests { counts, asked } = self;
        lines(reader, block, counts, |line, counts| {
            let number = first + counts.rows - 1;
            asked.push((line.time, number, ask.any(line, number)?));
            Ok(())
        });
    }
}
