//! The text of a limit: `10/s burst 50`, read and written.

mod display;
mod draft;
mod error;
mod message;
mod nearest;
mod number;
mod parse;
mod token;
mod words;

pub(crate) use display::Length;
pub use error::{NotationError, NotationErrorKind};
pub use parse::{parse_duration, parse_limits};
