//! Reports as pictures, HTML, text and JSON.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod cases;
mod drawing;
mod random;
mod reports;
mod samples;

use std::fs;
use std::path::Path;

/// Writes a picture to the target directory for inspection.
fn keep(name: &str, text: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), text).unwrap();
}

/// Parses a page as XML.
fn read(html: &str) -> Result<roxmltree::Document<'_>, roxmltree::Error> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(html, options)
}
