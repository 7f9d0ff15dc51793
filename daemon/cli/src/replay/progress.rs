//! The progress bar.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate_replay::Progress;

use crate::number::grouped;

/// A progress bar on standard error, if that is a terminal.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new() -> Self {
        // A spinner until the total is known.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }

    pub(super) fn show(&self, progress: Progress) {
        let style = "{wide_bar} {percent:>3} % {msg} {elapsed} (ETA {eta})";
        if let (Some(total), None, Ok(style)) =
            (progress.total, self.0.length(), ProgressStyle::with_template(style))
        {
            self.0.set_length(total);
            self.0.set_style(style);
        }
        self.0.set_position(progress.bytes);
        self.0.set_message(format!("{} lines", grouped(progress.lines)));
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
