//! Reports as pictures, pages, tables and JSON: what they show, and that they hold whatever a report
//! holds.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod drawn;
mod random;
mod rows;
mod samples;
mod told;

use std::fs;
use std::path::Path;

/// Keeps a picture below the target directory, where it can be looked at.
fn keep(name: &str, text: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), text).unwrap();
}

/// Reads a page as XML, which it is besides.
fn read(html: &str) -> Result<roxmltree::Document<'_>, roxmltree::Error> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(html, options)
}
