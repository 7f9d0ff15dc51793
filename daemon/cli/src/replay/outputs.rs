//! The report, and the progress bar.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate_replay::report::Report;
use tollgate_replay::{Progress, page, pictures};

use super::arguments::{Picture, Replay};
use crate::arguments::Form;
use crate::number::grouped;
use crate::output;

/// The output files, which are known to be writable, and the format of the report.
#[derive(Debug)]
pub(super) struct Outputs {
    form: Form,
    page: Option<PathBuf>,
    picture: Option<PathBuf>,
    which: Option<Picture>,
}

impl Outputs {
    /// Checks that the files can be written, without changing them.
    pub(super) fn open(arguments: &Replay) -> Result<Self> {
        let open = |path: &PathBuf| {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.with_context(|| path.display().to_string())?;
            Ok::<_, anyhow::Error>(path.clone())
        };
        Ok(Outputs {
            form: arguments.report.output,
            page: arguments.report.report.as_ref().map(open).transpose()?,
            picture: arguments.report.svg.as_ref().map(open).transpose()?,
            which: arguments.report.picture,
        })
    }

    /// Prints the report and writes the files.
    pub(super) fn write(self, report: &Report) -> Result<()> {
        match self.form {
            Form::Text => output::print(&report.table(output::columns()))?,
            Form::Json => output::print(&(serde_json::to_string(report)? + "\n"))?,
        }
        if let Some(path) = self.page {
            fs::write(&path, page(report)).with_context(|| path.display().to_string())?;
        }
        if let Some(path) = self.picture {
            let picture = match self.which {
                None => pictures::picture(report),
                Some(Picture::Time) => pictures::over_time(report),
                Some(Picture::Burst) => pictures::burst(report),
                Some(Picture::Peaks) => pictures::peaks(report),
            };
            fs::write(&path, picture).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

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
