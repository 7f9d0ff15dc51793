//! Reads files, plain or compressed, and standard input as blocks of whole lines.
//!
//! A thread reads and decompresses a few blocks ahead. [`Input`] returns them in the order of the files;
//! each block can be parsed independently, on any thread.

mod block;
mod decompress;
mod error;
mod progress;
mod read_ahead;
mod split;

pub use block::{Block, FileHead, MAX_LINE_LEN, Part, TooLong};
pub use error::{InputError, InputErrorKind};
pub use progress::Progress;
pub use read_ahead::Input;
