//! Replays an access log, or synthetic traffic, through rate limits: which requests would have been
//! denied, when, and how often.
//!
//! The requests of a source ([`log`] or [`generate`]) are put in the order of their time
//! ([`order`]) and decided. The result is a [`report::Report`]; [`pictures`] draws it and [`page`]
//! renders it as HTML.

mod convert;
mod decide;
mod error;
pub mod generate;
pub mod input;
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

pub use decide::{CandidateStore, DecisionRecord};
pub use error::ReplayError;
pub use page::page;
pub use read::{Log, Progress};
pub use request::{
    Candidate, CandidatePolicy, LogCheck, LogRequest, MAX_CANDIDATES, PlainCheck, PolicyResolver,
    RequestExtractor, Skip,
};
pub use run::{Options, Replay};
