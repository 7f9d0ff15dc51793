//! Files, plain or compressed, and standard input, as blocks of whole lines.
//!
//! A thread of its own reads and decompresses ahead, a few blocks at most; [`Input`] yields them in the
//! order of the files. Each block can be parsed by itself, on any thread.

mod block;
mod cut;
mod decompress;
mod error;
mod progress;
mod read_ahead;

pub use block::{Beginning, Block, MAX_LINE_LEN, Part, TooLong};
pub use error::{InputError, InputErrorKind};
pub use progress::Progress;
pub use read_ahead::Input;
