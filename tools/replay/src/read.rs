//! Reads logs: the blocks of their lines, the request of each line, and the lines that are skipped.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use foldhash::fast::FixedState;

use crate::convert::{index, to_u32};
use crate::error::ReplayError;
use crate::input::{Block, FileHead, Input, InputError, MAX_LINE_LEN, Part, TooLong, split_lines};
use crate::log::{Fields, Format, Line, LineError, Reader, Stamp, printable};
use crate::report::{InvalidLine, Source};
use crate::request::{LogRequest, RequestExtractor, Skip};

/// A log and the format of its lines.
#[derive(Debug)]
pub struct Log {
    input: Input,
    format: Option<Format>,
    fields: Fields,
    /// The first block, if it was read for the detection of operations.
    first: Option<Part>,
}

impl Log {
    /// The log in `input`. Without a format, the format of each file is detected; `fields` maps the
    /// names of fields.
    pub fn new(input: Input, format: Option<Format>, fields: Fields) -> Self {
        Log { input, format, fields, first: None }
    }

    /// Whether the first lines, or the header, contain operations.
    ///
    /// # Errors
    /// The first file cannot be read, or its format is unknown.
    pub fn has_operations(&mut self, stop: &AtomicBool) -> Result<bool, ReplayError> {
        self.first = self.input.next_unless(stop).transpose().map_err(ReplayError::Input)?;
        let Some(Part::Lines(block)) = &self.first else { return Ok(false) };
        let mut reader = self.reader(&block.beginning)?;
        Ok(block.lines().take(DETECTION_LINES).any(
            |(_, line)| matches!(reader.read(line), Ok(Some(line)) if line.field("verb").is_some()),
        ))
    }

    fn reader(&self, head: &FileHead) -> Result<Reader, ReplayError> {
        Reader::open(self.format, &head.lines, &self.fields)
            .map_err(|error| ReplayError::UnknownFormat(head.name.to_string(), error))
    }

    fn next(&mut self, stop: &AtomicBool) -> Option<Result<Part, InputError>> {
        self.first.take().map(Ok).or_else(|| self.input.next_unless(stop))
    }
}

/// How many lines are searched for operations.
const DETECTION_LINES: usize = 100;

/// The progress of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines or requests so far.
    pub lines: u64,
    /// Bytes of the files on disk so far.
    pub bytes: u64,
    /// The size of the files on disk, if it is known.
    pub total: Option<u64>,
}

/// The blocks of a log, and the counts of its lines so far.
pub(crate) struct LogLines {
    log: Log,
    strict: bool,
    /// The start of the current file, and its reader.
    reader: Option<(Arc<FileHead>, Reader)>,
    /// The number of lines of all files, including empty ones.
    pub(crate) rows: u64,
    /// Whether reading has ended, possibly before the end of the log.
    is_over: bool,
    pub(crate) source: Source,
}

impl LogLines {
    pub(crate) fn new(log: Log, strict: bool) -> Self {
        LogLines { log, strict, reader: None, rows: 0, is_over: false, source: Source::default() }
    }

    /// The next blocks with their readers; empty at the end.
    pub(crate) fn blocks(
        &mut self,
        max: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<(Block, Reader)>, ReplayError> {
        let mut blocks = Vec::new();
        while blocks.len() < max && !self.is_over {
            match self.log.next(stop) {
                None => break,
                Some(Err(error)) if self.rows == 0 && blocks.is_empty() => {
                    return Err(ReplayError::Input(error));
                }
                // The part before the error is still reported.
                Some(Err(error)) => {
                    self.source.failed = Some(error.to_string());
                    self.is_over = true;
                }
                Some(Ok(Part::TooLong(too_long))) => self.too_long(&too_long)?,
                Some(Ok(Part::Lines(block))) => {
                    let reader = self.reader(&block.beginning)?;
                    blocks.push((block, reader));
                }
            }
        }
        Ok(blocks)
    }

    fn reader(&mut self, head: &Arc<FileHead>) -> Result<Reader, ReplayError> {
        match &self.reader {
            Some((beginning, reader)) if beginning.file == head.file => Ok(reader.clone()),
            _ => {
                let reader = self.log.reader(head)?;
                self.source.names.push(head.name.to_string());
                self.source.format.get_or_insert(reader.format.name());
                self.reader = Some((head.clone(), reader.clone()));
                Ok(reader)
            }
        }
    }

    pub(crate) fn count(&mut self, block: &Block, counts: Counts) -> Result<(), ReplayError> {
        self.rows += counts.rows;
        self.source.lines += counts.lines;
        self.source.invalid += counts.invalid;
        self.source.keyless += counts.keyless;
        self.source.unruled += counts.unruled;
        for (row, text, reason) in counts.samples {
            let name = block.beginning.name.to_string();
            self.sample(InvalidLine { name, line: block.first_line + row - 1, text, reason })?;
        }
        Ok(())
    }

    fn too_long(&mut self, line: &TooLong) -> Result<(), ReplayError> {
        self.rows += 1;
        self.source.lines += 1;
        self.source.invalid += 1;
        let name = line.name.to_string();
        let reason = LineError::TooLong(MAX_LINE_LEN).to_string();
        self.sample(InvalidLine { name, line: line.line, text: printable(&line.beginning), reason })
    }

    fn sample(&mut self, sample: InvalidLine) -> Result<(), ReplayError> {
        if self.strict {
            return Err(ReplayError::Strict(sample));
        }
        if self.source.invalid_samples.len() < MAX_SAMPLES {
            self.source.invalid_samples.push(sample);
        }
        Ok(())
    }

    pub(crate) fn progress(&self) -> Progress {
        let input = self.log.input.progress();
        Progress { lines: self.source.lines, bytes: input.read(), total: input.total }
    }
}

/// How many invalid lines are reported.
const MAX_SAMPLES: usize = 5;

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
    fn skip(&mut self, line: &[u8], reason: Skip) {
        match reason {
            Skip::NoRule => self.unruled += 1,
            Skip::NoKey => self.keyless += 1,
            Skip::Invalid(reason) => {
                self.invalid += 1;
                if self.samples.len() < MAX_SAMPLES {
                    self.samples.push((self.rows, printable(line), reason));
                }
            }
        }
    }
}

/// Calls `each` with every valid line of a block, and counts the lines that are skipped.
fn for_each_line(
    reader: &mut Reader,
    block: &[u8],
    counts: &mut Counts,
    mut each: impl FnMut(&Line<'_>, &Counts) -> Result<(), Skip>,
) {
    for line in split_lines(block) {
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
        for_each_line(reader, block, counts, |line, _| {
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

    pub(crate) fn key(&self, check: &UnnumberedCheck) -> &[u8] {
        let length = index(check.length);
        &self.keys[check.start..check.start + length]
    }
}

pub(crate) fn hash(key: &[u8], policy: u32) -> u64 {
    FixedState::with_seed(u64::from(policy)).hash_one(key)
}

/// The partition of a key, from the upper half of its hash; all partitions are equally likely.
pub(crate) fn part_of(hash: u64, parts: u32) -> u32 {
    let half = hash >> 32;
    to_u32((half * u64::from(parts)) >> 32)
}

/// Reads the requests of a block, each with the number of its line; `first` is that of the first
/// line.
pub(crate) fn read_requests(
    reader: &mut Reader,
    block: &[u8],
    extractor: &dyn RequestExtractor,
    first: u64,
) -> (Counts, Vec<(Stamp, u64, LogRequest)>) {
    let (mut counts, mut requests) = (Counts::default(), Vec::new());
    for_each_line(reader, block, &mut counts, |line, counts| {
        let number = first + counts.rows - 1;
        requests.push((line.time, number, extractor.request(line, number)?));
        Ok(())
    });
    (counts, requests)
}
