//! Decides requests, in parallel where keys are independent, otherwise sequentially.

mod keys;
mod parallel;
mod partition;
mod sequential;
mod suggest;
mod summary;
mod tally;

pub(crate) use parallel::ParallelReplay;
pub(crate) use partition::Partition;
pub use sequential::{CandidateStore, DecisionRecord};
pub(crate) use sequential::{TimedRequest, decide as decide_sequentially};
pub(crate) use summary::Summary;
