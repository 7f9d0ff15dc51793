//! What partitions found, as one report.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::{Micros, Timestamp};

use super::Alternative;
use super::keys::Keys;
use super::partition::{Column, MAX_DECISIONS, Partition};
use super::suggest::{Asked, asked_by_key, suggest};
use super::tally::{Histograms, Tally};
use crate::each;
use crate::report::{Amount, Bins, Decided, Denial, Outcome, Report, Source, Suggestion, WorstKey};

/// What is summed up, and how.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) alternatives: &'a [Alternative],
    /// How many of the keys denied most are named.
    pub(crate) worst: usize,
    /// The share of keys that may be denied by what is suggested, in millionths.
    pub(crate) suggest: Option<u32>,
    pub(crate) threads: usize,
}

/// What one partition found.
#[derive(Debug, Default)]
struct Part {
    keys: u64,
    histograms: Histograms,
    columns: Vec<PartOfOutcome>,
}

#[derive(Debug, Default)]
struct PartOfOutcome {
    keys_denied: u64,
    worst: Vec<WorstKey>,
    longest: Option<Denial>,
    bytes: u64,
}

impl Summary<'_> {
    pub(crate) fn report(&self, mut partitions: Vec<Partition>, source: Source) -> Report {
        let mut parts: Vec<_> =
            partitions.iter_mut().map(|partition| (partition, Part::default())).collect();
        each(&mut parts, |(partition, part)| *part = self.part(partition));
        let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();

        let (mut keys, mut histograms) = (0, Histograms::default());
        let mut columns: Vec<Vec<PartOfOutcome>> =
            self.alternatives.iter().map(|_| Vec::new()).collect();
        for part in parts {
            keys += part.keys;
            histograms.add_all(part.histograms);
            for (column, of) in columns.iter_mut().zip(part.columns) {
                column.push(of);
            }
        }
        let bins = partitions.iter().map(|partition| partition.bins.clone()).collect();
        let bins = Bins::sum(bins, self.alternatives.len() + 1);
        let asked: Vec<Asked> = partitions.iter_mut().flat_map(asked_by_key).collect();
        let outcomes = self.alternatives.iter().zip(columns).enumerate();
        let outcomes = outcomes
            .map(|(place, (alternative, parts))| Outcome {
                admitted_over_time: bins.column(place + 1),
                suggestion: self.suggestion(alternative, &asked),
                ..self.outcome(alternative, place, &partitions, parts, keys)
            })
            .collect();
        let offered = sum(partitions.iter().map(|partition| partition.offered));
        let peaks = if keys == 0 { Vec::new() } else { histograms.peaks() };
        Report { source, offered, keys, timeline: bins.timeline(), outcomes, peaks }
    }

    fn suggestion(&self, alternative: &Alternative, keys: &[Asked]) -> Option<Suggestion> {
        suggest(alternative.only()?, keys, self.suggest?, self.threads)
    }

    fn outcome(
        &self,
        alternative: &Alternative,
        place: usize,
        partitions: &[Partition],
        parts: Vec<PartOfOutcome>,
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
            name: alternative.name.clone(),
            limits: alternative.only().map_or_else(Vec::new, |only| only.limits().to_vec()),
            admitted: sum(columns().map(|column| column.admitted)),
            denied: sum(columns().map(|column| column.denied)),
            keys_denied,
            worst,
            decisions: decisions(columns()),
            longest_denial: longest,
            bytes_per_key: bytes.checked_div(keys).unwrap_or_default(),
            ..Outcome::default()
        }
    }

    fn part(&self, partition: &mut Partition) -> Part {
        let mut part = Part::default();
        for (number, tally) in (0_u32..).zip(&partition.tallies) {
            // A key may have been read and never come to be decided, where the run was cut short.
            if tally.requests > 0 {
                part.keys += 1;
                part.histograms.add(tally, partition.keys.get(number).1);
            }
        }
        let Partition { keys, tallies, columns, .. } = partition;
        part.columns = columns
            .iter_mut()
            .zip(self.alternatives)
            .map(|(column, alternative)| self.column(column, alternative, keys, tallies))
            .collect();
        part
    }

    fn column(
        &self,
        column: &mut Column,
        alternative: &Alternative,
        keys: &Keys,
        tallies: &[Tally],
    ) -> PartOfOutcome {
        // The worst by what was denied, of equals those first by name; the least of them is on top.
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
                let tally = usize::try_from(number).ok().and_then(|x| tallies.get(x))?;
                Some(WorstKey {
                    key: key.to_vec(),
                    policy: alternative.policy_name(keys.get(number).0).map(str::to_owned),
                    offered: tally.amount(),
                    denied: denials.amount,
                    first_denied: Timestamp::from_micros(denials.first),
                    longest_denial: Micros::new(denials.longest.1),
                })
            };
        PartOfOutcome {
            keys_denied: u64::try_from(column.denials.len()).unwrap_or(u64::MAX),
            worst: worst.into_iter().filter_map(worst_key).collect(),
            longest,
            bytes: column.states.iter().map(bytes).sum(),
        }
    }
}

fn bytes(state: &tollgate_core::KeyState) -> u64 {
    u64::try_from(size_of_val(state) + state.heap_bytes()).unwrap_or(u64::MAX)
}

/// The decisions of all partitions in the order of time, if they are few enough; of those at the same
/// time, those of a partition stay together.
fn decisions<'a>(columns: impl Iterator<Item = &'a Column>) -> Vec<Decided> {
    let all: Option<Vec<&[Decided]>> = columns.map(|column| column.decisions.as_deref()).collect();
    let mut all = all.unwrap_or_default().concat();
    if all.len() > MAX_DECISIONS {
        return Vec::new();
    }
    all.sort_by_key(|x| x.time);
    all
}

fn rank(it: &WorstKey) -> u64 {
    it.denied.cost
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
