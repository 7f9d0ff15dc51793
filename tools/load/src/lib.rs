//! A load generator for rate limiters that verifies what they admit.
//!
//! A [`Plan`] describes the target, the requests and their rate. [`Runner::new`] sends one probe
//! that charges nothing; [`Runner::run`] sends the load and returns an [`Outcome`]. Each thread
//! drives its share of the connections; a request is a copy of a template with the number of the
//! key filled in.
//!
//! Without a rate, a response triggers the next request (closed loop). With a rate, every request
//! is scheduled in advance, and its latency counts from the scheduled time (open loop), so that a
//! slow response also counts for the requests that waited behind it.

mod clock;
mod connection;
mod error;
mod grpc;
mod keys;
mod memory;
mod outcome;
mod plan;
mod prepare;
mod reply;
mod run;
mod schedule;
mod session;
mod tally;
pub mod verify;
mod wire;
mod worker;

pub use error::LoadError;
pub use keys::Keys;
pub use outcome::{EndReason, ErrorCount, GeneratorUsage, Latency, Outcome, Verification};
pub use plan::{CheckSpec, Command, Endpoint, LimitedBy, Load, Plan, Target};
pub use prepare::Runner;
pub use reply::ErrorKind;
pub use tally::{Counts, MAX_ADMISSIONS, Progress};
pub use wire::token_bucket;
