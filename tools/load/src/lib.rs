//! A load generator for rate limiters, which holds what they admit against their bound.
//!
//! A [`Plan`] says whom to ask what, how often and how long. [`Prepared::of`] asks once, for nothing,
//! and [`Prepared::run`] asks in earnest, until an [`Outcome`] comes of it. Some threads have some
//! connections each; a request is a copy of a template with a key's number in it.
//!
//! Without a rate each answer makes room for the next request. With one, every request has its time
//! beforehand, and its latency is from that time: what a slow answer holds up counts to those that
//! waited behind it.

mod alarm;
mod answer;
mod clock;
mod connection;
mod error;
mod grpc;
mod keys;
mod memory;
mod outcome;
mod plan;
mod prepare;
mod progress;
mod random;
mod run;
mod schedule;
mod session;
mod tally;
pub mod verify;
mod wire;
mod worker;

pub use answer::ErrorKind;
pub use error::LoadError;
pub use keys::Keys;
pub use outcome::{Ended, Errors, Generator, Held, Latency, Outcome};
pub use plan::{Command, LimitedBy, Load, Peer, Plan, Question, Target};
pub use prepare::Prepared;
pub use progress::Progress;
pub use tally::{Counts, MAX_ADMISSIONS};
pub use wire::bucket;
