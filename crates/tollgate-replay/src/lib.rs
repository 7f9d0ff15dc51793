//! An access log, or a generated one, through limits: who would have been stopped, when and how
//! much.
//!
//! One way for all: a source of events ([`log`], or [`generate`]), put in the order of their time
//! ([`order`]), decided, and told in one [`report::Report`], which is drawn by
//! [`pictures`] and shown whole by [`page`].

pub mod generate;
pub mod input;
pub mod log;
pub mod order;
mod page;
pub mod pictures;
pub mod report;

pub use self::page::page;
