//! Files of overrides: CSV or JSON Lines.

mod csv;
mod json_lines;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tollgate::{OverrideError, Overrides, OverridesBuilder};

/// The maximum size of a file in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The number of errors after which reading stops.
const MAX_ERRORS: usize = 20;
/// The maximum number of characters of a value that are shown.
const MAX_SHOWN: usize = 64;

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
    rows.errors.iter_mut().for_each(|error| error.file.clone_from(&name));
    Err(rows.errors)
}

type Bytes = BufReader<io::Take<File>>;

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
        _ => file.fill_buf().is_ok_and(|bytes| bytes.trim_ascii_start().starts_with(b"{")),
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
        let message = match error {
            OverrideError::Duplicate { first } => match self.lines.get(*first) {
                Some(first) => format!("line {first} has the same key; remove one of the two"),
                None => unreachable!("every row has a line number"),
            },
            _ => error.to_string(),
        };
        let mistake = OverridesFileError::new(message).at_line(line);
        self.errors.push(match error {
            OverrideError::TooMany => mistake,
            OverrideError::Limits(_) => mistake.with_value(limits).in_field("limits"),
            _ => mistake.with_value(key).in_field("key"),
        });
    }

    /// Whether further rows would add no error.
    fn is_over(&self) -> bool {
        let is_full = self.builder.len() >= tollgate::MAX_OVERRIDES;
        self.errors.len() >= MAX_ERRORS || (is_full && !self.errors.is_empty())
    }
}

/// A mistake in a file of overrides: position, field, value and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverridesFileError {
    file: String,
    /// The line at fault, counted from 1, if known.
    pub line: Option<u64>,
    /// The column at fault, counted from 1, if known.
    pub column: Option<u64>,
    /// The field at fault, `key` or `limits`, if known.
    pub field: Option<&'static str>,
    /// The message, without the position.
    pub message: String,
}

impl OverridesFileError {
    fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        OverridesFileError { file: String::new(), line: None, column: None, field: None, message }
    }

    fn unreadable(error: &io::Error) -> Self {
        OverridesFileError::new(format!("cannot be read: {error}"))
    }

    /// Prefixes the message with the value at fault, unless the message contains it.
    fn with_value(mut self, value: &str) -> Self {
        if !self.message.contains(&format!("{value:?}")) {
            let shown: String = value.chars().take(MAX_SHOWN).collect();
            let rest = if shown.len() < value.len() { "…" } else { "" };
            self.message = format!("{shown:?}{rest}: {}", self.message);
        }
        self
    }

    fn in_field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}

/// `overrides.csv:7: key: "10.0.0.1/8": …`.
impl fmt::Display for OverridesFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        f.write_str(": ")?;
        if let Some(field) = self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for OverridesFileError {}
