//! Writes the figures into `docs/benchmarks.md`.

use std::fs;

use anyhow::{Context, Result};
use bench::report::Report;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
const BEGIN: &str = "<!-- UPDATE=1 cargo xtask bench writes what follows. -->\n";

/// Replaces the figures at the end of the page.
pub(crate) fn write(report: &Report) -> Result<()> {
    let page = fs::read_to_string(PAGE)?;
    let (text, _) =
        page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    fs::write(PAGE, format!("{text}{BEGIN}\n{}", report.markdown()))?;
    Ok(())
}
