//! Generated traffic in place of a log.
//!
//! The same [`Traffic`] is always the same events, on any machine but for the last digits of its
//! logarithms, and takes no memory whatever its length.
//!
//! ```
//! use tollgate_replay::generate::{Shape, Traffic};
//!
//! let traffic: Traffic = "bursts rate 3/s for 2s window 1s keys 2".parse()?;
//! assert_eq!(traffic.shape, Shape::Bursts);
//! let times: Vec<String> = traffic.events().map(|it| it.at.to_string()).collect();
//! assert_eq!(times[..3], ["1767225600"; 3]);
//! assert_eq!(times[3..], ["1767225601"; 3]);
//! # Ok::<(), tollgate_replay::generate::TrafficError>(())
//! ```

mod arrivals;
mod combined;
mod events;
mod random;
mod shape;
mod words;

use tollgate::{Micros, Timestamp};

pub use combined::write_combined;
pub use events::{Events, Generated, address_of, key_of};
pub use shape::Shape;
pub use words::TrafficError;

/// What traffic to generate.
///
/// As text it is a shape and what differs from the [default](Traffic::default), in any order:
/// `zipf rate 1000/s for 1h keys 1000000 window 1min seed 7 start 2026-01-01T00:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// How the requests lie in time, and whose they are.
    pub shape: Shape,
    /// How many requests come on average.
    pub rate: Rate,
    /// For how long they come.
    pub duration: Micros,
    /// How many keys there are, from 0; at most [`MAX_KEYS`].
    pub keys: u32,
    /// Another seed gives other events of the same shape.
    pub seed: u64,
    /// When the first may come.
    pub start: Timestamp,
    /// From one burst to the next; or how long the windows are whose edge is stampeded.
    pub window: Micros,
}

/// As many keys as there are addresses in `10.0.0.0/8`.
pub const MAX_KEYS: u32 = 1 << 24;

/// So many requests in a time, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// In what time.
    pub per: Micros,
}

impl Default for Traffic {
    /// 100 requests a second of 100 keys for ten minutes from the beginning of 2026, evenly spaced; and
    /// windows of a minute.
    fn default() -> Self {
        Traffic {
            shape: Shape::Steady,
            rate: Rate { count: 100, per: Micros::from_secs(1) },
            duration: Micros::from_secs(600),
            keys: 100,
            seed: 1,
            start: Timestamp::from_micros(1_767_225_600_000_000),
            window: Micros::from_secs(60),
        }
    }
}

impl Traffic {
    /// The requests, in the order of their time.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self)
    }
}
