//! `tollgate man`: the manual's pages, by the command line's own definition.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::arguments::{Arguments, Man};
use crate::output;

pub(crate) fn run(arguments: &Man) -> Result<ExitCode> {
    match &arguments.write {
        Some(directory) => write(directory)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            output::print(&String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(directory: &Path) -> Result<()> {
    let written = clap_mangen::generate_to(Arguments::command(), directory);
    written.with_context(|| {
        let directory = directory.display();
        format!(
            "pages cannot be written to {directory}; name a directory that is there with --write"
        )
    })
}
