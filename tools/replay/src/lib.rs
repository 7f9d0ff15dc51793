//! Replays an access log, or synthetic traffic, through rate limits: which requests would have been
//! denied, when, and how often.
//!
//! The requests of a source ([`log`] or [`generate`]) are put in the order of their time ([`order`]) and
//! decided. The result is a [`report::Report`]; [`pictures`] draws it and [`page`] renders it as HTML.

mod candidate;
mod convert;
mod decide;
mod error;
pub mod generate;
pub mod input;
mod lines;
pub mod log;
pub mod operations;
pub mod order;
mod page;
pub mod pictures;
mod read;
pub mod report;
mod request;
mod run;
mod threads;

pub use candidate::{Candidate, CandidatePolicy, MAX_CANDIDATES, PolicyResolver};
pub use decide::{CandidateStore, DecisionRecord};
pub use error::ReplayError;
pub use lines::{Log, Progress};
pub use page::page;
pub use request::{LogCheck, LogRequest, PlainCheck, RequestExtractor, Skip};
pub use run::{Options, Replay};
