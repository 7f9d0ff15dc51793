//! The line that tells how far it is.

use std::io::{IsTerminal, stderr};

use tollgate_load::Progress;

use crate::number::grouped;
use crate::output;

/// A line of the terminal that is written over and over; where standard error is none, nothing.
#[derive(Debug)]
pub(super) struct Line {
    is_shown: bool,
    seconds: u64,
    last: u64,
}

impl Line {
    pub(super) fn new() -> Self {
        Line { is_shown: stderr().is_terminal(), seconds: 0, last: 0 }
    }

    /// Tells what a second more has brought.
    pub(super) fn tick(&mut self, progress: &Progress) {
        let [allowed, denied, failed] = progress.counts();
        let answers = allowed + denied;
        self.seconds += 1;
        let (more, seconds) = (answers.saturating_sub(self.last), self.seconds);
        self.last = answers;
        if self.is_shown {
            let [answers, more, allowed, failed] = [answers, more, allowed, failed].map(grouped);
            output::print_error(&format!(
                "\r\x1b[K{seconds} s  {answers} answers, {more}/s  {allowed} allowed  {failed} errors"
            ));
        }
    }

    /// Leaves the line empty for what follows.
    pub(super) fn clear(&self) {
        if self.is_shown && self.seconds > 0 {
            output::print_error("\r\x1b[K");
        }
    }
}
