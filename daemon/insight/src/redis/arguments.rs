//! Arguments of a script, in one buffer.

use std::fmt;
use std::io::Write;

/// Arguments of a script. A batch has thousands, which are allocated together.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    /// Where each argument ends.
    ends: Vec<usize>,
}

impl Arguments {
    /// Adds an argument.
    pub(super) fn push(&mut self, argument: &[u8]) {
        self.bytes.extend_from_slice(argument);
        self.ends.push(self.bytes.len());
    }

    /// Adds an argument in its text form.
    pub(super) fn push_text(&mut self, argument: impl fmt::Display) {
        // A vector accepts everything.
        let _ = write!(self.bytes, "{argument}");
        self.ends.push(self.bytes.len());
    }

    /// The arguments in their order.
    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]).collect()
    }
}
