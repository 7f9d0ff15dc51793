//! Reads files, plain or compressed, and standard input as blocks of whole lines.
//!
//! A thread reads and decompresses a few blocks ahead. [`Input`] returns them in the order of the
//! files; each block can be parsed independently, on any thread.

mod block;
mod decompress;
mod read_ahead;
mod split;

pub(crate) use block::split_lines;
pub use block::{Block, FileHead, InputError, MAX_LINE_LEN, Part, Progress, TooLong};
pub use read_ahead::Input;
