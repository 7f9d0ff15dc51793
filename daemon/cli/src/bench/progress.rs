//! The progress line.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate_load::Progress;

use crate::number::grouped;

/// A line on standard error that is updated in place, if that is a terminal.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: ProgressBar,
    last_total: u64,
}

impl ProgressLine {
    #[expect(clippy::expect_used, reason = "the template is a constant")]
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{pos} s  {msg}").expect("a valid template"));
        ProgressLine { bar, last_total: 0 }
    }

    /// Updates the line after another second.
    pub(super) fn tick(&mut self, progress: &Progress) {
        let [allowed, denied, failed] = progress.counts();
        let total = allowed + denied;
        let rate = total.saturating_sub(self.last_total);
        self.last_total = total;
        let [total, rate, allowed, failed] = [total, rate, allowed, failed].map(grouped);
        self.bar.inc(1);
        self.bar.set_message(format!(
            "{total} responses, {rate}/s  {allowed} allowed  {failed} errors"
        ));
    }

    /// Clears the line before other output.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
