//! Synthetic traffic instead of a log.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use tollgate_replay::generate::{Traffic, write_combined};

/// Parses the argument of --generate.
pub(super) fn parse(text: &str) -> Result<Traffic> {
    text.parse().map_err(|error| anyhow!("--generate {text:?}: {error}"))
}

/// Writes synthetic traffic as an access log.
pub(super) fn write(text: &str, to: &Path) -> Result<ExitCode> {
    let traffic = parse(text)?;
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(to)?);
        write_combined(&traffic, &mut file)?;
        file.flush()
    };
    write().with_context(|| to.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
