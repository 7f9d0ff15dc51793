//! Decides requests, in parallel where keys are independent, otherwise sequentially.

mod parallel;
mod partition;
mod sequential;
mod suggest;
mod summary;

pub(crate) use parallel::{BATCH, ParallelReplay};
pub(crate) use partition::{Event, Partition};
pub use sequential::{CandidateStore, DecisionRecord};
pub(crate) use sequential::{TimedRequest, decide as decide_sequentially};
pub(crate) use summary::Summary;
