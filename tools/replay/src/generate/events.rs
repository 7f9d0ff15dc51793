//! Requests, one after the other.

use std::net::Ipv4Addr;

use tollgate::Timestamp;

use super::arrivals::Arrivals;
use super::random::{Random, Zipf};
use super::{Shape, Traffic};

/// A request that was generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// When it comes.
    pub at: Timestamp,
    /// Whose it is, from 0: [`key_of`] and [`address_of`] give it a name.
    pub key: u32,
    /// What it costs.
    pub cost: u64,
}

/// The text of a key: `user:17`.
#[must_use]
pub fn key_of(key: u32) -> String {
    format!("user:{key}")
}

/// The address of a key, in `10.0.0.0/8`: another for each of [`MAX_KEYS`](super::MAX_KEYS).
#[must_use]
pub fn address_of(key: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0A00_0000 | (key & 0x00FF_FFFF))
}

/// The requests of some [`Traffic`], in the order of their time.
#[derive(Clone, Debug)]
pub struct Events {
    start: Timestamp,
    duration: u64,
    arrivals: Arrivals,
    owners: Owners,
    keys: u32,
    random: Random,
}

/// Whose turn it is.
#[derive(Clone, Debug)]
enum Owners {
    Turns(u32),
    Random,
    Zipf(Zipf),
}

impl Events {
    pub(super) fn new(traffic: &Traffic) -> Self {
        let owners = match traffic.shape {
            Shape::Steady | Shape::Bursts | Shape::Stampede => Owners::Turns(0),
            Shape::Poisson | Shape::Diurnal => Owners::Random,
            Shape::Zipf => Owners::Zipf(Zipf::new(traffic.keys)),
        };
        Events {
            start: traffic.start,
            duration: if traffic.rate.count == 0 { 0 } else { traffic.duration.get() },
            arrivals: Arrivals::new(traffic),
            owners,
            keys: traffic.keys.max(1),
            random: Random::new(traffic.seed),
        }
    }
}

impl Iterator for Events {
    type Item = Generated;

    fn next(&mut self) -> Option<Generated> {
        if self.duration == 0 {
            return None;
        }
        let since = self.arrivals.next(&mut self.random);
        if since >= self.duration {
            self.duration = 0;
            return None;
        }
        let at = Timestamp::from_micros(self.start.as_micros().saturating_add(since));
        let key = match &mut self.owners {
            Owners::Turns(next) => {
                let key = *next;
                *next = (key + 1) % self.keys;
                key
            }
            Owners::Random => self.random.below(self.keys),
            Owners::Zipf(zipf) => zipf.draw(&mut self.random),
        };
        Some(Generated { at, key, cost: 1 })
    }
}
