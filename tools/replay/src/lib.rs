//! An access log, or a generated one, through limits: who would have been stopped, when and how
//! much.
//!
//! One way for all: a source of events ([`log`], or [`generate`]), put in the order of their time
//! ([`order`]), decided, and told in one [`report::Report`], which is drawn by
//! [`pictures`] and shown whole by [`page`].

mod ask;
mod decide;
pub mod generate;
pub mod input;
pub mod log;
pub mod order;
mod page;
pub mod pictures;
mod read;
pub mod report;
mod run;
mod threads;
pub mod verbs;

pub use ask::{Ask, Asked, AskedCheck, NotAsked, One};
pub use decide::{Alternative, Answered, Choose, Holds, MAX_ALTERNATIVES, Store};
pub use page::page;
pub use run::{Log, Options, Progress, Replay, ReplayError};
use threads::{each, each_on};
