//! Synthetic traffic instead of a log.
//!
//! The same [`Traffic`] always generates the same requests, up to the last digits of logarithms on
//! different machines, in constant memory.
//!
//! ```
//! use tollgate_replay::generate::{Shape, Traffic};
//!
//! let traffic: Traffic = "bursts rate 3/s for 2s window 1s keys 2".parse()?;
//! assert_eq!(traffic.shape, Shape::Bursts);
//! let times: Vec<String> = traffic.events().map(|request| request.at.to_string()).collect();
//! assert_eq!(times[..3], ["1767225600"; 3]);
//! assert_eq!(times[3..], ["1767225601"; 3]);
//! # Ok::<(), tollgate_replay::generate::TrafficError>(())
//! ```

mod arrivals;
mod combined;
mod events;
mod random;
mod traffic;

pub use combined::write_combined;
pub use events::{Events, SyntheticRequest, address_of, key_of};
pub use traffic::{MAX_KEYS, Rate, Shape, Traffic, TrafficError};
