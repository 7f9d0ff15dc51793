//! How long decisions took, by classes, each with a trace that can be looked up.

use std::sync::Mutex;

use tollgate::{Micros, Timestamp};

use super::counter::Counter;
use super::lock;
use super::page::{Class, Value};
use super::trace::TraceId;

/// The most of each class, in µs; one more is for what took longer.
const CLASSES: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// One of those that were counted, whose trace is known.
#[derive(Clone, Debug)]
pub(super) struct Exemplar {
    pub(super) trace: TraceId,
    pub(super) took: Micros,
    pub(super) at: Timestamp,
}

/// A histogram that is counted in without a lock.
#[derive(Debug, Default)]
pub(super) struct Latency {
    counts: [Counter; CLASSES.len() + 1],
    sum: Counter,
    exemplars: [Mutex<Option<Exemplar>>; CLASSES.len() + 1],
}

impl Latency {
    #[inline]
    pub(super) fn count(&self, took: Micros) {
        self.count_many(took, 1);
    }

    /// Counts so many that took equally long.
    #[inline]
    pub(super) fn count_many(&self, took: Micros, many: u64) {
        if let Some(count) = self.counts.get(class_of(took)) {
            count.add(many);
        }
        self.sum.add(took.get().saturating_mul(many));
    }

    /// Remembers the newest of a class. Who would have to wait for another leaves it to that one.
    pub(super) fn remember(&self, exemplar: Exemplar) {
        let kept = self.exemplars.get(class_of(exemplar.took));
        if let Some(mut kept) = kept.and_then(|x| x.try_lock().ok()) {
            *kept = Some(exemplar);
        }
    }

    pub(super) fn classes(&self) -> Vec<Class> {
        let most = CLASSES.into_iter().map(|class| Some(Value::Micros(class))).chain([None]);
        let each = most.zip(&self.counts).zip(&self.exemplars);
        let class = |((most, count), exemplar): ((_, &Counter), &Mutex<Option<Exemplar>>)| Class {
            most,
            count: count.get(),
            exemplar: lock(exemplar).clone(),
        };
        each.map(class).collect()
    }

    pub(super) fn sum(&self) -> Value {
        Value::Micros(self.sum.get())
    }
}

#[inline]
fn class_of(took: Micros) -> usize {
    CLASSES.partition_point(|most| *most < took.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_the_first_class_that_holds_it() {
        let latency = Latency::default();
        for micros in [0, 25, 26, 250_000, 250_001, 9_000_000] {
            latency.count(Micros::new(micros));
        }
        let counts: Vec<_> = latency.classes().iter().map(|class| class.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(latency.sum(), Value::Micros(9_500_052));
    }
}
