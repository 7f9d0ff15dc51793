//! Runs a replay, from the first block of a log to the report.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tollgate::Micros;

use crate::decide::{
    BATCH, CandidateStore, DecisionRecord, Event, ParallelReplay, Partition, Summary, TimedRequest,
    decide_sequentially,
};
use crate::error::ReplayError;
use crate::generate::{Traffic, key_of};
use crate::order::Order;
use crate::read::{Log, LogLines, PlainChecks, Progress, hash, read_requests};
use crate::report::{Report, Source, Span, extend_span};
use crate::request::{Candidate, LogCheck, LogRequest, RequestExtractor};
use crate::threads::for_each;

/// The settings of a replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of threads, of which one per core runs at a time; each decides some of the keys.
    pub threads: usize,
    /// How late a line may be and still be sorted into its place.
    pub reorder: Micros,
    /// Whether times with a resolution of one second are spread evenly over their second.
    pub spread: bool,
    /// Whether the first invalid line ends the replay.
    pub strict: bool,
    /// How many of the most denied keys are listed.
    pub worst: usize,
    /// The share of keys that a suggestion may deny, in millionths. With it, all requests are kept,
    /// 24 bytes each.
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
#[expect(missing_debug_implementations, reason = "a callback has no text form")]
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

impl<'a> Replay<'a> {
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
        let mut keys = self.parallel_replay(Order::new(self.options.reorder, self.options.spread));
        let mut lines = LogLines::new(log, self.options.strict);
        while !self.is_stopped() {
            let blocks = lines.blocks(threads * BLOCKS, self.stop)?;
            if blocks.is_empty() {
                break;
            }
            let mut checks = std::mem::take(&mut keys.free);
            checks.resize_with(blocks.len(), PlainChecks::default);
            let parts = keys.parts();
            let mut tasks: Vec<_> = blocks.into_iter().zip(checks).collect();
            let unread = Mutex::new(tasks.iter_mut());
            // One thread puts the checks of the previous blocks in order, while others read.
            let ordering = std::iter::once(Some(&mut keys));
            let others = std::iter::repeat_with(|| None).take(threads - 1);
            for_each(&mut ordering.chain(others).collect::<Vec<_>>(), |keys| {
                if let Some(keys) = keys {
                    keys.put_in_order();
                }
                loop {
                    let next = unread.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(((block, reader), checks)) = next else { break };
                    checks.read(reader, block.bytes(), extractor, parts);
                }
            });
            let mut reads = Vec::with_capacity(tasks.len());
            for ((block, _), mut checks) in tasks {
                lines.count(&block, std::mem::take(&mut checks.counts))?;
                reads.push(checks);
            }
            keys.take(reads);
            self.check_key_count(&keys.partitions)?;
            (self.progress)(lines.progress());
        }
        keys.finish();
        let source = self.finished_source(lines.source, &keys.order, keys.span);
        Ok(self.summary(keys.partitions, source))
    }

    /// Replays synthetic traffic, on several threads.
    ///
    /// # Errors
    /// There are too many keys.
    pub fn synthetic(self, traffic: &Traffic, name: String) -> Result<Report, ReplayError> {
        let mut keys = self.parallel_replay(Order::new(Micros::ZERO, false));
        let mut requests = traffic.events();
        let mut so_far = Progress::default();
        while !self.is_stopped() {
            let mut taken = 0;
            for request in requests.by_ref().take(BATCH) {
                let key = key_of(request.key);
                keys.push(request.at, key.as_bytes(), hash(key.as_bytes(), 0));
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
        let source = Source { names: vec![name], ..Source::default() };
        let source = self.finished_source(source, &keys.order, keys.span);
        Ok(self.summary(keys.partitions, source))
    }

    /// Replays a log sequentially: a store decides each request for each candidate, and `output`
    /// gets each decision in the order of the log.
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
        let mut order: Order<u64> = Order::new(self.options.reorder, self.options.spread);
        let mut lines = LogLines::new(log, self.options.strict);
        let mut partition = Partition::new(self.candidates.len(), self.options.suggest.is_some());
        // The requests that wait until no earlier request can arrive, by the number of their line.
        let mut waiting: BTreeMap<u64, LogRequest> = BTreeMap::new();
        let (mut released, mut span) = (Vec::new(), None);
        let mut is_finished = false;
        while !is_finished {
            let blocks = match self.is_stopped() {
                true => Vec::new(),
                false => lines.blocks(1, self.stop)?,
            };
            is_finished = blocks.is_empty();
            for (block, mut reader) in blocks {
                let (counts, read) =
                    read_requests(&mut reader, block.bytes(), extractor, lines.rows);
                lines.count(&block, counts)?;
                for (stamp, number, request) in read {
                    order.push(stamp, number);
                    waiting.insert(number, request);
                }
            }
            if is_finished {
                order.finish();
            }
            order.release(&mut released);
            for (at, number) in released.drain(..) {
                let Some(request) = waiting.remove(&number) else {
                    unreachable!("each line is released once");
                };
                extend_span(&mut span, at);
                let number_of = |check: &LogCheck| {
                    let hash = hash(&check.key, check.policy);
                    partition.number(hash, check.policy, &check.key, self.candidates)
                };
                let keys: Option<Vec<u32>> = request.checks.iter().map(number_of).collect();
                let keys = keys.ok_or(ReplayError::TooManyKeys)?;
                let complete_before = waiting.keys().next().copied().unwrap_or(lines.rows);
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
        let source = self.finished_source(lines.source, &order, span);
        Ok(self.summary(vec![partition], source))
    }

    fn parallel_replay(&self, order: Order<Event>) -> ParallelReplay<'a> {
        let Options { threads, suggest, .. } = self.options;
        ParallelReplay::new(self.candidates, order, threads, suggest.is_some())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A source with the results of its order.
    fn finished_source<T: Copy>(&self, source: Source, order: &Order<T>, span: Span) -> Source {
        let (late, spread) = (order.late(), order.has_spread());
        Source { interrupted: self.is_stopped(), late, spread, span, ..source }
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

/// The number of blocks of a round, for each thread. Reading a block takes about two milliseconds.
const BLOCKS: usize = 4;
