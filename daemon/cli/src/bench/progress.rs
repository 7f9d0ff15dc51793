//! The progress line.

use std::io::{IsTerminal, stderr};

use tollgate_load::Progress;

use crate::number::grouped;
use crate::output;

/// A line that is updated in place if standard error is a terminal.
#[derive(Debug)]
pub(super) struct ProgressLine {
    is_shown: bool,
    seconds: u64,
    last_total: u64,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        ProgressLine { is_shown: stderr().is_terminal(), seconds: 0, last_total: 0 }
    }

    /// Updates the line after another second.
    pub(super) fn tick(&mut self, progress: &Progress) {
        let [allowed, denied, failed] = progress.counts();
        let total = allowed + denied;
        self.seconds += 1;
        let (rate, seconds) = (total.saturating_sub(self.last_total), self.seconds);
        self.last_total = total;
        if self.is_shown {
            let [total, rate, allowed, failed] = [total, rate, allowed, failed].map(grouped);
            output::print_error(&format!(
                "\r\x1b[K{seconds} s  {total} responses, {rate}/s  {allowed} allowed  {failed} errors"
            ));
        }
    }

    /// Clears the line before other output.
    pub(super) fn clear(&self) {
        if self.is_shown && self.seconds > 0 {
            output::print_error("\r\x1b[K");
        }
    }
}
