//! The last minutes of the counters, a sample a second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use tollgate::{Micros, Timestamp};
use tollgate_engine::{Engine, Surface};

use crate::counts::Counts;
use crate::histogram::{Histogram, Percentiles};
use crate::number::Decimal;

/// The samples that are kept: ten minutes.
const MAX_SAMPLES: usize = 600;
/// The samples that rates are averaged over.
const RATE_SAMPLES: usize = 5;
/// The samples that percentiles are computed from.
const LATENCY_SAMPLES: usize = 60;

/// What the engine counted within a second.
#[derive(Debug)]
struct Sample {
    time: Timestamp,
    length: Micros,
    total: Counts<u32>,
    /// Policies without a decision are left out.
    by_policy: Box<[(Arc<str>, Counts<u32>)]>,
    surfaces: Box<[Histogram]>,
    store: Histogram,
}

/// The counters at a time.
#[derive(Debug, Default)]
struct Reading {
    time: Timestamp,
    by_policy: BTreeMap<Arc<str>, Counts>,
    surfaces: Box<[Histogram]>,
    store: Histogram,
}

/// Samples of an engine's counters.
#[derive(Debug)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    last: Reading,
}

/// One line of a chart for each number: the value of each sample.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Series {
    /// When each sample ended, in seconds since the Unix epoch.
    time: Vec<Decimal>,
    allowed: Vec<Decimal>,
    denied: Vec<Decimal>,
    shadow_denied: Vec<Decimal>,
    degraded: Vec<Decimal>,
    errors: Vec<Decimal>,
    /// The latency of decisions on all surfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p50: Vec<Option<Decimal>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p99: Vec<Option<Decimal>>,
}

impl Reading {
    fn new(engine: &Engine, names: &BTreeMap<Arc<str>, Counts>) -> Self {
        let counters = &engine.counters;
        let by_policy = counters.by_policy().into_iter().map(|policy| {
            // The names of samples are shared with those of the reading before.
            let name = names.get_key_value(&*policy.policy).map(|(name, _)| Arc::clone(name));
            (name.unwrap_or_else(|| (&*policy.policy).into()), Counts::from(&policy))
        });
        let surfaces = Surface::ALL.map(|surface| {
            let buckets = counters.latency(surface).buckets();
            let bound = |bucket: &tollgate_engine::LatencyBucket| bucket.bound.map(Micros::get);
            Histogram(buckets.iter().map(|bucket| (bound(bucket), bucket.count)).collect())
        });
        let store = match engine.limiter().as_redis() {
            Some(_) => Histogram(engine.limiter().stats().latency_buckets),
            None => Histogram::default(),
        };
        let time = engine.clock().now();
        Reading { time, by_policy: by_policy.collect(), surfaces: surfaces.into(), store }
    }
}

impl Sample {
    fn between(before: &Reading, after: &Reading) -> Self {
        let counted = after.by_policy.iter().map(|(name, counts)| {
            let before = before.by_policy.get(name).copied().unwrap_or_default();
            (Arc::clone(name), counts.since(before))
        });
        let counted: Vec<_> = counted.filter(|(_, counts)| *counts != Counts::default()).collect();
        let total = counted.iter().fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts));
        let narrow = |counts: Counts| counts.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let empty = Histogram::default();
        let surfaces = after
            .surfaces
            .iter()
            .enumerate()
            .map(|(index, after)| after.since(before.surfaces.get(index).unwrap_or(&empty)));
        Sample {
            time: after.time,
            length: after.time.duration_since(before.time),
            total: narrow(total),
            by_policy: counted.into_iter().map(|(name, counts)| (name, narrow(counts))).collect(),
            surfaces: surfaces.collect(),
            store: after.store.since(&before.store),
        }
    }

    /// What was counted for a policy, or for all.
    fn counts(&self, policy: Option<&str>) -> Counts {
        let counts = match policy {
            None => self.total,
            Some(name) => {
                let found = self.by_policy.binary_search_by_key(&name, |(name, _)| name);
                found.ok().map_or_else(Counts::default, |index| self.by_policy[index].1)
            }
        };
        counts.map(u64::from)
    }

    fn all_surfaces(&self) -> Percentiles {
        let mut all = Histogram::default();
        self.surfaces.iter().for_each(|surface| all.add(surface));
        all.percentiles()
    }
}

impl History {
    /// The history of an engine from now on.
    pub(crate) fn new(engine: &Engine) -> Self {
        History { samples: VecDeque::new(), last: Reading::new(engine, &BTreeMap::new()) }
    }

    /// Adds a sample: what the engine has counted since the last one.
    pub(crate) fn sample(&mut self, engine: &Engine) {
        let reading = Reading::new(engine, &self.last.by_policy);
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample::between(&self.last, &reading));
        self.last = reading;
    }

    /// The policies with counters, and all their decisions since the start.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (&Arc<str>, Counts)> {
        self.last.by_policy.iter().map(|(name, counts)| (name, *counts))
    }

    /// The decisions since the start.
    pub(crate) fn total(&self) -> Counts {
        self.policies().fold(Counts::default(), |sum, (_, counts)| sum.plus(counts))
    }

    /// The current rates of a policy, or of all.
    pub(crate) fn rates(&self, policy: Option<&str>) -> Counts<Decimal> {
        let recent = || self.samples.iter().rev().take(RATE_SAMPLES);
        let counts = recent().map(|sample| sample.counts(policy));
        let time = recent().map(|sample| sample.length.get()).sum();
        counts.fold(Counts::default(), Counts::plus).rates(Micros::new(time))
    }

    /// The recent latencies of a surface.
    pub(crate) fn latency(&self, surface: usize) -> Percentiles {
        self.recent(|sample| sample.surfaces.get(surface))
    }

    /// The recent latencies of the Redis store.
    pub(crate) fn store_latency(&self) -> Percentiles {
        self.recent(|sample| Some(&sample.store))
    }

    fn recent(&self, histogram: impl Fn(&Sample) -> Option<&Histogram>) -> Percentiles {
        let mut sum = Histogram::default();
        let samples = self.samples.iter().rev().take(LATENCY_SAMPLES);
        samples.filter_map(histogram).for_each(|histogram| sum.add(histogram));
        sum.percentiles()
    }

    /// The last samples of a policy, or with latencies of all, the oldest first.
    pub(crate) fn series(&self, policy: Option<&str>, max_samples: usize) -> Series {
        let mut series = Series::default();
        for sample in self.samples.range(self.samples.len().saturating_sub(max_samples)..) {
            let rates = sample.counts(policy).rates(sample.length);
            series.time.push(sample.time.into());
            series.allowed.push(rates.allowed);
            series.denied.push(rates.denied);
            series.shadow_denied.push(rates.shadow_denied);
            series.degraded.push(rates.degraded);
            series.errors.push(rates.errors);
            if policy.is_none() {
                let latency = sample.all_surfaces();
                series.p50.push(latency.p50);
                series.p99.push(latency.p99);
            }
        }
        series
    }
}
