//! Merges partitions into a report.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::{Micros, Timestamp};

use super::keys::Keys;
use super::partition::{Column, MAX_DECISIONS, Partition};
use super::suggest::{KeyTrace, suggest, take_traces};
use super::tally::{Histograms, Tally};
use crate::candidate::Candidate;
use crate::convert::{index, to_u64};
use crate::report::{
    Amount, Bins, Denial, Outcome, Report, RequestOutcome, Source, Suggestion, WorstKey,
};
use crate::threads::for_each;

/// The settings of a report.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) candidates: &'a [Candidate],
    /// How many of the most denied keys are listed.
    pub(crate) worst: usize,
    /// The share of keys that a suggestion may deny, in millionths.
    pub(crate) suggest: Option<u32>,
    pub(crate) threads: usize,
}

/// The summary of one partition.
#[derive(Debug, Default)]
struct Part {
    keys: u64,
    histograms: Histograms,
    columns: Vec<CandidatePart>,
}

#[derive(Debug, Default)]
struct CandidatePart {
    keys_denied: u64,
    worst: Vec<WorstKey>,
    longest: Option<Denial>,
    bytes: u64,
}

impl Summary<'_> {
    pub(crate) fn report(&self, mut partitions: Vec<Partition>, source: Source) -> Report {
        let mut parts: Vec<_> =
            partitions.iter_mut().map(|partition| (partition, Part::default())).collect();
        for_each(&mut parts, |(partition, part)| *part = self.part(partition));
        let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();

        let (mut keys, mut histograms) = (0, Histograms::default());
        let mut columns: Vec<Vec<CandidatePart>> =
            self.candidates.iter().map(|_| Vec::new()).collect();
        for part in parts {
            keys += part.keys;
            histograms.add_all(part.histograms);
            for (column, of) in columns.iter_mut().zip(part.columns) {
                column.push(of);
            }
        }
        let bins = partitions.iter().map(|partition| partition.bins.clone()).collect();
        let bins = Bins::sum(bins, self.candidates.len() + 1);
        let traces: Vec<KeyTrace> = partitions.iter_mut().flat_map(take_traces).collect();
        let outcomes = self.candidates.iter().zip(columns).enumerate();
        let outcomes = outcomes
            .map(|(place, (candidate, parts))| Outcome {
                admitted_over_time: bins.column(place + 1),
                suggestion: self.suggestion(candidate, &traces),
                ..self.outcome(candidate, place, &partitions, parts, keys)
            })
            .collect();
        let offered = sum(partitions.iter().map(|partition| partition.offered));
        let peaks = if keys == 0 { Vec::new() } else { histograms.peaks() };
        Report { source, offered, keys, timeline: bins.timeline(), outcomes, peaks }
    }

    fn suggestion(&self, candidate: &Candidate, traces: &[KeyTrace]) -> Option<Suggestion> {
        suggest(candidate.fixed_policy()?, traces, self.suggest?, self.threads)
    }

    fn outcome(
        &self,
        candidate: &Candidate,
        place: usize,
        partitions: &[Partition],
        parts: Vec<CandidatePart>,
        keys: u64,
    ) -> Outcome {
        let columns = || partitions.iter().filter_map(|partition| partition.columns.get(place));
        let mut worst: Vec<WorstKey> = Vec::new();
        let (mut keys_denied, mut bytes, mut longest) = (0, 0_u64, None);
        for part in parts {
            keys_denied += part.keys_denied;
            bytes += part.bytes;
            worst.extend(part.worst);
            longest = longer(longest, part.longest);
        }
        worst.sort_by(|one, other| {
            rank(other)
                .cmp(&rank(one))
                .then_with(|| (&one.key, &one.policy).cmp(&(&other.key, &other.policy)))
        });
        worst.truncate(self.worst);
        Outcome {
            name: candidate.name.clone(),
            limits: candidate.fixed_policy().map_or_else(Vec::new, |only| only.limits().to_vec()),
            admitted: sum(columns().map(|column| column.admitted)),
            denied: sum(columns().map(|column| column.denied)),
            keys_denied,
            worst,
            decisions: decisions(columns()),
            longest_denial: longest,
            // No key, no bytes.
            bytes_per_key: bytes.checked_div(keys).unwrap_or(0),
            ..Outcome::default()
        }
    }

    fn part(&self, partition: &mut Partition) -> Part {
        let mut part = Part::default();
        for (number, tally) in (0_u32..).zip(&partition.tallies) {
            // After an interruption, some keys were read but never decided.
            if tally.requests > 0 {
                part.keys += 1;
                part.histograms.add(tally, partition.keys.get(number).1);
            }
        }
        let Partition { keys, tallies, columns, .. } = partition;
        part.columns = columns
            .iter_mut()
            .zip(self.candidates)
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
            denials.end_with_last();
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
                    offered: tally.amount(),
                    denied: denials.amount,
                    first_denied: Timestamp::from_micros(denials.first),
                    longest_denial: Micros::new(denials.longest.1),
                })
            };
        CandidatePart {
            keys_denied: to_u64(column.denials.len()),
            worst: worst.into_iter().filter_map(worst_key).collect(),
            longest,
            bytes: column.states.iter().map(bytes).sum(),
        }
    }
}

fn bytes(state: &tollgate_core::KeyState) -> u64 {
    to_u64(size_of_val(state) + state.heap_bytes())
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

fn rank(worst: &WorstKey) -> u64 {
    worst.denied.cost
}

fn longer(one: Option<Denial>, other: Option<Denial>) -> Option<Denial> {
    let rank = |denial: &Denial| (denial.length, Reverse(denial.key.clone()));
    match (one, other) {
        (Some(one), Some(other)) => Some(if rank(&one) < rank(&other) { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    let mut sum = Amount::default();
    amounts.for_each(|amount| sum.add_all(amount));
    sum
}
