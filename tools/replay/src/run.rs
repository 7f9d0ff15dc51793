//! Runs a replay, from the first block of a log to the report.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::Micros;

use crate::candidate::Candidate;
use crate::convert::{index, to_u32};
use crate::decide::{
    CandidateStore, DecisionRecord, ParallelReplay, Partition, Summary, TimedRequest,
    decide_sequentially,
};
use crate::error::ReplayError;
use crate::generate::{Traffic, key_of};
use crate::input::Block;
use crate::lines::{Log, LogLines, Progress};
use crate::log::Reader;
use crate::order::Order;
use crate::read::{PlainChecks, Requests, hash};
use crate::report::{Report, Source, extend_span};
use crate::request::{LogCheck, LogRequest, RequestExtractor};
use crate::threads::for_each_on;

/// The settings of a replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of threads; each decides some of the keys.
    pub threads: usize,
    /// How late a line may be to be put in order.
    pub reorder: Micros,
    /// Whether times with a resolution of one second are spread evenly over their second.
    pub spread: bool,
    /// Whether the first invalid line ends the replay.
    pub strict: bool,
    /// How many of the most denied keys are listed.
    pub worst: usize,
    /// The share of keys that a suggestion may deny, in millionths. With it, all requests are kept, 24
    /// bytes each.
    pub suggest: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let reorder = Micros::from_secs(60);
        Options { threads, reorder, spread: true, strict: false, worst: 5, suggest: None }
    }
}

/// A replay that is ready to run.
pub struct Replay<'a> {
    /// The candidates.
    pub candidates: &'a [Candidate],
    /// The settings.
    pub options: Options,
    /// Set by another thread to end the replay; the report covers the requests until then.
    pub stop: &'a AtomicBool,
    /// Called with the progress from time to time.
    pub progress: &'a mut dyn FnMut(Progress),
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replay { candidates, options, stop, progress: _ } = self;
        let mut shown = f.debug_struct("Replay");
        shown.field("candidates", candidates).field("options", options).field("stop", stop);
        shown.finish_non_exhaustive()
    }
}

/// The work of one thread.
#[derive(Debug)]
struct ReadTask {
    block: Block,
    reader: Reader,
    checks: PlainChecks,
}

impl Replay<'_> {
    /// Replays a log whose lines make one plain check each, on several threads.
    ///
    /// # Errors
    /// A file cannot be read, its format is unknown, or a line is invalid and the replay is strict.
    pub fn parallel(
        self,
        log: Log,
        extractor: &dyn RequestExtractor,
    ) -> Result<Report, ReplayError> {
        let threads = self.options.threads.max(1);
        let order = Order::new(self.options.reorder, self.options.spread);
        let keeps_trace = self.options.suggest.is_some();
        let mut keys = ParallelReplay::new(self.candidates, order, threads, keeps_trace);
        let mut lines = LogLines::new(log, self.options.strict);
        let mut reads: Vec<PlainChecks> = Vec::new();
        while !self.is_stopped() {
            let blocks = lines.blocks(threads * BLOCKS, self.stop)?;
            if blocks.is_empty() {
                break;
            }
            reads.resize_with(blocks.len(), PlainChecks::default);
            let parts = keys.parts();
            let mut tasks: Vec<_> = blocks
                .into_iter()
                .zip(reads.drain(..))
                .map(|((block, reader), checks)| ReadTask { block, reader, checks })
                .collect();
            for_each_on(threads, &mut tasks, |task| {
                task.checks.read(&mut task.reader, task.block.bytes(), extractor, parts);
            });
            for ReadTask { block, mut checks, .. } in tasks {
                lines.count(&block, std::mem::take(&mut checks.counts))?;
                reads.push(checks);
            }
            keys.take(&reads);
            self.check_key_count(&keys.partitions)?;
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

    /// Replays synthetic traffic, on several threads.
    ///
    /// # Errors
    /// There are too many keys.
    pub fn synthetic(self, traffic: &Traffic, name: String) -> Result<Report, ReplayError> {
        let threads = self.options.threads.max(1);
        let order = Order::new(Micros::ZERO, false);
        let keeps_trace = self.options.suggest.is_some();
        let mut keys = ParallelReplay::new(self.candidates, order, threads, keeps_trace);
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
            self.check_key_count(&keys.partitions)?;
            so_far.lines += taken;
            (self.progress)(so_far);
        }
        let interrupted = self.is_stopped();
        let source =
            Source { names: vec![name], interrupted, span: keys.span, ..Source::default() };
        Ok(self.summary(keys.partitions, source))
    }

    /// Replays a log sequentially: a store decides each request for each candidate, and `output` gets each
    /// decision in the order of the log.
    ///
    /// Reading the log between decisions may block.
    ///
    /// # Errors
    /// Those of [`Replay::parallel`], the store is unavailable, or `output` failed.
    pub async fn sequential(
        self,
        log: Log,
        extractor: &dyn RequestExtractor,
        stores: &[CandidateStore],
        output: &mut dyn FnMut(&DecisionRecord<'_>) -> std::io::Result<()>,
    ) -> Result<Report, ReplayError> {
        let mut order: Order<u32> = Order::new(self.options.reorder, self.options.spread);
        let mut lines = LogLines::new(log, self.options.strict);
        let mut partition = Partition::new(self.candidates.len(), self.options.suggest.is_some());
        let mut waiting = Waiting::default();
        let (mut released, mut span) = (Vec::new(), None);
        let mut is_finished = false;
        while !is_finished {
            let blocks = match self.is_stopped() {
                true => Vec::new(),
                false => lines.blocks(1, self.stop)?,
            };
            is_finished = blocks.is_empty();
            for (block, mut reader) in blocks {
                let mut read = Requests::default();
                read.read(&mut reader, block.bytes(), extractor, lines.rows);
                lines.count(&block, read.counts)?;
                for (stamp, number, request) in read.requests {
                    order.push(stamp, waiting.put(number, request));
                }
            }
            if is_finished {
                order.finish(&mut released)
            } else {
                order.release(&mut released)
            }
            for (at, place) in released.drain(..) {
                let (number, request) = waiting.take(place);
                extend_span(&mut span, at);
                let number_of = |check: &LogCheck| {
                    let hash = hash(&check.key, check.policy);
                    partition.number(hash, check.policy, &check.key, self.candidates)
                };
                let keys: Option<Vec<u32>> = request.checks.iter().map(number_of).collect();
                let keys = keys.ok_or(ReplayError::TooManyKeys)?;
                let complete_before = waiting.first().unwrap_or(lines.rows);
                let timed =
                    TimedRequest { number, complete_before, at, request: &request, keys: &keys };
                decide_sequentially(stores, self.candidates, &mut partition, timed, output).await?;
                if self.is_stopped() {
                    is_finished = true;
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

    fn check_key_count(&self, partitions: &[Partition]) -> Result<(), ReplayError> {
        match partitions.iter().any(|partition| partition.rejected > 0) {
            true => Err(ReplayError::TooManyKeys),
            false => Ok(()),
        }
    }

    fn summary(&self, partitions: Vec<Partition>, source: Source) -> Report {
        let Options { worst, suggest, threads, .. } = self.options;
        let threads = threads.max(1);
        Summary { candidates: self.candidates, worst, suggest, threads }.report(partitions, source)
    }
}

/// How many blocks each thread reads before all threads decide. Starting a thread takes about 20 µs,
/// reading a block two milliseconds.
const BLOCKS: usize = 4;

/// How many synthetic requests are decided at a time.
const BATCH: usize = 65_536;

/// Requests that wait until no earlier request can arrive, in reusable slots.
#[derive(Debug, Default)]
struct Waiting {
    places: Vec<Option<(u64, LogRequest)>>,
    free: Vec<u32>,
    /// The line numbers of the requests.
    numbers: BTreeSet<u64>,
}

impl Waiting {
    fn put(&mut self, number: u64, request: LogRequest) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            to_u32(self.places.len() - 1)
        });
        self.places[index(place)] = Some((number, request));
        self.numbers.insert(number);
        place
    }

    /// The lowest line number.
    fn first(&self) -> Option<u64> {
        self.numbers.first().copied()
    }

    fn take(&mut self, place: u32) -> (u64, LogRequest) {
        self.free.push(place);
        let taken = self.places[index(place)].take();
        let (number, request) = taken.unwrap_or_else(|| unreachable!("a slot is taken once"));
        self.numbers.remove(&number);
        (number, request)
    }
}
