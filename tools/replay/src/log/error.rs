//! Errors in logs and lines.

use std::fmt;

/// Why a line is invalid, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message of a variant describes it")]
pub enum LineError {
    NoTime,
    Time,
    BeforeEpoch,
    FarFuture,
    NoRequest,
    Unclosed,
    NoStatus,
    /// The position in bytes, from 1.
    NotJson {
        column: usize,
    },
    Number {
        field: &'static str,
    },
    Columns {
        values: usize,
        columns: usize,
    },
    /// The maximum length in bytes.
    TooLong(usize),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NoTime => f.write_str(
                "no time found; an access log has it as [10/Oct/2000:13:55:36 -0700]; for JSON and \
                 CSV, name the field with --field time=NAME",
            ),
            LineError::Time => f.write_str(
                "invalid time; use seconds since 1970 with an optional decimal point, RFC 3339, or \
                 10/Oct/2000:13:55:36 -0700",
            ),
            LineError::BeforeEpoch => {
                f.write_str("the time is before 1970; correct it, or remove the line")
            }
            LineError::FarFuture => f.write_str(
                "the time is after the year 2238; if its unit is not seconds, use --time-unit ms, \
                 us or ns",
            ),
            LineError::NoRequest => f.write_str(
                "no quoted request follows the time; if the log has another format, use --format",
            ),
            LineError::Unclosed => f.write_str(
                "a quote is not closed; the line was cut off, or a value contains a line end, \
                 which must be written as \\n",
            ),
            LineError::NoStatus => f.write_str(
                "no status and size follow the request; if the log has another format, use \
                 --format",
            ),
            LineError::NotJson { column } => write!(
                f,
                "not a JSON object at byte {column}; write one object per line, or select another \
                 format with --format"
            ),
            LineError::Number { field } => {
                write!(f, "{field} is not a whole number; use digits only")
            }
            LineError::Columns { values, columns } => write!(
                f,
                "the line has {values} values, but the header has {columns} columns; quote values \
                 that contain a comma"
            ),
            LineError::TooLong(max) => {
                write!(f, "the line is longer than {max} bytes; check that the file is a log")
            }
        }
    }
}

impl std::error::Error for LineError {}

/// Why a file is not a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The format is unknown.
    UnknownFormat,
    /// The first line of CSV is not a header.
    MissingHeader,
    /// The header of CSV lacks a column.
    MissingColumn(&'static str),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::UnknownFormat => f.write_str(
                "unknown log format; select it with --format common|combined|json|csv, and start \
                 CSV with a line that names its columns, as in time,key",
            ),
            OpenError::MissingHeader => f.write_str(
                "the first line is not a CSV header; name the columns there, as in time,key",
            ),
            OpenError::MissingColumn(name) => write!(
                f,
                "the CSV header has no column {name}; add it, or map a column with --field \
                 {name}=COLUMN"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// The maximum length of a printed line, in characters.
const MAX_SHOWN: usize = 120;

/// The beginning of a line for a terminal: at most 120 characters, with escapes for bytes that are
/// not text and for control characters.
///
/// ```
/// use tollgate_replay::log::printable;
///
/// assert_eq!(printable(b"caf\xC3\xA9 \x1b[31m\xFF\\"), r"café \x1b[31m\xff\\");
/// assert_eq!(printable(&[b'x'; 500]).chars().count(), 120);
/// ```
pub fn printable(line: &[u8]) -> String {
    let beginning = line.get(..4 * MAX_SHOWN).unwrap_or(line);
    let mut text = String::new();
    for chunk in beginning.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str(r"\\"),
                _ if must_be_escaped(letter) => text.extend(escaped(letter)),
                _ => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().flat_map(|byte| byte.escape_ascii()).map(char::from));
    }
    let is_cut = beginning.len() < line.len() || text.chars().count() > MAX_SHOWN;
    if is_cut {
        text = text.chars().take(MAX_SHOWN - 1).chain(['…']).collect();
    }
    text
}

/// Control characters and characters that change the direction of text, which could disguise a
/// line.
fn must_be_escaped(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(letter, '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

fn escaped(letter: char) -> Vec<char> {
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii() => byte.escape_ascii().map(char::from).collect(),
        _ => letter.escape_unicode().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let check = |line: &[u8], expected: &str| assert_eq!(printable(line), expected);
        check(b"", "");
        check(b"a\tb\r", r"a\tb\r");
        check("\u{202E}gnp.exe\u{85}".as_bytes(), r"\u{202e}gnp.exe\u{85}");
        check(b"\xC3", r"\xc3");
        check(b"\x7f\x00", r"\x7f\x00");
    }

    #[test]
    fn a_shortened_line_ends_with_an_ellipsis() {
        assert!(printable(&[b'a'; 121]).ends_with("a…"));
        assert!(!printable(&[b'a'; 120]).ends_with('…'));
        assert!(printable("é".repeat(400).as_bytes()).ends_with("é…"));
    }
}
