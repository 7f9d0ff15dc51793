//! From the bytes of logs, and from synthetic traffic, to ordered events, decisions and reports.
#![allow(clippy::as_conversions, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod any_bytes;
mod csv;
mod describe;
mod drawing;
mod generate;
mod harness;
mod input;
mod json;
mod order;
mod reference;
mod replays;
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
