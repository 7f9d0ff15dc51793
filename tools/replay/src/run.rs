//! From the first block of a log to the report.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::{Micros, Timestamp};

use crate::ask::{Ask, Asked, AskedCheck};
use crate::decide::{
    Alternative, Answered, ByKey, Partition, Requested, Store, Summary, decide_together,
};
use crate::each_on;
use crate::generate::{Traffic, key_of};
use crate::input::{Beginning, Block, Input, InputError, MAX_LINE_LEN, Part, TooLong};
use crate::log::{BrokenLine, Fields, Format, OpenError, Reader, shown};
use crate::order::Order;
use crate::read::{Counts, Plains, Requests, SAMPLES, hash};
use crate::report::{BrokenSample, Report, Source};

/// How a log is gone through.
#[derive(Clone, Debug)]
pub struct Options {
    /// On how many threads; of keys that are independent, each decides some.
    pub threads: usize,
    /// How late a line may be to be put in order.
    pub reorder: Micros,
    /// Whether stamps of whole seconds are spread evenly over their second.
    pub spread: bool,
    /// Whether the first line that cannot be read ends it.
    pub strict: bool,
    /// How many of the keys denied most are named.
    pub worst: usize,
    /// The share of keys that may be denied by what is suggested, in millionths; then all requests are
    /// kept, 24 bytes each.
    pub suggest: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let reorder = Micros::from_secs(60);
        Options { threads, reorder, spread: true, strict: false, worst: 5, suggest: None }
    }
}

/// A log, and what its lines are.
#[derive(Debug)]
pub struct Log {
    input: Input,
    format: Option<Format>,
    fields: Fields,
    /// What was read to look at, and is yet to be gone through.
    first: Option<Part>,
}

impl Log {
    /// What `input` reads. Without a format each file's is recognized; `fields` says where the parts
    /// of a line stand.
    #[must_use]
    pub fn new(input: Input, format: Option<Format>, fields: Fields) -> Self {
        Log { input, format, fields, first: None }
    }

    /// Whether its first lines, or the header before them, have verbs.
    ///
    /// # Errors
    /// The first file cannot be read, or is no log.
    pub fn has_verbs(&mut self, stop: &AtomicBool) -> Result<bool, ReplayError> {
        self.first = self.input.next_unless(stop).transpose().map_err(ReplayError::Input)?;
        let Some(Part::Lines(block)) = &self.first else { return Ok(false) };
        let beginning = block.beginning();
        let mut reader = Reader::open(self.format, &beginning.lines, &self.fields)
            .map_err(|error| ReplayError::NoLog(beginning.name.to_string(), error))?;
        Ok(block.lines().take(LOOKED_AT).any(
            |(_, line)| matches!(reader.read(line), Ok(Some(line)) if line.field("verb").is_some()),
        ))
    }

    fn next(&mut self, stop: &AtomicBool) -> Option<Result<Part, InputError>> {
        self.first.take().map(Ok).or_else(|| self.input.next_unless(stop))
    }
}

/// How many lines are looked at for verbs.
const LOOKED_AT: usize = 100;

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines or requests so far.
    pub lines: u64,
    /// Bytes of the files so far, as they are on disk.
    pub bytes: u64,
    /// All bytes of the files, if that is known.
    pub total: Option<u64>,
}

/// What ends a replay without a report.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file cannot be opened or read.
    Input(InputError),
    /// A file is no log that can be read: which, and why.
    NoLog(String, OpenError),
    /// A line cannot be read, and that was not to be.
    Strict(BrokenSample),
    /// There are more keys than can be counted: over four billion.
    TooManyKeys,
    /// What was decided cannot be written.
    Told(std::io::Error),
    /// A store gave no answer, or not to this.
    Store(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Input(input) => input.fmt(f),
            ReplayError::NoLog(name, no_log) => write!(f, "{name}: {no_log}"),
            ReplayError::Strict(BrokenSample { name, line, text, reason }) => {
                write!(f, "{name}:{line}: {reason}\n  {text}")
            }
            ReplayError::TooManyKeys => {
                f.write_str("there are more than four billion keys; replay a part of the log")
            }
            ReplayError::Told(value) => write!(f, "a decision cannot be written: {value}"),
            ReplayError::Store(store) => store.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

/// A replay that can be begun.
pub struct Replay<'a> {
    /// What is tried.
    pub alternatives: &'a [Alternative],
    /// How.
    pub options: Options,
    /// Set by somebody else, it ends the replay with what was found until then.
    pub stop: &'a AtomicBool,
    /// Told now and then how far it has come.
    pub progress: &'a mut dyn FnMut(Progress),
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replay { alternatives, options, stop, progress: _ } = self;
        let mut shown = f.debug_struct("Replay");
        shown.field("alternatives", alternatives).field("options", options).field("stop", stop);
        shown.finish_non_exhaustive()
    }
}

/// What one thread reads at a time.
#[derive(Debug)]
struct Work {
    block: Block,
    reader: Reader,
    read: Plains,
}

impl Replay<'_> {
    /// Goes through a log each of whose lines asks one plain check, on several threads.
    ///
    /// # Errors
    /// A file cannot be read, or is no log; a line cannot be read where that was not to be.
    pub fn by_key(self, log: Log, ask: &dyn Ask) -> Result<Report, ReplayError> {
        let threads = self.options.threads.max(1);
        let order = Order::new(self.options.reorder, self.options.spread);
        let keeps = self.options.suggest.is_some();
        let mut keys = ByKey::new(self.alternatives, order, threads, keeps);
        let mut lines = Lines::new(log, &self.options);
        let mut reads: Vec<Plains> = Vec::new();
        while !self.is_stopped() {
            let blocks = lines.blocks(threads * BLOCKS, self.stop)?;
            if blocks.is_empty() {
                break;
            }
            reads.resize_with(blocks.len(), Plains::default);
            let parts = keys.parts();
            let mut works: Vec<_> = blocks
                .into_iter()
                .zip(reads.drain(..))
                .map(|((block, reader), read)| Work { block, reader, read })
                .collect();
            each_on(threads, &mut works, |x| {
                x.read.read(&mut x.reader, x.block.bytes(), ask, parts);
            });
            for Work { block, mut read, .. } in works {
                lines.count(&block, std::mem::take(&mut read.counts))?;
                reads.push(read);
            }
            keys.take(&reads);
            self.is_countable(&keys.partitions)?;
            (self.progress)(lines.progress());
        }
        keys.finish();
        let mut source = lines.source;
        source.interrupted = self.is_stopped();
        source.late = keys.order.late();
        source.spread = keys.order.has_spread();
        source.span = keys.span;
        Ok(self.summary(keys.partitions, source))
    }

    /// Goes through made-up traffic, on several threads.
    ///
    /// # Errors
    /// There are too many keys.
    pub fn generated(self, traffic: &Traffic, name: String) -> Result<Report, ReplayError> {
        let threads = self.options.threads.max(1);
        let order = Order::new(Micros::ZERO, false);
        let keeps = self.options.suggest.is_some();
        let mut keys = ByKey::new(self.alternatives, order, threads, keeps);
        let mut requests = traffic.events();
        let mut so_far = Progress::default();
        while !self.is_stopped() {
            let mut taken = 0;
            for request in requests.by_ref().take(BATCH) {
                let key = key_of(request.key);
                keys.push(request.at, key.as_bytes(), request.cost, hash(key.as_bytes(), 0));
                taken += 1;
            }
            if taken == 0 {
                break;
            }
            keys.decide();
            self.is_countable(&keys.partitions)?;
            so_far.lines += taken;
            (self.progress)(so_far);
        }
        let interrupted = self.is_stopped();
        let source =
            Source { names: vec![name], interrupted, span: keys.span, ..Source::default() };
        Ok(self.summary(keys.partitions, source))
    }

    /// Goes through a log one request after the other, each decided by a store of each alternative, and
    /// tells each decision in the order of the log.
    ///
    /// Between its decisions it reads the log, which may block.
    ///
    /// # Errors
    /// As [`Replay::by_key`]; or a store gave no answer, or `tell` failed.
    pub async fn together(
        self,
        log: Log,
        ask: &dyn Ask,
        stores: &[Store],
        tell: &mut dyn FnMut(&Answered<'_>) -> std::io::Result<()>,
    ) -> Result<Report, ReplayError> {
        let mut order: Order<u32> = Order::new(self.options.reorder, self.options.spread);
        let mut lines = Lines::new(log, &self.options);
        let mut partition = Partition::new(self.alternatives.len(), self.options.suggest.is_some());
        let mut waiting = Waiting::default();
        let (mut released, mut span) = (Vec::new(), None);
        let mut is_over = false;
        while !is_over {
            let blocks = match self.is_stopped() {
                true => Vec::new(),
                false => lines.blocks(1, self.stop)?,
            };
            is_over = blocks.is_empty();
            for (block, mut reader) in blocks {
                let mut read = Requests::default();
                read.read(&mut reader, block.bytes(), ask, lines.rows);
                lines.count(&block, read.counts)?;
                for (stamp, number, asked) in read.asked {
                    order.push(stamp, waiting.put(number, asked));
                }
            }
            if is_over {
                order.finish(&mut released)
            } else {
                order.release(&mut released)
            }
            for (at, place) in released.drain(..) {
                let Some((number, asked)) = waiting.take(place) else { continue };
                widen(&mut span, at);
                let number_of = |asked_check: &AskedCheck| {
                    let hash = hash(&asked_check.key, asked_check.policy);
                    partition.number(hash, asked_check.policy, &asked_check.key, self.alternatives)
                };
                let keys: Option<Vec<u32>> = asked.checks.iter().map(number_of).collect();
                let keys = keys.ok_or(ReplayError::TooManyKeys)?;
                let settled = waiting.first().unwrap_or(lines.rows);
                let requested = Requested { number, settled, at, asked: &asked, keys: &keys };
                decide_together(stores, self.alternatives, &mut partition, requested, tell).await?;
                if self.is_stopped() {
                    is_over = true;
                    break;
                }
            }
            (self.progress)(lines.progress());
        }
        let mut source = lines.source;
        source.interrupted = self.is_stopped();
        source.late = order.late();
        source.spread = order.has_spread();
        source.span = span;
        Ok(self.summary(vec![partition], source))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_countable(&self, partitions: &[Partition]) -> Result<(), ReplayError> {
        match partitions.iter().any(|partition| partition.lost > 0) {
            true => Err(ReplayError::TooManyKeys),
            false => Ok(()),
        }
    }

    fn summary(&self, partitions: Vec<Partition>, source: Source) -> Report {
        let Options { worst, suggest, threads, .. } = self.options;
        let threads = threads.max(1);
        Summary { alternatives: self.alternatives, worst, suggest, threads }
            .report(partitions, source)
    }
}

/// How many blocks each thread reads before all go on to decide. To begin a thread costs some 20 µs, and to
/// read a block two milliseconds.
const BLOCKS: usize = 4;

/// How many made-up requests are decided at a time.
const BATCH: usize = 65_536;

/// Widens a span to a moment that is not before it.
pub(crate) fn widen(span: &mut Option<(Timestamp, Timestamp)>, at: Timestamp) {
    let (first, _) = span.unwrap_or((at, at));
    *span = Some((first, at));
}

/// Requests that wait until no earlier one can come, by places that are used again.
#[derive(Debug, Default)]
struct Waiting {
    places: Vec<Option<(u64, Asked)>>,
    free: Vec<u32>,
    /// Their numbers.
    numbers: BTreeSet<u64>,
}

impl Waiting {
    fn put(&mut self, number: u64, asked: Asked) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(places) = usize::try_from(place).ok().and_then(|x| self.places.get_mut(x)) {
            *places = Some((number, asked));
        }
        self.numbers.insert(number);
        place
    }

    /// The lowest number of those that wait.
    fn first(&self) -> Option<u64> {
        self.numbers.first().copied()
    }

    fn take(&mut self, place: u32) -> Option<(u64, Asked)> {
        self.free.push(place);
        let taken = self.places.get_mut(usize::try_from(place).ok()?)?.take();
        if let Some((number, _)) = &taken {
            self.numbers.remove(number);
        }
        taken
    }
}

/// Blocks of lines, and what is known of the lines until now.
#[derive(Debug)]
struct Lines {
    log: Log,
    strict: bool,
    /// The reader of the file that is read, and how that begins.
    reader: Option<(Arc<Beginning>, Reader)>,
    /// How many lines of all files were read, with empty ones.
    rows: u64,
    /// No more is read, though there may be more.
    is_over: bool,
    source: Source,
}

impl Lines {
    fn new(log: Log, options: &Options) -> Self {
        let source = Source::default();
        Lines { log, strict: options.strict, reader: None, rows: 0, is_over: false, source }
    }

    /// The next blocks, each with a reader; none at the end.
    fn blocks(
        &mut self,
        most: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<(Block, Reader)>, ReplayError> {
        let mut blocks = Vec::new();
        while blocks.len() < most && !self.is_over {
            match self.log.next(stop) {
                None => break,
                Some(Err(error)) if self.rows == 0 && blocks.is_empty() => {
                    return Err(ReplayError::Input(error));
                }
                // What was read is not thrown away.
                Some(Err(error)) => {
                    self.source.failed = Some(error.to_string());
                    self.is_over = true;
                }
                Some(Ok(Part::TooLong(too_long))) => self.too_long(&too_long)?,
                Some(Ok(Part::Lines(block))) => {
                    let reader = self.reader(block.beginning())?;
                    blocks.push((block, reader));
                }
            }
        }
        Ok(blocks)
    }

    fn reader(&mut self, of: &Arc<Beginning>) -> Result<Reader, ReplayError> {
        match &self.reader {
            Some((beginning, reader)) if beginning.file == of.file => Ok(reader.clone()),
            _ => {
                let reader = Reader::open(self.log.format, &of.lines, &self.log.fields)
                    .map_err(|error| ReplayError::NoLog(of.name.to_string(), error))?;
                self.source.names.push(of.name.to_string());
                self.source.format.get_or_insert(reader.format().name());
                self.reader = Some((of.clone(), reader.clone()));
                Ok(reader)
            }
        }
    }

    /// Counts the lines of the next block.
    fn count(&mut self, block: &Block, counts: Counts) -> Result<(), ReplayError> {
        self.rows += counts.rows;
        self.source.lines += counts.lines;
        self.source.broken += counts.broken;
        self.source.keyless += counts.keyless;
        self.source.unruled += counts.unruled;
        for (row, text, reason) in counts.samples {
            let name = block.beginning().name.to_string();
            self.sample(BrokenSample { name, line: block.first_line() + row - 1, text, reason })?;
        }
        Ok(())
    }

    fn too_long(&mut self, it: &TooLong) -> Result<(), ReplayError> {
        self.rows += 1;
        self.source.lines += 1;
        self.source.broken += 1;
        let name = it.name.to_string();
        let reason = BrokenLine::TooLong { most: MAX_LINE_LEN }.to_string();
        self.sample(BrokenSample { name, line: it.line, text: shown(&it.beginning), reason })
    }

    fn sample(&mut self, sample: BrokenSample) -> Result<(), ReplayError> {
        if self.strict {
            return Err(ReplayError::Strict(sample));
        }
        if self.source.broken_samples.len() < SAMPLES {
            self.source.broken_samples.push(sample);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        let of = self.log.input.progress();
        Progress { lines: self.source.lines, bytes: of.read(), total: of.total() }
    }
}
