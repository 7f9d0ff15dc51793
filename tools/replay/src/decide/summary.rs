//! Merges partitions into a report.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tollgate::{Micros, Timestamp};
use tollgate_algorithms::KeyState;

use super::partition::{Column, Keys, MAX_DECISIONS, Partition, Tally, WINDOWS};
use super::suggest::{KeyTrace, suggest, take_traces};
use crate::convert::{index, to_u64};
use crate::report::{
    Amount, Bins, Denial, Outcome, Peaks, Report, RequestOutcome, Source, Suggestion, WorstKey,
};
use crate::request::Candidate;
use crate::threads::for_each;

pub(crate) struct Summary<'a> {
    pub(crate) candidates: &'a [Candidate],
    /// How many of the most denied keys are listed.
    pub(crate) worst: usize,
    /// The share of keys that a suggestion may deny, in millionths.
    pub(crate) suggest: Option<u32>,
    pub(crate) threads: usize,
}

#[derive(Default)]
struct Part {
    offered: Amount,
    keys: u64,
    histograms: Histograms,
    columns: Vec<CandidatePart>,
}

#[derive(Default)]
struct CandidatePart {
    admitted: Amount,
    denied: Amount,
    keys_denied: u64,
    worst: Vec<WorstKey>,
    longest: Option<Denial>,
    bytes: u64,
}

impl CandidatePart {
    fn add(&mut self, other: CandidatePart) {
        self.admitted.add_all(other.admitted);
        self.denied.add_all(other.denied);
        self.keys_denied += other.keys_denied;
        self.worst.extend(other.worst);
        let rank = |denial: &Denial| (denial.length, Reverse(denial.key.clone()));
        let longest = self.longest.take().into_iter().chain(other.longest);
        self.longest = longest.reduce(|one, two| if rank(&one) < rank(&two) { two } else { one });
        self.bytes += other.bytes;
    }
}

impl Summary<'_> {
    pub(crate) fn report(&self, mut partitions: Vec<Partition>, source: Source) -> Report {
        let mut parts: Vec<_> =
            partitions.iter_mut().map(|partition| (partition, Part::default())).collect();
        for_each(&mut parts, |(partition, part)| *part = self.part(partition));
        let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();

        let mut whole = Part::default();
        whole.columns.resize_with(self.candidates.len(), CandidatePart::default);
        for part in parts {
            whole.offered.add_all(part.offered);
            whole.keys += part.keys;
            whole.histograms.add_all(part.histograms);
            for (column, more) in whole.columns.iter_mut().zip(part.columns) {
                column.add(more);
            }
        }
        let Part { offered, keys, histograms, columns } = whole;
        let bins = partitions.iter().map(|partition| partition.bins.clone()).collect();
        let bins = Bins::sum(bins, self.candidates.len() + 1);
        let traces: Vec<KeyTrace> = partitions.iter_mut().flat_map(take_traces).collect();
        let outcome = |(place, (candidate, part)): (usize, (&Candidate, CandidatePart))| Outcome {
            admitted_over_time: bins.column(place + 1),
            suggestion: self.suggestion(candidate, &traces),
            decisions: decisions(partitions.iter().map(|partition| &partition.columns[place])),
            // No key, no bytes.
            bytes_per_key: part.bytes.checked_div(keys).unwrap_or(0),
            ..self.outcome(candidate, part)
        };
        let outcomes = self.candidates.iter().zip(columns).enumerate().map(outcome).collect();
        let peaks = if keys == 0 { Vec::new() } else { histograms.peaks() };
        Report { source, offered, keys, timeline: bins.timeline(), outcomes, peaks }
    }

    fn suggestion(&self, candidate: &Candidate, traces: &[KeyTrace]) -> Option<Suggestion> {
        suggest(candidate.fixed_policy()?, traces, self.suggest?, self.threads)
    }

    fn outcome(&self, candidate: &Candidate, part: CandidatePart) -> Outcome {
        let mut worst = part.worst;
        worst.sort_by(|one, other| {
            let by_cost = other.denied.cost.cmp(&one.denied.cost);
            by_cost.then_with(|| (&one.key, &one.policy).cmp(&(&other.key, &other.policy)))
        });
        worst.truncate(self.worst);
        Outcome {
            name: candidate.name.clone(),
            limits: candidate.fixed_policy().map_or_else(Vec::new, |only| only.limits().to_vec()),
            admitted: part.admitted,
            denied: part.denied,
            keys_denied: part.keys_denied,
            worst,
            longest_denial: part.longest,
            ..Outcome::default()
        }
    }

    fn part(&self, partition: &mut Partition) -> Part {
        let mut part = Part { offered: partition.offered, ..Part::default() };
        for (number, tally) in (0_u32..).zip(&partition.tallies) {
            // After an interruption, some keys were read but never decided.
            if tally.total.requests > 0 {
                part.keys += 1;
                part.histograms.add(tally, partition.keys.get(number).1);
            }
        }
        let Partition { keys, tallies, columns, .. } = partition;
        let columns = columns.iter_mut().zip(self.candidates);
        part.columns = columns
            .map(|(column, candidate)| self.column(column, candidate, keys, tallies))
            .collect();
        part
    }

    fn column(
        &self,
        column: &mut Column,
        candidate: &Candidate,
        keys: &Keys,
        tallies: &[Tally],
    ) -> CandidatePart {
        // A min-heap of the worst keys: most denied first, then by name.
        let mut worst = BinaryHeap::new();
        let mut longest: Option<Denial> = None;
        for (number, denials) in &mut column.denials {
            denials.end(denials.last);
            let key = keys.get(*number).1;
            let (start, length) = denials.longest;
            let rank = (length, Reverse(key));
            if longest
                .as_ref()
                .is_none_or(|longest| (longest.length.get(), Reverse(&*longest.key)) < rank)
            {
                let (start, length) = (Timestamp::from_micros(start), Micros::new(length));
                longest = Some(Denial { key: key.to_vec(), start, length });
            }
            worst.push(Reverse((denials.amount.cost, Reverse(key), *number)));
            if worst.len() > self.worst {
                worst.pop();
            }
        }
        let worst_key =
            |Reverse((_, Reverse(key), number)): Reverse<(u64, Reverse<&[u8]>, u32)>| {
                let denials = column.denials.get(&number)?;
                let tally = &tallies[index(number)];
                Some(WorstKey {
                    key: key.to_vec(),
                    policy: candidate.policy_name(keys.get(number).0).map(str::to_owned),
                    offered: tally.total,
                    denied: denials.amount,
                    first_denied: Timestamp::from_micros(denials.first),
                    longest_denial: Micros::new(denials.longest.1),
                })
            };
        let bytes = |state: &KeyState| to_u64(size_of_val(state) + state.heap_bytes());
        CandidatePart {
            admitted: column.admitted,
            denied: column.denied,
            keys_denied: to_u64(column.denials.len()),
            worst: worst.into_iter().filter_map(worst_key).collect(),
            longest,
            bytes: column.states.iter().map(bytes).sum(),
        }
    }
}

/// The decisions of all partitions in the order of time, if there are few enough.
fn decisions<'a>(columns: impl Iterator<Item = &'a Column>) -> Vec<RequestOutcome> {
    let all: Option<Vec<&[RequestOutcome]>> =
        columns.map(|column| column.decisions.as_deref()).collect();
    let Some(all) = all else { return Vec::new() };
    let mut all = all.concat();
    if all.len() > MAX_DECISIONS {
        return Vec::new();
    }
    all.sort_by_key(|decision| decision.time);
    all
}

/// The distribution of peaks over many keys.
#[derive(Default)]
struct Histograms {
    by_cost: [BTreeMap<u64, u64>; WINDOWS.len()],
    highest: [Option<(u64, Vec<u8>)>; WINDOWS.len()],
}

impl Histograms {
    fn add(&mut self, tally: &Tally, key: &[u8]) {
        let rows = self.by_cost.iter_mut().zip(&mut self.highest).zip(tally.peaks);
        for ((by_cost, highest), peak) in rows {
            let peak = u64::from(peak);
            *by_cost.entry(rounded(peak)).or_default() += 1;
            if highest.as_ref().is_none_or(|(most, of)| (peak, &**of) > (*most, key)) {
                *highest = Some((peak, key.to_vec()));
            }
        }
    }

    fn add_all(&mut self, other: Histograms) {
        for (ours, theirs) in self.by_cost.iter_mut().zip(other.by_cost) {
            for (cost, keys) in theirs {
                *ours.entry(cost).or_default() += keys;
            }
        }
        for (ours, theirs) in self.highest.iter_mut().zip(other.highest) {
            // For equal peaks the first key by name, as within a partition.
            *ours = ours
                .take()
                .into_iter()
                .chain(theirs)
                .max_by(|one, other| one.0.cmp(&other.0).then_with(|| other.1.cmp(&one.1)));
        }
    }

    fn peaks(self) -> Vec<Peaks> {
        let rows = WINDOWS.iter().zip(self.by_cost).zip(self.highest);
        rows.map(|((window, by_cost), highest)| {
            // The last bucket is rounded up too, but no peak exceeds the highest.
            let most = highest.as_ref().map_or(u64::MAX, |highest| highest.0);
            let keys_by_cost = by_cost.into_iter().map(|(cost, keys)| (cost.min(most), keys));
            let keys_by_cost = keys_by_cost.collect();
            Peaks { window: Micros::from_secs(*window), keys_by_cost, highest }
        })
        .collect()
    }
}

/// Rounds a cost above 1,024 up to a 64th of the power of two below it.
fn rounded(cost: u64) -> u64 {
    if cost <= 1_024 {
        return cost;
    }
    let step = 1 << (cost.ilog2() - 6);
    cost.div_ceil(step) * step
}
