//! The table of all configuration fields: name, type, default and description.
//!
//! The reader, environment variables, `config check|print|schema`, the reference page and the
//! defaults all derive from this table.

mod field;
mod format;
mod scalar;
mod sections;

pub(super) use field::{Field, Kind, Section};
pub(super) use format::Format;
pub use format::{MAX_TOKEN_BYTES, MIN_TOKEN_BYTES, short_token};
pub(super) use scalar::{Scalar, Value, one_of};
pub(super) use sections::ROOT;
