//! The notation of limits, such as `10/s burst 50`.

pub(crate) mod display;
mod draft;
mod error;
pub(crate) mod message;
mod number;
mod parse;
mod token;
mod words;

pub use error::NotationError;
pub use parse::{parse_duration, parse_limits};
