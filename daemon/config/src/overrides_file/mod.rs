//! A file of overrides: CSV, or JSON lines.

mod csv;
mod error;
mod json_lines;
mod lines;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use tollgate::{OverrideError, Overrides, OverridesBuilder};

pub use error::OverridesFileError;

/// The most bytes that are read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// After so many errors the rest of a file is not read.
const MAX_ERRORS: usize = 20;

/// Reads a file of up to a million overrides.
///
/// It is CSV with the columns `key` and `limits`, where limits are joined by `;`, or a JSON object
/// in each line, whose `limits` are a text or a list of texts:
///
/// ```text
/// key,limits
/// vip,100/s
/// bot-*,1/s; 100/d
/// 10.0.0.0/8,unlimited
/// ```
/// ```text
/// {"key":"vip","limits":["100/s"]}
/// {"key":"10.0.0.0/8","limits":"unlimited"}
/// ```
///
/// The file's name says which (`.csv`; `.json`, `.jsonl` or `.ndjson`), else its first character:
/// `{` begins JSON. Keys are written as [`tollgate::KeyPattern`] says.
///
/// # Errors
/// The file cannot be read, or rows of it cannot be used; each error names the line, the field, the
/// value and what to write instead. There are at most 20.
pub fn read_overrides(path: &Path) -> Result<Overrides, Vec<OverridesFileError>> {
    let mut rows = Rows::default();
    match open(path) {
        Ok(mut file) => read(path, &mut file, &mut rows),
        Err(error) => rows.errors.push(error),
    }
    if rows.errors.is_empty() {
        return Ok(rows.builder.build());
    }
    let name = path.display().to_string();
    Err(rows.errors.into_iter().map(|error| error.in_file(&name)).collect())
}

type Bytes = BufReader<std::io::Take<File>>;

fn open(path: &Path) -> Result<Bytes, OverridesFileError> {
    let file = File::open(path).map_err(|error| OverridesFileError::unreadable(&error))?;
    let bytes = file.metadata().map_err(|error| OverridesFileError::unreadable(&error))?.len();
    if bytes > MAX_BYTES {
        return Err(too_long());
    }
    if bytes == 0 {
        // As while somebody writes it in place: that is no reason to forget what it said.
        return Err(OverridesFileError::new(
            "it is empty; write the header key,limits, or leave overrides_file out",
        ));
    }
    // It may grow while it is read.
    Ok(BufReader::with_capacity(1 << 16, file.take(MAX_BYTES + 1)))
}

fn too_long() -> OverridesFileError {
    OverridesFileError::new(format!("it has more than the {MAX_BYTES} bytes that are read"))
}

fn read(path: &Path, file: &mut Bytes, rows: &mut Rows) {
    if is_json(path, file) {
        json_lines::read(file, rows);
    } else {
        csv::read(file, rows);
    }
    if file.get_ref().limit() == 0 {
        rows.errors.push(too_long());
    }
}

fn is_json(path: &Path, file: &mut Bytes) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => false,
        Some("json" | "jsonl" | "ndjson") => true,
        // What cannot be read is said by whoever reads on.
        _ => file.fill_buf().is_ok_and(|fill_buf| fill_buf.trim_ascii_start().starts_with(b"{")),
    }
}

/// What was read so far.
#[derive(Debug, Default)]
struct Rows {
    builder: OverridesBuilder,
    /// The line of each row.
    lines: Vec<u64>,
    errors: Vec<OverridesFileError>,
}

impl Rows {
    fn add(&mut self, line: u64, key: &str, limits: &str) {
        match self.builder.add(key, limits) {
            Ok(()) => self.lines.push(line),
            Err(error) => self.refuse(line, key, limits, &error),
        }
    }

    fn refuse(&mut self, line: u64, key: &str, limits: &str, error: &OverrideError) {
        let mut message = error.to_string();
        let (field, value) = match error {
            OverrideError::Limits(_) => ("limits", limits),
            OverrideError::TooMany => {
                return self.errors.push(OverridesFileError::new(message).at_line(line));
            }
            OverrideError::Duplicate { first } => {
                let first = self.lines.get(*first).copied().unwrap_or_default();
                message = format!("it is in line {first} already; leave one of them out");
                ("key", key)
            }
            _ => ("key", key),
        };
        let error_of_line = OverridesFileError::new(message).with_value(value).of(field);
        self.errors.push(error_of_line.at_line(line));
    }

    /// Whether reading on would tell nothing.
    fn is_over(&self) -> bool {
        let too_many = || self.builder.len() >= tollgate::MAX_OVERRIDES;
        self.errors.len() >= MAX_ERRORS || (!self.errors.is_empty() && too_many())
    }
}
