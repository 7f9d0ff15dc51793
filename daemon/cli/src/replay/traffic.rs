//! Made-up traffic in place of a log.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use tollgate_replay::generate::{Traffic, write_combined};

/// The traffic of a text.
pub(super) fn of(text: &str) -> Result<Traffic> {
    text.parse().map_err(|error| anyhow!("--generate {text:?}: {error}"))
}

/// Writes it as an access log.
pub(super) fn write(text: &str, to: &Path) -> Result<ExitCode> {
    let traffic = of(text)?;
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(to)?);
        write_combined(&traffic, &mut file)?;
        file.flush()
    };
    write().with_context(|| to.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
