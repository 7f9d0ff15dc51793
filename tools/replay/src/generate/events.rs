//! The requests of synthetic traffic.

use std::net::Ipv4Addr;

use tollgate::Timestamp;

use super::arrivals::Arrivals;
use super::random::{Random, Zipf};
use super::traffic::{Shape, Traffic};

/// A synthetic request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticRequest {
    /// The time.
    pub at: Timestamp,
    /// The number of the key; [`key_of`] and [`address_of`] name it.
    pub key: u32,
    /// The cost.
    pub cost: u64,
}

/// The text of a key: `user:17`.
#[must_use]
pub fn key_of(key: u32) -> String {
    format!("user:{key}")
}

/// The address of a key in `10.0.0.0/8`, unique for each of [`MAX_KEYS`](super::MAX_KEYS).
#[must_use]
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

/// How keys are chosen.
#[derive(Clone, Debug)]
enum KeyChoice {
    Turns(u32),
    Random,
    Zipf(Zipf),
}

impl Traffic {
    /// The requests in the order of their time.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self)
    }
}

impl Events {
    fn new(traffic: &Traffic) -> Self {
        let key_choice = match traffic.shape {
            Shape::Steady | Shape::Bursts | Shape::Stampede => KeyChoice::Turns(0),
            Shape::Poisson | Shape::Diurnal => KeyChoice::Random,
            Shape::Zipf => KeyChoice::Zipf(Zipf::new(traffic.keys)),
        };
        Events {
            start: traffic.start,
            duration: if traffic.rate.count == 0 { 0 } else { traffic.duration.get() },
            arrivals: Arrivals::new(traffic),
            key_choice,
            keys: traffic.keys.max(1),
            random: Random::new(traffic.seed),
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
        Some(SyntheticRequest { at, key, cost: 1 })
    }
}
