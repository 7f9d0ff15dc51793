//! Files of overrides: CSV or JSON Lines.

mod csv;
mod error;
mod json_lines;
mod lines;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use tollgate::{OverrideError, Overrides, OverridesBuilder};

pub use error::OverridesFileError;

/// The maximum size of a file in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The number of errors after which reading stops.
const MAX_ERRORS: usize = 20;

/// Reads a file of up to a million overrides.
///
/// The format is CSV with the columns `key` and `limits`, in which limits are joined by `;`, or
/// JSON Lines, in which `limits` is a string or a list of strings:
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
/// The extension selects the format (`.csv`; `.json`, `.jsonl` or `.ndjson`). For other names, a
/// file that begins with `{` is JSON Lines. For the notation of keys see [`tollgate::KeyPattern`].
///
/// # Errors
/// The file cannot be read, or rows are invalid. Each error contains line, field, value and remedy.
/// At most 20 errors are returned.
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
        // An editor may be rewriting the file in place; the previous contents must stay in effect.
        return Err(OverridesFileError::new(
            "the file is empty; write the header key,limits, or remove overrides_file",
        ));
    }
    // The file may grow while it is read.
    Ok(BufReader::with_capacity(1 << 16, file.take(MAX_BYTES + 1)))
}

fn too_long() -> OverridesFileError {
    OverridesFileError::new(format!("longer than the maximum of {MAX_BYTES} bytes"))
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
        // A read error is reported by the reader of the format.
        _ => file.fill_buf().is_ok_and(|fill_buf| fill_buf.trim_ascii_start().starts_with(b"{")),
    }
}

/// The rows that were read so far.
#[derive(Debug, Default)]
struct Rows {
    builder: OverridesBuilder,
    /// The line number of each row.
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
                let Some(first) = self.lines.get(*first) else {
                    unreachable!("every row has a line number")
                };
                message = format!("line {first} has the same key; remove one of the two");
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
