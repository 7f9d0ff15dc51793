//! When requests arrive, in microseconds from the start.
#![expect(clippy::float_arithmetic, reason = "this generates traffic and decides nothing")]

use std::f64::consts::TAU;

use super::random::{Random, float, whole};
use super::traffic::{Rate, Shape, Traffic};

const DAY: u64 = 86_400_000_000;
/// The amplitude of the daily wave, as a part of the average.
const SWING: f64 = 0.9;

/// Arrival times in ascending order, without an end.
#[derive(Clone, Debug)]
pub(super) enum Arrivals {
    Floods(Floods),
    Poisson { at: f64, mean: f64 },
    Wave { at: f64, mean: f64, period: f64 },
}

impl Arrivals {
    pub(super) fn new(traffic: &Traffic) -> Self {
        let Traffic { shape, rate, window, duration, .. } = traffic;
        let (window, per) = (window.get().max(1), rate.per.get().max(1));
        let mean = float(per) / float(rate.count.max(1));
        match shape {
            Shape::Steady => Arrivals::Floods(Floods::new(*rate, 0, per, per)),
            Shape::Bursts => Arrivals::Floods(Floods::new(*rate, 0, window, 0)),
            Shape::Stampede => {
                let first = to_first_flood(traffic.start.as_micros(), window);
                let two = window.saturating_mul(2);
                Arrivals::Floods(Floods::new(*rate, first, two, window / 5))
            }
            Shape::Poisson | Shape::Zipf => Arrivals::Poisson { at: 0.0, mean },
            Shape::Diurnal => {
                let period = float(duration.get().clamp(1, DAY));
                Arrivals::Wave { at: 0.0, mean, period }
            }
        }
    }

    pub(super) fn next(&mut self, random: &mut Random) -> u64 {
        match self {
            Arrivals::Floods(floods) => floods.next(),
            Arrivals::Poisson { at, mean } => {
                *at += random.gap() * *mean;
                whole(*at)
            }
            // Candidates arrive at the peak rate and are kept with the probability of the current rate.
            Arrivals::Wave { at, mean, period } => loop {
                *at += random.gap() * *mean / (1.0 + SWING);
                let height = 1.0 - SWING * (TAU * *at / *period).cos();
                if random.unit() * (1.0 + SWING) < height {
                    return whole(*at);
                }
            },
        }
    }
}

/// The time from the start to the first flood, a tenth of a window before an edge.
fn to_first_flood(start: u64, window: u64) -> u64 {
    let tenth = window / 10;
    let edge = (start.saturating_add(tenth)).div_ceil(window).saturating_mul(window);
    edge.saturating_sub(tenth).saturating_sub(start)
}

/// A flood in each `step`, with as many requests as the rate gives in that time, spread over `length`.
#[derive(Clone, Debug)]
pub(super) struct Floods {
    rate: Rate,
    first: u64,
    step: u64,
    length: u64,
    /// The number of the current flood, its size, and how many of its requests are taken.
    number: u64,
    count: u64,
    given: u64,
}

impl Floods {
    fn new(rate: Rate, first: u64, step: u64, length: u64) -> Self {
        let mut floods = Floods { rate, first, step, length, number: 0, count: 0, given: 0 };
        floods.count = floods.before(1);
        floods
    }

    fn next(&mut self) -> u64 {
        if self.given >= self.count {
            self.next_flood();
        }
        let part = u128::from(self.length) * u128::from(self.given) / u128::from(self.count.max(1));
        self.given += 1;
        let begin = self.first.saturating_add(self.number.saturating_mul(self.step));
        // Times past the end of the traffic saturate.
        begin.saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// Advances to the next flood with a request; at a low rate some floods have none.
    fn next_flood(&mut self) {
        let before = self.before(self.number.saturating_add(1));
        let per = u128::from(self.rate.per.get()) * (u128::from(before) + 1);
        let step = u128::from(self.step) * u128::from(self.rate.count.max(1));
        // Numbers past the end of the traffic saturate.
        let number = u64::try_from(per.div_ceil(step).saturating_sub(1)).unwrap_or(u64::MAX);
        self.number = number.max(self.number.saturating_add(1));
        self.count = self.before(self.number.saturating_add(1)).saturating_sub(before);
        self.given = 0;
    }

    /// The number of requests before the flood of this number; saturates past the end of the traffic.
    fn before(&self, number: u64) -> u64 {
        let time = u128::from(number) * u128::from(self.step);
        let count = time.saturating_mul(u128::from(self.rate.count));
        u64::try_from(count / u128::from(self.rate.per.get().max(1))).unwrap_or(u64::MAX)
    }
}
