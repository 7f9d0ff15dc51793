//! The requests of synthetic traffic: when they arrive, and their keys.
#![expect(clippy::float_arithmetic, reason = "this generates traffic and decides nothing")]

use std::f64::consts::TAU;
use std::net::Ipv4Addr;

use tollgate::Timestamp;

use super::traffic::{Rate, Shape, Traffic};
use crate::convert::to_u32;
use crate::report::format::DAY;

/// A synthetic request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticRequest {
    /// The time.
    pub at: Timestamp,
    /// The number of the key; [`key_of`] and [`address_of`] name it.
    pub key: u32,
}

/// The text of a key: `user:17`.
pub fn key_of(key: u32) -> String {
    format!("user:{key}")
}

/// The address of a key in `10.0.0.0/8`, unique for each of [`MAX_KEYS`](super::MAX_KEYS).
pub fn address_of(key: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0A00_0000 | (key & 0x00FF_FFFF))
}

/// The requests of [`Traffic`] in the order of their time.
#[derive(Clone, Debug)]
pub struct Events {
    start: Timestamp,
    duration: u64,
    arrivals: Arrivals,
    key_choice: KeyChoice,
    keys: u32,
    random: Random,
}

#[derive(Clone, Debug)]
enum KeyChoice {
    Turns(u32),
    Random,
    Zipf(Zipf),
}

impl Traffic {
    /// The requests in the order of their time.
    pub fn events(&self) -> Events {
        let key_choice = match self.shape {
            Shape::Steady | Shape::Bursts | Shape::Stampede => KeyChoice::Turns(0),
            Shape::Poisson | Shape::Diurnal => KeyChoice::Random,
            Shape::Zipf => KeyChoice::Zipf(Zipf::new(self.keys)),
        };
        Events {
            start: self.start,
            duration: if self.rate.count == 0 { 0 } else { self.duration.get() },
            arrivals: Arrivals::new(self),
            key_choice,
            keys: self.keys.max(1),
            random: Random::new(self.seed),
        }
    }
}

impl Iterator for Events {
    type Item = SyntheticRequest;

    fn next(&mut self) -> Option<SyntheticRequest> {
        if self.duration == 0 {
            return None;
        }
        let since = self.arrivals.next(&mut self.random);
        if since >= self.duration {
            self.duration = 0;
            return None;
        }
        let at = Timestamp::from_micros(self.start.as_micros().saturating_add(since));
        let key = match &mut self.key_choice {
            KeyChoice::Turns(next) => {
                let key = *next;
                *next = (key + 1) % self.keys;
                key
            }
            KeyChoice::Random => self.random.below(self.keys),
            KeyChoice::Zipf(zipf) => zipf.draw(&mut self.random),
        };
        Some(SyntheticRequest { at, key })
    }
}

/// The amplitude of the daily wave, as a part of the average.
const SWING: f64 = 0.9;

/// Arrival times in ascending order, without an end.
#[derive(Clone, Debug)]
enum Arrivals {
    Floods(Floods),
    Poisson { at: f64, mean: f64 },
    Wave { at: f64, mean: f64, period: f64 },
}

impl Arrivals {
    fn new(traffic: &Traffic) -> Self {
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

    fn next(&mut self, random: &mut Random) -> u64 {
        match self {
            Arrivals::Floods(floods) => floods.next(),
            Arrivals::Poisson { at, mean } => {
                *at += random.gap() * *mean;
                whole(*at)
            }
            // Candidates arrive at the peak rate and are kept with the probability of the current
            // rate.
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

/// A flood in each `step`, with as many requests as the rate gives in that time, spread over
/// `length`.
#[derive(Clone, Debug)]
struct Floods {
    rate: Rate,
    first: u64,
    step: u64,
    length: u64,
    /// The number of the current flood, its size, and the index of its next request.
    number: u64,
    count: u64,
    index: u64,
}

impl Floods {
    fn new(rate: Rate, first: u64, step: u64, length: u64) -> Self {
        let mut floods = Floods { rate, first, step, length, number: 0, count: 0, index: 0 };
        floods.count = floods.before(1);
        floods
    }

    fn next(&mut self) -> u64 {
        if self.index >= self.count {
            self.next_flood();
        }
        let part = u128::from(self.length) * u128::from(self.index) / u128::from(self.count.max(1));
        self.index += 1;
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
        self.index = 0;
    }

    /// The number of requests before the flood of this number; saturates past the end of the
    /// traffic.
    fn before(&self, number: u64) -> u64 {
        let time = u128::from(number) * u128::from(self.step);
        let count = time.saturating_mul(u128::from(self.rate.count));
        u64::try_from(count / u128::from(self.rate.per.get().max(1))).unwrap_or(u64::MAX)
    }
}

/// SplitMix64: one addition and three mixing steps per 64 bits; accepts any seed. Logs and pictures
/// that tests compare byte by byte depend on this sequence, so it is not replaced by a crate whose
/// algorithm may change.
#[derive(Clone, Debug)]
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number in [0, 1).
    fn unit(&mut self) -> f64 {
        let bits = self.bits();
        let [high, low] = [bits >> 43, (bits >> 11) & 0xFFFF_FFFF];
        let small = |half: u64| f64::from(to_u32(half));
        (small(high) * 4_294_967_296.0 + small(low)) / 9_007_199_254_740_992.0
    }

    /// A uniform number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        let product = u128::from(self.bits()) * u128::from(end);
        to_u32(product >> 64)
    }

    /// The time between two events of a Poisson process with mean 1.
    fn gap(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// Draws k from 1 to n with a probability proportional to 1/k, in constant time and memory, by
/// rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", 1996.
#[derive(Clone, Debug)]
struct Zipf {
    n: f64,
    /// The integrals of 1/x at both ends, which are logarithms.
    first: f64,
    last: f64,
    /// Within this distance of the drawn point, the number is accepted without a further test.
    near: f64,
}

impl Zipf {
    fn new(n: u32) -> Self {
        let n = f64::from(n.max(1));
        Zipf {
            n,
            first: 1.5_f64.ln() - 1.0,
            last: (n + 0.5).ln(),
            near: 2.0 - (2.5_f64.ln() - 0.5).exp(),
        }
    }

    /// A number from 0 to n − 1; 0 is most likely.
    fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let point = area.exp();
            let number = point.round().clamp(1.0, self.n);
            if number - point <= self.near || area >= (number + 0.5).ln() - 1.0 / number {
                return to_u32(whole(number - 1.0));
            }
        }
    }
}

/// A number rounded down; negative numbers and NaN become 0.
#[expect(clippy::as_conversions, reason = "the only conversion from a float; `as` saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// The nearest number with 53 bits.
#[expect(clippy::as_conversions, reason = "the only conversion to a float")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_zipf_distribution() {
        let (mut random, zipf) = (Random::new(1), Zipf::new(1_000));
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..4_000_000 {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        let all: f64 = (1..=1_000).map(|n| 1.0 / f64::from(n)).sum();
        for (at, k) in [(0, 1.0), (1, 2.0), (9, 10.0), (99, 100.0)] {
            let expected = 4_000_000.0 / k / all;
            let error = (f64::from(counts[at]) - expected).abs() / expected;
            assert!(error < 0.05, "{k}: {} for {expected}", counts[at]);
        }
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn gaps_have_mean_one_and_units_are_below_one() {
        let mut random = Random::new(2);
        let gaps: f64 = (0..100_000).map(|_| random.gap()).sum();
        assert!((gaps / 100_000.0 - 1.0).abs() < 0.02, "{gaps}");
        assert!((0..100_000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_eq!(Zipf::new(1).draw(&mut random), 0);
    }
}
