//! Writes the report.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use anyhow::{Context, Result};
use tollgate_replay::report::Report;
use tollgate_replay::{page, pictures};

use super::arguments::{Picture, Replay};
use crate::arguments::Form;
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
            form: arguments.output,
            page: arguments.report.as_ref().map(open).transpose()?,
            picture: arguments.svg.as_ref().map(open).transpose()?,
            which: arguments.picture,
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
